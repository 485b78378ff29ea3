/* Copies of every stage's input and output for the caller's trace callback. */
#include "exec/forward.h"

#include <string.h>

#include "base/error.h"
#include "base/threads.h"

/* Host copies of one device's stages. */
typedef struct trace_copy {
    float *hidden, *qkv, *q, *attention, *partial;
    uint32_t *partial_rank;
} trace_copy;

/* A run of columns made of heads that are `pad` apart and `dim` wide. */
typedef struct column_run {
    uint32_t heads, dim, pad;
} column_run;

/* Drops the padding columns in place; rows are made of `count` runs. */
static void drop_padding(float *data, uint32_t rows, const column_run *runs, uint32_t count)
{
    const float *from = data;
    float *to = data;

    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t h = 0; h < runs[i].heads; h++, from += runs[i].pad, to += runs[i].dim) {
                memmove(to, from, runs[i].dim * sizeof(float));
            }
        }
    }
}

static uint32_t stored_columns(const column_run *runs, uint32_t count)
{
    uint32_t columns = 0;

    for (uint32_t i = 0; i < count; i++) {
        columns += runs[i].heads * runs[i].pad;
    }
    return columns;
}

static vka_status read_scratch(const forward_call *call, const forward_device *device, exec_scratch which,
                               uint32_t slot, uint32_t rows, const column_run *runs, uint32_t count, float **out,
                               vka_error *error)
{
    size_t floats = (size_t)rows * stored_columns(runs, count);
    *out = vka_alloc(&call->context->allocator, floats, sizeof(float));

    if (*out == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu traced values", floats);
    }
    vka_status status = staged_download(device->device->gpu, device->device->scratch[which][slot].buffer, 0,
                                        floats * sizeof(float), *out, error);
    drop_padding(*out, rows, runs, count);
    return status;
}

static vka_status read_stages(const forward_call *call, const forward_chunk *chunk, const forward_device *device,
                              trace_copy *copy, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    uint32_t dim = layer->desc.head_dim, v_dim = layer->desc.v_head_dim, partials = layer_partials(layer, shard);
    const column_run own = {1, layer->desc.hidden_size, layer->hidden_stride};
    const column_run other = {1, layer->desc.kv_hidden_size, layer->kv_hidden_stride};
    const column_run hidden = call->pass == FORWARD_APPEND ? other : own;
    const column_run partial = {1, layer->desc.hidden_size, layer->hidden_pad};
    const column_run q = {shard->q_heads, dim, layer->qk_pad}, k = {shard->kv_heads, dim, layer->qk_pad};
    const column_run v = {shard->kv_heads, v_dim, layer->v_pad}, o = {shard->q_heads, v_dim, layer->v_pad};
    const column_run tail = {1, 0, layer_attention_stride(layer, shard) - shard->q_heads * layer->v_pad};
    const column_run qkv[3] = {q, k, v}, attention[2] = {o, tail};
    const struct {
        exec_scratch which;
        uint32_t slot;
        uint32_t rows;
        const column_run *runs;
        uint32_t count;
        float **out;
    } stages[] = {
        {EXEC_SCRATCH_HIDDEN, chunk->slot, chunk->rows, &hidden, 1, &copy->hidden},
        {EXEC_SCRATCH_QKV, 0, chunk->rows, qkv, 3, &copy->qkv},
        {EXEC_SCRATCH_Q, 0, chunk->rows, &q, 1, &copy->q},
        {EXEC_SCRATCH_ATTENTION, 0, chunk->rows, attention, 2, &copy->attention},
        {EXEC_SCRATCH_PARTIAL, chunk->slot, chunk->rows * partials, &partial, 1, &copy->partial},
    };
    size_t count = call->pass == FORWARD_APPEND ? 2 : sizeof(stages) / sizeof(stages[0]);
    vka_status status = VKA_OK;

    for (size_t i = 0; status == VKA_OK && i < count; i++) {
        status = read_scratch(call, device, stages[i].which, stages[i].slot, stages[i].rows, stages[i].runs,
                              stages[i].count, stages[i].out, error);
    }
    return status;
}

static void free_copy(trace_copy *copy, const vka_allocator *allocator)
{
    vka_free(allocator, copy->hidden);
    vka_free(allocator, copy->qkv);
    vka_free(allocator, copy->q);
    vka_free(allocator, copy->attention);
    vka_free(allocator, copy->partial);
    vka_free(allocator, copy->partial_rank);
}

static vka_status name_partials(const forward_call *call, const vka_shard *shard, trace_copy *copy, vka_error *error)
{
    uint32_t partials = layer_partials(call->layer, shard);

    copy->partial_rank = vka_alloc(&call->context->allocator, partials, sizeof(uint32_t));
    if (copy->partial_rank == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the names of %u partials", partials);
    }
    for (uint32_t p = 0; p < partials; p++) {
        copy->partial_rank[p] = call->layer->reproducible ? shard->rank[p] : UINT32_MAX;
    }
    return VKA_OK;
}

static vka_status call_back(const forward_call *call, const forward_chunk *chunk, const forward_device *device,
                            const trace_copy *copy, vka_error *error)
{
    const vka_shard *shard = &device->shard->shard;
    const vka_trace trace = {.struct_size = sizeof(trace),
                             .device = device->index,
                             .first_row = chunk->begin.total,
                             .rows = chunk->rows,
                             .q_heads = shard->q_heads,
                             .kv_heads = shard->kv_heads,
                             .q_head = shard->q_head,
                             .kv_head = shard->kv_head,
                             .hidden = copy->hidden,
                             .qkv = copy->qkv,
                             .q = copy->q,
                             .attention = copy->attention,
                             .appends = call->pass == FORWARD_APPEND,
                             .partials = call->pass == FORWARD_APPEND ? 0 : layer_partials(call->layer, shard),
                             .partial_rank = copy->partial_rank,
                             .partial = copy->partial};

    atomic_store(&call->context->tracer, vka_thread_self());
    int refused = call->params->trace(call->params->trace_user, &trace);
    atomic_store(&call->context->tracer, NULL);
    return refused == 0 ? VKA_OK
                        : vka_fail(error, VKA_ERR_ARGUMENT, "the trace callback returned %d at row %u of device %u",
                                   refused, chunk->begin.total, device->index);
}

static vka_status trace_device(const forward_call *call, const forward_chunk *chunk, const forward_device *device,
                               vka_error *error)
{
    trace_copy copy = {0};
    vka_status status = read_stages(call, chunk, device, &copy, error);

    if (status == VKA_OK) {
        status = name_partials(call, &device->shard->shard, &copy, error);
    }
    if (status == VKA_OK) {
        status = call_back(call, chunk, device, &copy, error);
    }
    free_copy(&copy, &call->context->allocator);
    return status;
}

vka_status forward_trace(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            status = trace_device(call, chunk, &call->devices[d], error);
        }
    }
    return status;
}
