/* Checks of what works head by head: the epilogue, with K and V read back from the cache, and attention. Rows are taken
 * sequence by sequence, since each has its own positions and its own part of the cache. */
#include "base/alloc.h"
#include "base/error.h"
#include "run_verify_stages.h"

/* The rows of one sequence in a chunk. */
typedef struct head_segment {
    const stage_chunk *chunk;
    uint32_t sequence; /* in the call */
    uint32_t row;      /* of the chunk */
    uint32_t rows;
    uint32_t position;  /* of the first row */
    uint32_t keys;      /* in the cache when the call is over */
    int32_t *positions; /* [rows] */
    float *k, *v;       /* [keys, head_dim], [keys, v_head_dim]: one KV head */
} head_segment;

static verify_epilogue_params epilogue_params(const head_segment *segment, size_t column)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const vka_trace *trace = segment->chunk->trace;
    size_t stride = stage_qkv_columns(trace, desc);

    return (verify_epilogue_params){
        .rows = segment->rows,
        .heads = 1,
        .raw = trace->qkv + segment->row * stride + column,
        .raw_stride = stride,
        .desc = desc,
        .position = segment->positions,
        .length = segment->keys,
    };
}

static vka_status check_epilogue(const head_segment *segment, const verify_epilogue_params *params, size_t column,
                                 vka_error *error)
{
    verify_result result = {0};
    vka_status status = verify_epilogue(params, &result, error);

    stage_note(segment->chunk, RUN_CHECK_EPILOGUE, (stage_place){segment->row, column, params->head_dim}, &result);
    return status;
}

/* Norm weights of one head of the layer: its own where they go over the full width. */
static const float *head_norm(const vka_layer_desc *desc, const float *norm, size_t head)
{
    return desc->qk_norm == VKA_QK_NORM_FULL_WIDTH ? norm + head * desc->head_dim : norm;
}

/* Of Q (0) or K (1). */
static const float *row_factor(const head_segment *segment, size_t which)
{
    const float *factors = segment->chunk->trace->norm_factor;

    return factors ? factors + 2 * (size_t)segment->row + which : NULL;
}

/* The bias of a query or of its gate: [query | gate] of each head. */
static const float *q_bias(const head_segment *segment, uint32_t local, bool gate)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const float *bias = segment->chunk->vectors->q_bias;
    size_t step = (size_t)desc->head_dim * (desc->gate != VKA_GATE_NONE ? 2 : 1);

    return bias ? bias + segment->chunk->trace->q_head[local] * step + (gate ? desc->head_dim : 0) : NULL;
}

/* The gate of local query head `local`, in the trace. */
static vka_status check_gate(const head_segment *segment, uint32_t local, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const vka_trace *trace = segment->chunk->trace;
    size_t column = (size_t)local * desc->v_head_dim;
    verify_epilogue_params params = epilogue_params(segment, (size_t)trace->q_heads * desc->head_dim + column);

    params.head_dim = desc->v_head_dim;
    params.bias = q_bias(segment, local, true);
    params.sigmoid = true;
    params.got_stride = (size_t)trace->q_heads * desc->v_head_dim;
    params.got = trace->gate + segment->row * params.got_stride + column;
    params.got_dtype = VKA_F32;
    return check_epilogue(segment, &params, column, error);
}

/* Local query head `local`: Q in the trace. */
static vka_status check_q(const head_segment *segment, uint32_t local, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const stage_vectors *vectors = segment->chunk->vectors;
    const vka_trace *trace = segment->chunk->trace;
    size_t column = (size_t)local * desc->head_dim;
    verify_epilogue_params params = epilogue_params(segment, column);

    params.head_dim = desc->head_dim;
    params.bias = q_bias(segment, local, false);
    params.norm = head_norm(desc, vectors->q_norm, trace->q_head[local]);
    params.factor = row_factor(segment, 0);
    params.turned = true;
    params.got_stride = (size_t)trace->q_heads * desc->head_dim;
    params.got = trace->q + segment->row * params.got_stride + column;
    params.got_dtype = VKA_F32;
    return check_epilogue(segment, &params, column, error);
}

