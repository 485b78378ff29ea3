/* A caller's device buffer. */
#ifndef VKA_EXEC_BUFFER_H
#define VKA_EXEC_BUFFER_H

#include "exec/context.h"
#include "vkattn/buffer.h"

struct vka_buffer {
    vka_context *context;
    uint32_t device;
    gpu_buffer *gpu;
};

#endif
