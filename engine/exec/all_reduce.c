/* See all_reduce.h. Every public call waits for its own work, so no device is busy with a caller's buffer here, and its
 * last writer has made it visible to the host. */
#include "exec/all_reduce.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "exchange/all_reduce.h"
#include "exec/buffer.h"
#include "exec/call.h"

typedef struct reduce_call {
    const vka_all_reduce_params *params;
    vka_context *context;
    uint64_t bytes;
    float *host[EXEC_MAX_DEVICES]; /* the partial of each device, in its own memory or in a copy */
    vka_exchange_timing timing;
} reduce_call;

static gpu_buffer *buffer_at(const reduce_call *call, uint32_t device)
{
    return call->params->buffers[device]->gpu;
}

static vka_status check(const reduce_call *call, vka_error *error)
{
    const vka_all_reduce_params *p = call->params;

    if (p->buffers == NULL || p->count == 0 || p->count > UINT64_MAX / sizeof(float)) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "buffers is %s and count %llu: expected one buffer per device and at "
                        "least one value",
                        p->buffers == NULL ? "NULL" : "set", (unsigned long long)p->count);
    }
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        const vka_buffer *buffer = p->buffers[d];
        if (buffer == NULL || buffer->context != call->context || buffer->device != d) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "buffers[%u] is not a buffer of device %u of this context", d, d);
        }
        if (gpu_buffer_bytes(buffer->gpu) / sizeof(float) < p->count) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "buffers[%u] holds %llu bytes, %llu values need more", d,
                            (unsigned long long)gpu_buffer_bytes(buffer->gpu), (unsigned long long)p->count);
        }
    }
    return VKA_OK;
}

static bool all_host_cached(const reduce_call *call)
{
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        if (!gpu_buffer_host_cached(buffer_at(call, d))) {
            return false;
        }
    }
    return true;
}

/* The sum goes to every device's array, or to the first alone. */
static void add(reduce_call *call, uint32_t sum_count)
{
    const float *partials[EXEC_MAX_DEVICES];
    double since = vka_clock_ms();

    for (uint32_t d = 0; d < call->context->device_count; d++) {
        partials[d] = call->host[d];
    }
    const exchange_all_reduce_job job = {.partials = partials,
                                         .count = call->context->device_count,
                                         .sums = call->host,
                                         .sum_count = sum_count,
                                         .values = (size_t)call->params->count};
    exchange_all_reduce(&job);
    call->timing.add_ms = vka_clock_ms() - since;
}

static vka_status reduce_in_place(reduce_call *call, vka_error *error)
{
    uint32_t devices = call->context->device_count;
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < devices; d++) {
        status = gpu_buffer_invalidate(buffer_at(call, d), 0, call->bytes, error);
        call->host[d] = gpu_buffer_map(buffer_at(call, d));
    }
    if (status != VKA_OK) {
        return status;
    }
    add(call, devices);
    for (uint32_t d = 0; status == VKA_OK && d < devices; d++) {
        status = gpu_buffer_flush(buffer_at(call, d), 0, call->bytes, error);
    }
    call->timing.in_place = 1;
    return status;
}

static void copy_sum(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    memcpy(target, (const unsigned char *)user + offset, (size_t)bytes);
}

static vka_status download(reduce_call *call, vka_error *error)
{
    double since = vka_clock_ms();
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        call->host[d] = call->context->call.result + (size_t)d * call->params->count;
        status =
            staged_download(call->context->devices[d].gpu, buffer_at(call, d), 0, call->bytes, call->host[d], error);
    }
    call->timing.download_ms = vka_clock_ms() - since;
    return status;
}

static vka_status upload(reduce_call *call, vka_error *error)
{
    double since = vka_clock_ms();
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        status = staged_upload(call->context->devices[d].gpu, buffer_at(call, d), 0, call->bytes, sizeof(float),
                               copy_sum, call->host[0], error);
    }
    call->timing.upload_ms = vka_clock_ms() - since;
    return status;
}

static vka_status reduce_staged(reduce_call *call, vka_error *error)
{
    uint32_t devices = call->context->device_count;

    if (call->params->count > SIZE_MAX / sizeof(float) / devices) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u copies of %llu values", devices,
                        (unsigned long long)call->params->count);
    }
    vka_status status = call_reserve_result(call->context, (size_t)call->params->count * devices, error);
    if (status == VKA_OK) {
        status = download(call, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    add(call, 1);
    return upload(call, error);
}

vka_status exec_all_reduce(vka_context *context, const vka_all_reduce_params *params, vka_error *error)
{
    double started = vka_clock_ms();
    reduce_call call = {.params = params, .context = context, .bytes = params->count * sizeof(float)};
    vka_status status = check(&call, error);

    if (status != VKA_OK) {
        return status;
    }
    if (params->staged == 0 && all_host_cached(&call)) {
        status = reduce_in_place(&call, error);
    } else {
        status = reduce_staged(&call, error);
    }
    call.timing.wall_ms = vka_clock_ms() - started;
    if (status == VKA_OK && params->timing != NULL) {
        *params->timing = call.timing;
    }
    return status;
}