/* Local KV head `local`: the new keys and values in the cache. */
static vka_status check_k_and_v(const head_segment *segment, uint32_t local, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const stage_vectors *vectors = segment->chunk->vectors;
    const vka_trace *trace = segment->chunk->trace;
    size_t head = trace->kv_head[local];
    size_t k_first = stage_k_column(trace, desc), k_column = k_first + (size_t)local * desc->head_dim;
    size_t v_column = k_first + (size_t)trace->kv_heads * desc->head_dim + (size_t)local * desc->v_head_dim;
    verify_epilogue_params k = epilogue_params(segment, k_column);
    verify_epilogue_params v = epilogue_params(segment, v_column);
    vka_status status;

    k.head_dim = k.got_stride = desc->head_dim;
    v.head_dim = v.got_stride = desc->v_head_dim;
    k.bias = vectors->k_bias ? vectors->k_bias + head * desc->head_dim : NULL;
    v.bias = vectors->v_bias ? vectors->v_bias + head * desc->v_head_dim : NULL;
    k.norm = head_norm(desc, vectors->k_norm, head);
    k.factor = row_factor(segment, 1);
    k.turned = true;
    k.got = segment->k + (size_t)segment->position * desc->head_dim;
    v.got = segment->v + (size_t)segment->position * desc->v_head_dim;
    k.got_dtype = v.got_dtype = vka_cache_dtype(segment->chunk->engine->cache);
    status = check_epilogue(segment, &k, k_column, error);
    return status ? status : check_epilogue(segment, &v, v_column, error);
}

static vka_status check_attention(const head_segment *segment, uint32_t local, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const vka_trace *trace = segment->chunk->trace;
    size_t q_stride = (size_t)trace->q_heads * desc->head_dim;
    size_t o_stride = (size_t)trace->q_heads * desc->v_head_dim;
    size_t column = (size_t)local * desc->v_head_dim;
    const stage_vectors *vectors = segment->chunk->vectors;
    verify_attention_params params = {
        .rows = segment->rows,
        .keys = segment->keys,
        .qk_dim = desc->head_dim,
        .v_dim = desc->v_head_dim,
        .q = trace->q + segment->row * q_stride + (size_t)local * desc->head_dim,
        .q_stride = q_stride,
        .k = segment->k,
        .v = segment->v,
        .k_key_stride = desc->head_dim,
        .v_key_stride = desc->v_head_dim,
        .kv_heads = 1,
        .scale = desc->scale,
        .position = segment->position,
        .causal = desc->attend == VKA_ATTEND_CAUSAL,
        .window_right = desc->window_right,
        .window = desc->window,
        .softcap = desc->softcap,
        .slope = vectors->slopes ? (double)vectors->slopes[trace->q_head[local]] : 0,
        .gate = trace->gate ? trace->gate + segment->row * o_stride + column : NULL,
        .gate_stride = o_stride,
        .sink = vectors->sinks ? &vectors->sinks[trace->q_head[local]] : NULL,
        .got = trace->attention + segment->row * o_stride + column,
        .got_stride = o_stride,
    };
    verify_result result = {0};
    vka_status status = verify_attention(&params, &result, NULL, error);

    stage_note(segment->chunk, RUN_CHECK_ATTENTION, (stage_place){segment->row, column, desc->v_head_dim}, &result);
    return status;
}

