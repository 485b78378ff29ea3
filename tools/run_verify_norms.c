/* The factors of a QK-norm over the full width: from the projections of all devices, each KV head once. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "run_verify_stages.h"

/* Squares of the rows of a chunk. */
typedef struct row_squares {
    double *q, *k;               /* [rows] */
    bool counted[VKA_MAX_HEADS]; /* KV heads that are in */
} row_squares;

static void add_head(const stage_chunk *chunk, const vka_trace *trace, const float *bias, size_t column,
                     double *squares)
{
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    const verify_epilogue_params params = {
        .rows = trace->rows,
        .heads = 1,
        .head_dim = desc->head_dim,
        .raw = trace->qkv + column,
        .raw_stride = stage_qkv_columns(trace, desc),
        .bias = bias,
        .desc = desc,
    };

    verify_add_squares(&params, squares);
}

static void add_device(const stage_chunk *chunk, const vka_trace *trace, row_squares *to)
{
    size_t dim = chunk->layer->source.desc.head_dim;
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    size_t q_step = desc->gate != VKA_GATE_NONE ? 2 * dim : dim, k_first = stage_k_column(trace, desc);
    const stage_vectors *of = chunk->vectors;

    for (uint32_t i = 0; i < trace->q_heads; i++)
        add_head(chunk, trace, of->q_bias ? of->q_bias + trace->q_head[i] * q_step : NULL, i * dim, to->q);
    for (uint32_t i = 0; i < trace->kv_heads; i++) {
        uint32_t head = trace->kv_head[i];

        if (!to->counted[head])
            add_head(chunk, trace, of->k_bias ? of->k_bias + head * dim : NULL, k_first + i * dim, to->k);
        to->counted[head] = true;
    }
}

vka_status stage_check_factors(const stage_chunk *chunk, const run_trace_list *all, vka_error *error)
{
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    const vka_trace *trace = chunk->trace;
    size_t rows = trace->rows, q_width = (size_t)desc->heads * desc->head_dim;
    size_t k_width = (size_t)desc->kv_heads * desc->head_dim;
    verify_result result = {0};

    if (!trace->norm_factor)
        return VKA_OK;
    row_squares *squares = vka_alloc(NULL, 1, sizeof(*squares));
    double *sums = vka_alloc(NULL, 2 * rows, sizeof(double));
    if (!squares || !sums) {
        vka_free(NULL, squares);
        vka_free(NULL, sums);
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for the norms of %zu rows", rows);
    }
    squares->q = sums;
    squares->k = sums + rows;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].trace.first_row == trace->first_row)
            add_device(chunk, &all->items[i].trace, squares);
    for (size_t r = 0; r < rows; r++) {
        verify_factor(&result, 2 * r, (double)trace->norm_factor[2 * r], sums[r], q_width, desc->norm_eps);
        verify_factor(&result, 2 * r + 1, (double)trace->norm_factor[2 * r + 1], sums[rows + r], k_width,
                      desc->norm_eps);
    }
    stage_note(chunk, RUN_CHECK_EPILOGUE, (stage_place){0, 0, 2}, &result);
    vka_free(NULL, squares);
    vka_free(NULL, sums);
    return VKA_OK;
}
