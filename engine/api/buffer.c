/* include/vkattn/buffer.h */
#include "vkattn/buffer.h"

#include <string.h>

#include "api/guard.h"
#include "base/error.h"
#include "exec/buffer.h"

static vka_status create(vka_buffer **out, vka_context *context, uint32_t device, uint64_t bytes, vka_error *error)
{
    vka_buffer *buffer = vka_alloc(&context->allocator, 1, sizeof(*buffer));

    if (buffer == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a buffer");
    }
    buffer->context = context;
    buffer->device = device;
    vka_status status = gpu_buffer_create(&buffer->gpu, context->devices[device].gpu, bytes, GPU_MEMORY_DEVICE,
                                          "a caller's buffer", error);
    if (status != VKA_OK) {
        vka_free(&context->allocator, buffer);
        return status;
    }
    *out = buffer;
    return VKA_OK;
}

vka_status vka_buffer_create(vka_buffer **out, vka_context *context, uint32_t device, uint64_t bytes, vka_error *error)
{
    if (out == NULL || context == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out == NULL ? "out" : "context");
    }
    if (device >= context->device_count) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u, the context has %u", device, context->device_count);
    }
    if (bytes == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "bytes is 0, expected the size of the buffer");
    }
    vka_status status = guard_enter(context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = create(out, context, device, bytes, error);
    guard_leave(context);
    return status;
}

void vka_buffer_destroy(vka_buffer **buffer)
{
    if (buffer == NULL || *buffer == NULL) {
        return;
    }
    const vka_allocator *allocator = &(*buffer)->context->allocator;
    gpu_buffer_destroy(&(*buffer)->gpu);
    vka_free(allocator, *buffer);
    *buffer = NULL;
}

static vka_status check_range(const vka_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes,
                              vka_error *error)
{
    if (buffer == NULL || data == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", buffer == NULL ? "buffer" : "data");
    }
    uint64_t size = gpu_buffer_bytes(buffer->gpu);
    if (offset > size || bytes > size - offset || offset % 4 != 0 || bytes % 4 != 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "bytes %llu + %llu of a buffer of %llu: expected multiples of 4 inside the buffer",
                        (unsigned long long)offset, (unsigned long long)bytes, (unsigned long long)size);
    }
    return VKA_OK;
}

static void copy_bytes(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const unsigned char *const *data = user;

    memcpy(target, *data + offset, (size_t)bytes);
}

vka_status vka_buffer_write(vka_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes, vka_error *error)
{
    const unsigned char *source = data;
    vka_status status = check_range(buffer, offset, data, bytes, error);

    if (status == VKA_OK) {
        status = guard_enter(buffer->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    if (bytes > 0) {
        status = staged_upload(buffer->context->devices[buffer->device].gpu, buffer->gpu, offset, bytes, 4, copy_bytes,
                               (void *)&source, error);
    }
    guard_leave(buffer->context);
    return status;
}

vka_status vka_buffer_read(vka_buffer *buffer, uint64_t offset, void *data, uint64_t bytes, vka_error *error)
{
    vka_status status = check_range(buffer, offset, data, bytes, error);

    if (status == VKA_OK) {
        status = guard_enter(buffer->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    if (bytes > 0) {
        status = staged_download(buffer->context->devices[buffer->device].gpu, buffer->gpu, offset, bytes, data, error);
    }
    guard_leave(buffer->context);
    return status;
}
