/* See staged.h. */
#include "exec/staged.h"

#include <string.h>

#define STAGING_PIECE (8ull << 20)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes of one staging buffer: a whole number of granules where they fit. */
static uint64_t piece_bytes(const gpu_device *device, uint64_t granule)
{
    uint64_t most = least(STAGING_PIECE, vka_caps_max_tensor(gpu_device_caps(device)));

    return most > granule ? most / granule * granule : granule;
}

static bool host_uses_mapping(const gpu_buffer *buffer, staged_use use)
{
    return use == STAGED_READ ? gpu_buffer_host_cached(buffer) : gpu_buffer_map(buffer) != NULL;
}

vka_status staged_create(staged_tensor *out, gpu_device *device, uint64_t bytes, staged_use use, const char *name,
                         vka_error *error)
{
    staged_tensor tensor = {.use = use};
    vka_status status = gpu_buffer_create(&tensor.buffer, device, bytes, GPU_MEMORY_DEVICE, name, error);

    if (status == VKA_OK && use != STAGED_NONE && !host_uses_mapping(tensor.buffer, use)) {
        gpu_memory memory = use == STAGED_WRITE ? GPU_MEMORY_UPLOAD : GPU_MEMORY_DOWNLOAD;
        status = gpu_buffer_create(&tensor.staging, device, bytes, memory, name, error);
    }
    if (status != VKA_OK) {
        staged_destroy(&tensor);
        return status;
    }
    *out = tensor;
    return VKA_OK;
}

void staged_destroy(staged_tensor *tensor)
{
    gpu_buffer_destroy(&tensor->staging);
    gpu_buffer_destroy(&tensor->buffer);
}

void *staged_host(const staged_tensor *tensor)
{
    return gpu_buffer_map(tensor->staging != NULL ? tensor->staging : tensor->buffer);
}

vka_status staged_push(staged_tensor *tensor, recorder *rec, uint64_t bytes, vka_error *error)
{
    gpu_buffer *written = tensor->staging != NULL ? tensor->staging : tensor->buffer;
    vka_status status = gpu_buffer_flush(written, 0, bytes, error);

    if (status == VKA_OK && tensor->staging != NULL && bytes > 0) {
        recorder_copy(rec, tensor->staging, 0, tensor->buffer, 0, bytes);
    }
    return status;
}

void staged_pull(staged_tensor *tensor, recorder *rec, uint64_t bytes)
{
    if (tensor->staging != NULL) {
        recorder_copy(rec, tensor->buffer, 0, tensor->staging, 0, bytes);
    }
    recorder_host_read(rec, tensor->staging != NULL ? tensor->staging : tensor->buffer);
}

vka_status staged_finish(staged_tensor *tensor, uint64_t bytes, vka_error *error)
{
    return gpu_buffer_invalidate(tensor->staging != NULL ? tensor->staging : tensor->buffer, 0, bytes, error);
}

static vka_status copy_and_wait(gpu_device *device, gpu_buffer *from, uint64_t from_offset, gpu_buffer *to,
                                uint64_t to_offset, uint64_t bytes, vka_error *error)
{
    recorder rec;
    uint64_t ticket = 0;
    vka_status status = recorder_begin(&rec, device, error);

    if (status != VKA_OK) {
        return status;
    }
    recorder_copy(&rec, from, from_offset, to, to_offset, bytes);
    recorder_host_read(&rec, to);
    status = recorder_submit(&rec, &ticket, error);
    return status == VKA_OK ? gpu_wait(device, ticket, error) : status;
}

vka_status staged_upload(gpu_device *device, gpu_buffer *buffer, uint64_t offset, uint64_t bytes, uint64_t granule,
                         staged_fill_fn fill, void *user, vka_error *error)
{
    unsigned char *mapped = gpu_buffer_map(buffer);
    gpu_buffer *staging = NULL;
    vka_status status = VKA_OK;

    if (mapped != NULL) {
        fill(user, mapped + offset, 0, bytes);
        return gpu_buffer_flush(buffer, offset, bytes, error);
    }
    uint64_t piece = piece_bytes(device, granule);
    status = gpu_buffer_create(&staging, device, least(piece, bytes), GPU_MEMORY_UPLOAD, "upload staging", error);
    for (uint64_t done = 0; status == VKA_OK && done < bytes; done += piece) {
        uint64_t part = least(piece, bytes - done);
        fill(user, gpu_buffer_map(staging), done, part);
        status = gpu_buffer_flush(staging, 0, part, error);
        if (status == VKA_OK) {
            status = copy_and_wait(device, staging, 0, buffer, offset + done, part, error);
        }
    }
    gpu_buffer_destroy(&staging);
    return status;
}

vka_status staged_download(gpu_device *device, gpu_buffer *buffer, uint64_t offset, uint64_t bytes, void *target,
                           vka_error *error)
{
    const unsigned char *mapped = gpu_buffer_map(buffer);
    uint64_t piece = piece_bytes(device, 4);
    gpu_buffer *staging = NULL;
    vka_status status = VKA_OK;

    if (mapped != NULL) {
        status = gpu_buffer_invalidate(buffer, offset, bytes, error);
        if (status == VKA_OK) {
            memcpy(target, mapped + offset, (size_t)bytes);
        }
        return status;
    }
    status = gpu_buffer_create(&staging, device, least(piece, bytes), GPU_MEMORY_DOWNLOAD, "download staging", error);
    for (uint64_t done = 0; status == VKA_OK && done < bytes; done += piece) {
        uint64_t part = least(piece, bytes - done);
        status = copy_and_wait(device, buffer, offset + done, staging, 0, part, error);
        if (status == VKA_OK) {
            status = gpu_buffer_invalidate(staging, 0, part, error);
        }
        if (status == VKA_OK) {
            memcpy((unsigned char *)target + done, gpu_buffer_map(staging), (size_t)part);
        }
    }
    gpu_buffer_destroy(&staging);
    return status;
}
