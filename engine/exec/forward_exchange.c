/* The exchange of one chunk: partials in host memory, added in a fixed order, then handed to the caller's memory and
 * back to the devices. */
#include "exec/forward.h"

#include <string.h>

#include "base/clock.h"
#include "exchange/sum.h"
#include "exec/buffer.h"

/* Makes the partials of one device readable and lists them: one, or one per rank at its rank's place. */
static vka_status list_partials(forward_call *call, const forward_chunk *chunk, const forward_device *device,
                                size_t *count, vka_error *error)
{
    vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    staged_tensor *tensor = &device->device->scratch[EXEC_SCRATCH_PARTIAL][chunk->slot];
    size_t floats = (size_t)chunk->rows * layer->hidden_pad;
    uint32_t partials = layer_partials(layer, shard);
    vka_status status = staged_finish(tensor, floats * partials * sizeof(float), error);

    if (status != VKA_OK) {
        return status;
    }
    const float *first = staged_host(tensor);
    for (uint32_t p = 0; p < partials; p++) {
        layer->partials[layer->reproducible ? shard->rank[p] : *count] = first + p * floats;
        (*count)++;
    }
    return VKA_OK;
}

static void sum_to(const forward_call *call, const forward_chunk *chunk, const float *const *partials, size_t count,
                   size_t partial_stride, const float *bias, const vka_tensor_out *out)
{
    uint64_t stride = out->row_stride != 0 ? out->row_stride : out->cols;
    const exchange_sum_job job = {.partials = partials,
                                  .count = count,
                                  .partial_stride = partial_stride,
                                  .rows = chunk->rows,
                                  .cols = call->layer->desc.hidden_size,
                                  .bias = bias,
                                  .out = out->data,
                                  .out_dtype = out->dtype,
                                  .out_stride = (size_t)stride};

    exchange_sum(&job);
}

/* The caller's rows of this chunk. */
static vka_tensor_out output_rows(const forward_call *call, const forward_chunk *chunk)
{
    vka_tensor_out out = call->params->output;
    uint64_t stride = out.row_stride != 0 ? out.row_stride : out.cols;

    out.data = (unsigned char *)out.data + chunk->begin.total * stride * vka_dtype_size(out.dtype);
    return out;
}

static void copy_result(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    memcpy(target, (const unsigned char *)user + offset, (size_t)bytes);
}

static vka_status return_to_devices(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    size_t row_bytes = call->layer->desc.hidden_size * sizeof(float);
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        double since = vka_clock_ms();
        status = staged_upload(call->devices[d].device->gpu, call->params->output_buffers[d]->gpu,
                               chunk->begin.total * row_bytes, chunk->rows * row_bytes, sizeof(float), copy_result,
                               call->context->call.result, error);
        timing_host(&call->timing, d, VKA_STAGE_RETURN, since);
        timing_work(&call->timing, d, VKA_STAGE_RETURN, 0, (double)(chunk->rows * row_bytes));
    }
    return status;
}

static void sum_and_hand_out(forward_call *call, const forward_chunk *chunk, size_t count)
{
    vka_layer *layer = call->layer;
    size_t hidden = layer->desc.hidden_size;
    float *result = call->context->call.result;
    bool to_devices = call->params->output_buffers != NULL, to_host = call->params->output.data != NULL;
    const vka_tensor_out devices_out = {result, VKA_F32, chunk->rows, hidden, 0};
    const float *const summed[1] = {result};

    if (to_devices) {
        sum_to(call, chunk, layer->partials, count, layer->hidden_pad, layer->output_bias, &devices_out);
    }
    if (to_host) {
        vka_tensor_out out = output_rows(call, chunk);
        if (to_devices) {
            sum_to(call, chunk, summed, 1, hidden, NULL, &out);
        } else {
            sum_to(call, chunk, layer->partials, count, layer->hidden_pad, layer->output_bias, &out);
        }
    }
}

vka_status forward_exchange(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    size_t count = 0;
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            status = list_partials(call, chunk, &call->devices[d], &count, error);
        }
    }
    if (status == VKA_OK && call->params->output_buffers != NULL) {
        status = call_reserve_result(call->context, (size_t)chunk->rows * call->layer->desc.hidden_size, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    double since = vka_clock_ms();
    sum_and_hand_out(call, chunk, count);
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        timing_host(&call->timing, d, VKA_STAGE_ADD, since);
        timing_work(&call->timing, d, VKA_STAGE_ADD, (double)count * chunk->rows * call->layer->desc.hidden_size,
                    (double)(count + 1) * chunk->rows * call->layer->desc.hidden_size * sizeof(float));
    }
    return call->params->output_buffers != NULL ? return_to_devices(call, chunk, error) : VKA_OK;
}
