/* Copies of every stage's input and output for the caller's trace callback. */
#include "exec/latent.h"
#include "exec/rows.h"

#include <string.h>

#include "base/error.h"
#include "base/threads.h"

/* Host copies of one device's stages. */
typedef struct trace_copy {
    float *hidden, *qkv, *q, *gate, *attention, *partial;
    float *q_latent, *q_up, *latents; /* latent attention only */
    uint32_t *partial_rank;
} trace_copy;

/* A run of columns made of heads: `dim` columns of `pad`, then, where heads have two parts, `dim2` of `pad2`. */
typedef struct column_run {
    uint32_t heads, dim, pad, dim2, pad2;
} column_run;

/* Drops the padding columns in place; rows are made of `count` runs. */
static void drop_padding(float *data, uint32_t rows, const column_run *runs, uint32_t count)
{
    const float *from = data;
    float *to = data;

    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t h = 0; h < runs[i].heads; h++) {
                memmove(to, from, runs[i].dim * sizeof(float));
                memmove(to + runs[i].dim, from + runs[i].pad, runs[i].dim2 * sizeof(float));
                from += runs[i].pad + runs[i].pad2;
                to += runs[i].dim + runs[i].dim2;
            }
        }
    }
}

static uint32_t stored_columns(const column_run *runs, uint32_t count)
{
    uint32_t columns = 0;

    for (uint32_t i = 0; i < count; i++) {
        columns += runs[i].heads * (runs[i].pad + runs[i].pad2);
    }
    return columns;
}

typedef struct traced_stage {
    exec_scratch which;
    uint32_t slot;
    float **out;
    uint32_t rows;
    uint32_t count; /* of runs */
    column_run runs[4];
    uint32_t first; /* float of the first row */
} traced_stage;

/* What is left of rows of `stride` behind `used` columns. */
static column_run tail(uint32_t stride, uint32_t used)
{
    return (column_run){.heads = 1, .pad = stride - used};
}

enum { MOST_STAGES = 8 };

static uint32_t list_heads(const vka_layer *layer, const vka_shard *shard, uint32_t rows, trace_copy *copy,
                           traced_stage *out)
{
    uint32_t dim = layer->desc.head_dim, v_dim = layer->desc.v_head_dim;
    const column_run q = {shard->q_heads, dim, layer->qk_pad, 0, 0}, k = {shard->kv_heads, dim, layer->qk_pad, 0, 0};
    const column_run v = {shard->kv_heads, v_dim, layer->v_pad, 0, 0}, o = {shard->q_heads, v_dim, layer->v_pad, 0, 0};
    const column_run rest = tail(layer_attention_stride(layer, shard), shard->q_heads * layer->v_pad);

    bool gated = layer->desc.gate != VKA_GATE_NONE;

    out[0] = gated ? (traced_stage){EXEC_SCRATCH_QKV, 0, &copy->qkv, rows, 4, {q, o, k, v}, 0}
                   : (traced_stage){EXEC_SCRATCH_QKV, 0, &copy->qkv, rows, 3, {q, k, v}, 0};
    out[1] = (traced_stage){EXEC_SCRATCH_Q, 0, &copy->q, rows, 1, {q}, 0};
    out[2] = (traced_stage){EXEC_SCRATCH_ATTENTION, 0, &copy->attention, rows, 2, {o, rest}, 0};
    if (gated) {
        out[3] = (traced_stage){EXEC_SCRATCH_Q, 0, &copy->gate, rows, 1, {o}, rows * shard->q_heads * layer->qk_pad};
    }
    return gated ? 4 : 3;
}

