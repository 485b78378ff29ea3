/* Recording of one submission: every step declares the buffers it reads and writes; barriers follow from that. */
#ifndef VKA_EXEC_RECORDER_H
#define VKA_EXEC_RECORDER_H

#include "exec/hazard.h"
#include "vk/gpu.h"

typedef struct recorder {
    gpu_commands *commands; /* NULL: not recording */
    hazard_tracker hazards;
} recorder;

/* One buffer of a step. `part` as in hazard.h. */
typedef struct step_buffer {
    gpu_buffer *buffer;
    uint32_t part;
    bool write;
    gpu_texel_format texel; /* GPU_TEXEL_NONE: a storage buffer */
} step_buffer;

static inline step_buffer reads(gpu_buffer *buffer)
{
    return (step_buffer){buffer, HAZARD_WHOLE, false, GPU_TEXEL_NONE};
}

static inline step_buffer writes(gpu_buffer *buffer, uint32_t part)
{
    return (step_buffer){buffer, part, true, GPU_TEXEL_NONE};
}

vka_status recorder_begin(recorder *rec, gpu_device *device, vka_error *error);

/* Earlier submissions to this device may still run: what follows comes after all they read and wrote. */
void recorder_follow(recorder *rec);

/* A dispatch whose binding i is buffers[i], texel views last. */
vka_status recorder_dispatch(recorder *rec, gpu_pipeline *pipeline, const step_buffer *buffers, uint32_t count,
                             const void *push, uint32_t push_bytes, const uint32_t groups[3], vka_error *error);
void recorder_copy(recorder *rec, gpu_buffer *from, uint64_t from_offset, gpu_buffer *to, uint64_t to_offset,
                   uint64_t bytes);
/* The host reads `buffer` after the wait. */
void recorder_host_read(recorder *rec, gpu_buffer *buffer);

vka_status recorder_submit(recorder *rec, uint64_t *ticket, vka_error *error);
/* Drops what was recorded; harmless when nothing is being recorded. */
void recorder_abandon(recorder *rec);

#endif
