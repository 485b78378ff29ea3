/* QK-norm over the full width: before the epilogue can run, the squares of all heads of a row are added up, those of
 * one device or of many. Each device gives a sum for each of its heads; the host adds them in the order of the heads, a
 * KV head once wherever it is held, so that the sum does not depend on placement; and the factors go to all devices as
 * call parameters. */
#include "exec/forward.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

bool forward_norms_rows(const vka_layer *layer)
{
    return layer->desc.qk_norm == VKA_QK_NORM_FULL_WIDTH;
}

/* Sums of a row on a device: Q heads, then KV heads. */
static uint32_t sums_stride(const vka_shard *shard)
{
    return shard->q_heads + shard->kv_heads;
}

uint64_t forward_squares_bytes(const forward_call *call, const vka_shard *shard, uint32_t rows)
{
    return forward_norms_rows(call->layer) ? (uint64_t)rows * sums_stride(shard) * sizeof(float) : 0;
}

vka_status forward_record_squares(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                  vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    staged_tensor *sums = &device->device->scratch[EXEC_SCRATCH_SQUARES][0];
    epilogue_step step = {.part = EPILOGUE_SQUARES,
                          .push = {.rows = chunk->rows,
                                   .heads = shard->q_heads,
                                   .head_dim = layer->desc.head_dim,
                                   .head_pad = layer->qk_pad,
                                   .src_stride = layer_qkv_columns(layer, shard),
                                   .dst_stride = sums_stride(shard)},
                          .call = device->shard->constants, /* not read */
                          .constants = device->shard->constants,
                          .source = forward_scratch(device, chunk, EXEC_SCRATCH_QKV),
                          .target = sums->buffer,
                          .target_part = 1};
    vka_status status = VKA_OK;

    if (call->pass != FORWARD_APPEND) {
        status = step_epilogue(rec, &device->set, &step, error);
    }
    if (status == VKA_OK && call->pass != FORWARD_ATTEND) {
        step.push = forward_k_push(call, device, step.push);
        step.push.dst_offset = shard->q_heads;
        step.target_part = 2;
        status = step_epilogue(rec, &device->set, &step, error);
    }
    staged_pull(sums, rec, forward_squares_bytes(call, shard, chunk->rows));
    return status;
}

/* Where the sums of the first row of each head lie, and how far apart rows are; NULL: on no device yet. */
typedef struct head_sums {
    const float *first;
    uint32_t stride;
} head_sums;

static void list_device(const forward_call *call, const forward_device *device, head_sums *q, head_sums *kv)
{
    const vka_shard *shard = &device->shard->shard;
    const float *sums = staged_host(&device->device->scratch[EXEC_SCRATCH_SQUARES][0]);
    uint32_t stride = sums_stride(shard);

    for (uint32_t i = 0; call->pass != FORWARD_APPEND && i < shard->q_heads; i++) {
        q[shard->q_head[i]] = (head_sums){sums + i, stride};
    }
    for (uint32_t i = 0; call->pass != FORWARD_ATTEND && i < shard->kv_heads; i++) {
        if (kv[shard->kv_head[i]].first == NULL) {
            kv[shard->kv_head[i]] = (head_sums){sums + shard->q_heads + i, stride};
        }
    }
}

/* 1 / root mean square of one row. */
static float row_factor(const vka_layer *layer, const head_sums *heads, uint32_t count, uint32_t row)
{
    double sum = 0;

    for (uint32_t h = 0; h < count; h++) {
        sum += heads[h].first != NULL ? (double)heads[h].first[(size_t)row * heads[h].stride] : 0;
    }
    return (float)(1 / sqrt(sum / ((double)count * layer->desc.head_dim) + layer->desc.norm_eps));
}

static vka_status finish_sums(forward_call *call, const forward_chunk *chunk, head_sums *heads, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        const forward_device *device = &call->devices[d];
        if (forward_idle(device)) {
            continue;
        }
        status = staged_finish(&device->device->scratch[EXEC_SCRATCH_SQUARES][0],
                               forward_squares_bytes(call, &device->shard->shard, chunk->rows), error);
        if (status == VKA_OK) {
            list_device(call, device, heads, heads + call->layer->desc.heads);
        }
    }
    return status;
}

vka_status forward_exchange_squares(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    const vka_layer *layer = call->layer;
    uint32_t heads = layer->desc.heads, kv_heads = layer->desc.kv_heads;
    uint32_t *factors = call->context->call.words + call_factors_offset(&layer->desc, chunk->rows);
    double since = vka_clock_ms();
    head_sums *sums = vka_alloc(&call->context->allocator, (size_t)heads + kv_heads, sizeof(*sums));

    if (sums == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the norms of %u heads", heads + kv_heads);
    }
    vka_status status = finish_sums(call, chunk, sums, error);
    for (uint32_t r = 0; status == VKA_OK && r < chunk->rows; r++) {
        const float row[2] = {row_factor(layer, sums, heads, r), row_factor(layer, sums + heads, kv_heads, r)};
        memcpy(factors + 2 * (size_t)r, row, sizeof(row));
    }
    vka_free(&call->context->allocator, sums);
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        timing_host(&call->timing, d, VKA_STAGE_ADD, since);
    }
    return status;
}