/* One KV head, as the device holds it, and the query heads that share it. */
static vka_status check_kv_head(const head_segment *segment, uint32_t local, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    const vka_trace *trace = segment->chunk->trace;
    uint32_t group = desc->heads / desc->kv_heads;
    vka_status status = vka_cache_read(segment->chunk->engine->cache, trace->device, 0,
                                       segment->chunk->call->entries[segment->sequence].sequence, trace->kv_head[local],
                                       0, segment->keys, segment->k, segment->v, error);

    if (!status)
        status = check_k_and_v(segment, local, error);
    for (uint32_t q = 0; q < trace->q_heads && !status; q++)
        if (trace->q_head[q] / group == trace->kv_head[local])
            status = check_attention(segment, q, error);
    return status;
}

static vka_status check_latent(const head_segment *segment, vka_error *error)
{
    const stage_chunk *chunk = segment->chunk;
    const verify_latent_params params = stage_latent_params(chunk);
    const verify_latent_rows rows = {.row = segment->row,
                                     .rows = segment->rows,
                                     .keys = segment->keys,
                                     .position = segment->position,
                                     .turned = segment->positions,
                                     .k = segment->k,
                                     .cache = vka_cache_dtype(chunk->engine->cache)};
    vka_status status =
        vka_cache_read(chunk->engine->cache, chunk->trace->device, 0, chunk->call->entries[segment->sequence].sequence,
                       0, 0, segment->keys, segment->k, NULL, error);

    return status ? status : verify_latent_sequence(&params, &rows, error);
}

static vka_status check_heads(const head_segment *segment, vka_error *error)
{
    const vka_trace *trace = segment->chunk->trace;
    vka_status status = VKA_OK;

    for (uint32_t q = 0; q < trace->q_heads && !status; q++)
        status = check_q(segment, q, error);
    for (uint32_t q = 0; trace->gate && q < trace->q_heads && !status; q++)
        status = check_gate(segment, q, error);
    for (uint32_t h = 0; h < trace->kv_heads && !status; h++)
        status = check_kv_head(segment, h, error);
    return status;
}

static vka_status check_segment(head_segment *segment, vka_error *error)
{
    const vka_layer_desc *desc = &segment->chunk->layer->source.desc;
    bool latent = desc->kv_lora_rank > 0;
    size_t k_dim = latent ? desc->kv_lora_rank + desc->rotary_dim : desc->head_dim;
    vka_status status = VKA_OK;

    segment->positions = vka_alloc(NULL, segment->rows, sizeof(segment->positions[0]));
    segment->k = vka_alloc(NULL, segment->keys, sizeof(float) * k_dim);
    segment->v = vka_alloc(NULL, segment->keys, sizeof(float) * desc->v_head_dim);
    if (!segment->positions || !segment->k || !segment->v)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for %u keys of one head", segment->keys);
    for (uint32_t r = 0; r < segment->rows && !status; r++)
        segment->positions[r] = (int32_t)(segment->position + r);
    if (!status)
        status = latent ? check_latent(segment, error) : check_heads(segment, error);
    vka_free(NULL, segment->positions);
    vka_free(NULL, segment->k);
    vka_free(NULL, segment->v);
    return status;
}

vka_status stage_check_heads(const stage_chunk *chunk, vka_error *error)
{
    const run_call *call = chunk->call;
    uint32_t chunk_end = chunk->trace->first_row + chunk->trace->rows;
    uint32_t begin = 0; /* first row of the sequence in the call */
    vka_status status = VKA_OK;

    for (uint32_t s = 0; s < call->sequences && !status; s++) {
        uint32_t end = begin + call->entries[s].new_tokens;
        uint32_t first = begin > chunk->trace->first_row ? begin : chunk->trace->first_row;
        uint32_t last = end < chunk_end ? end : chunk_end;

        if (first < last) {
            head_segment segment = {
                .chunk = chunk,
                .sequence = s,
                .row = first - chunk->trace->first_row,
                .rows = last - first,
                .position = call->past[s] + first - begin,
                .keys = call->past[s] + call->entries[s].new_tokens,
            };

            status = check_segment(&segment, error);
        }
        begin = end;
    }
    return status;
}