static uint32_t list_latent(const vka_layer *layer, const vka_shard *shard, uint32_t rows, trace_copy *copy,
                            traced_stage *out)
{
    const vka_layer_desc *desc = &layer->desc;
    const vka_latent *part = &layer->latent;
    uint32_t heads = shard->q_heads, count = 0, dim = desc->kv_lora_rank, turned = desc->rotary_dim;
    const column_run rank = {1, desc->q_lora_rank, part->rank, 0, 0};
    const column_run plain = {heads, desc->head_dim - turned, part->plain, 0, 0};
    const column_run rotary = {heads, turned, part->rotary, 0, 0};
    const column_run kv = {1, dim, part->latent, turned, part->rotary};
    const column_run query = {heads, dim, part->latent, turned, part->rotary};
    const column_run sums = {heads, dim, part->latent, 0, 0}, values = {heads, desc->v_head_dim, part->value, 0, 0};
    const column_run rank_tail = tail(rows_stride(part->rank), part->rank);
    const column_run q_tail = tail(latent_q_stride(layer, shard), heads * (part->plain + part->rotary));
    const column_run sums_tail = tail(layer_attention_stride(layer, shard), heads * part->latent);
    const column_run values_tail = tail(layer_values_stride(layer, shard), heads * part->value);

    if (part->rank > 0) {
        out[count++] = (traced_stage){EXEC_SCRATCH_QKV, 0, &copy->qkv, rows, 2, {rank, kv}, 0};
        out[count++] = (traced_stage){EXEC_SCRATCH_Q_LATENT, 0, &copy->q_latent, rows, 2, {rank, rank_tail}, 0};
        out[count++] = (traced_stage){EXEC_SCRATCH_Q_UP, 0, &copy->q_up, rows, 3, {plain, rotary, q_tail}, 0};
    } else {
        out[count++] = (traced_stage){EXEC_SCRATCH_QKV, 0, &copy->qkv, rows, 3, {plain, rotary, kv}, 0};
    }
    out[count++] = (traced_stage){EXEC_SCRATCH_Q, 0, &copy->q, rows, 1, {query}, 0};
    out[count++] = (traced_stage){EXEC_SCRATCH_ATTENTION, 0, &copy->latents, rows, 2, {sums, sums_tail}, 0};
    out[count++] = (traced_stage){EXEC_SCRATCH_VALUES, 0, &copy->attention, rows, 2, {values, values_tail}, 0};
    return count;
}

static vka_status read_stage(const forward_call *call, const forward_device *device, const traced_stage *stage,
                             vka_error *error)
{
    size_t floats = (size_t)stage->rows * stored_columns(stage->runs, stage->count);
    gpu_buffer *buffer = device->device->scratch[stage->which][stage->slot].buffer;

    *stage->out = vka_alloc(&call->context->allocator, floats, sizeof(float));
    if (*stage->out == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu traced values", floats);
    }
    uint64_t offset = stage->first * sizeof(float);
    vka_status status =
        staged_download(device->device->gpu, buffer, offset, floats * sizeof(float), *stage->out, error);
    drop_padding(*stage->out, stage->rows, stage->runs, stage->count);
    return status;
}

static vka_status read_stages(const forward_call *call, const forward_chunk *chunk, const forward_device *device,
                              trace_copy *copy, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    uint32_t hidden = layer->desc.hidden_size, partial_rows = chunk->rows * layer_partials(layer, shard);
    const column_run own = {1, hidden, layer->hidden_stride, 0, 0};
    const column_run other = {1, layer->desc.kv_hidden_size, layer->kv_hidden_stride, 0, 0};
    const column_run partial = {1, hidden, layer->hidden_pad, 0, 0};
    bool appends = call->pass == FORWARD_APPEND;
    traced_stage stages[MOST_STAGES] = {
        {EXEC_SCRATCH_HIDDEN, chunk->slot, &copy->hidden, chunk->rows, 1, {appends ? other : own}, 0},
    };
    uint32_t count = 1;
    vka_status status = VKA_OK;

    count += layer_is_latent(layer) ? list_latent(layer, shard, chunk->rows, copy, stages + count)
                                    : list_heads(layer, shard, chunk->rows, copy, stages + count);
    stages[count++] = (traced_stage){EXEC_SCRATCH_PARTIAL, chunk->slot, &copy->partial, partial_rows, 1, {partial}, 0};
    count = appends ? 2 : count; /* hidden states and qkv */
    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        status = read_stage(call, device, &stages[i], error);
    }
    return status;
}

static void free_copy(trace_copy *copy, const vka_allocator *allocator)
{
    vka_free(allocator, copy->hidden);
    vka_free(allocator, copy->qkv);
    vka_free(allocator, copy->q);
    vka_free(allocator, copy->attention);
    vka_free(allocator, copy->gate);
    vka_free(allocator, copy->partial);
    vka_free(allocator, copy->q_latent);
    vka_free(allocator, copy->q_up);
    vka_free(allocator, copy->latents);
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
    const float *factors =
        (const float *)(const void *)(call->context->call.words + call_factors_offset(&call->layer->desc, chunk->rows));
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
                             .norm_factor = forward_norms_rows(call->layer) ? factors : NULL,
                             .q = copy->q,
                             .gate = copy->gate,
                             .attention = copy->attention,
                             .appends = call->pass == FORWARD_APPEND,
                             .partials = call->pass == FORWARD_APPEND ? 0 : layer_partials(call->layer, shard),
                             .partial_rank = copy->partial_rank,
                             .partial = copy->partial,
                             .q_latent = copy->q_latent,
                             .q_up = copy->q_up,
                             .latents = copy->latents};

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
