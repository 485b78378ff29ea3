/* A device tensor that the host can write or read whatever memory it lives in: through its own mapping where it has
 * one, else through a staging buffer and a copy recorded beside the kernels. */
#ifndef VKA_EXEC_STAGED_H
#define VKA_EXEC_STAGED_H

#include "exec/recorder.h"
#include "vk/gpu.h"

typedef enum staged_use {
    STAGED_NONE,  /* device only */
    STAGED_WRITE, /* host writes, device reads */
    STAGED_READ,  /* device writes, host reads */
} staged_use;

typedef struct staged_tensor {
    gpu_buffer *buffer;  /* what kernels bind */
    gpu_buffer *staging; /* NULL when the host uses the buffer's own mapping, or never touches it */
    staged_use use;
} staged_tensor;

/* STAGED_READ uses the mapping only when host reads of it are fast (host-cached memory). */
vka_status staged_create(staged_tensor *out, gpu_device *device, uint64_t bytes, staged_use use, const char *name,
                         vka_error *error);
void staged_destroy(staged_tensor *tensor);

/* Host address to write to or to read from; never NULL for STAGED_WRITE and STAGED_READ. */
void *staged_host(const staged_tensor *tensor);

/* After the host wrote [0, bytes): flushes, and records the copy where there is a staging buffer. */
vka_status staged_push(staged_tensor *tensor, recorder *rec, uint64_t bytes, vka_error *error);

/* Records what makes [0, bytes) readable by the host once the submission is done. */
void staged_pull(staged_tensor *tensor, recorder *rec, uint64_t bytes);
/* After the wait, before the host reads. */
vka_status staged_finish(staged_tensor *tensor, uint64_t bytes, vka_error *error);

/* Writes to and reads from any buffer outside a recorded call: maps, or stages in pieces of a few MiB. Blocking. */
typedef void (*staged_fill_fn)(void *user, void *target, uint64_t offset, uint64_t bytes);
vka_status staged_upload(gpu_device *device, gpu_buffer *buffer, uint64_t offset, uint64_t bytes, uint64_t granule,
                         staged_fill_fn fill, void *user, vka_error *error);
vka_status staged_download(gpu_device *device, gpu_buffer *buffer, uint64_t offset, uint64_t bytes, void *target,
                           vka_error *error);

#endif
