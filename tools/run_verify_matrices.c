/* Checks of the stages that are whole matrices: upload, projections, sum. Heads stand in the trace in local order, so
 * each is compared with the rows or columns of the weights that its number in the whole layer names. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "run_verify_stages.h"

vka_status stage_check_upload(const stage_chunk *chunk, vka_error *error)
{
    const vka_trace *trace = chunk->trace;
    size_t hidden = chunk->layer->source.desc.hidden_size;
    const float *input = chunk->call->input + trace->first_row * hidden;
    verify_result result = {0};

    (void)error;
    for (size_t i = 0; i < trace->rows * hidden; i++)
        verify_element(&result, i, (double)trace->hidden[i], (double)input[i], 0);
    stage_note(chunk, RUN_CHECK_UPLOAD, (stage_place){0, 0, hidden}, &result);
    return VKA_OK;
}

/* ---- QKV ---- */

/* The weights of one of Q, its gates, K and V: rows head*step + first .. of a matrix. */
typedef struct weight_heads {
    const vka_tensor *weights;
    uint32_t step, first;
} weight_heads;

static vka_tensor head_rows(weight_heads of, uint32_t head, uint32_t dim)
{
    uint64_t stride = of.weights->row_stride ? of.weights->row_stride : of.weights->cols;
    uint64_t row = (uint64_t)head * of.step + of.first;
    vka_tensor view = *of.weights;

    view.data = (const unsigned char *)view.data + row * stride * vka_dtype_size(view.dtype);
    view.rows = dim;
    return view;
}

/* Columns of trace->qkv from *column on, which moves behind them. */
static vka_status check_projected_heads(const stage_chunk *chunk, weight_heads of, const uint32_t *heads,
                                        uint32_t count, uint32_t dim, size_t *column, vka_error *error)
{
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    const vka_trace *trace = chunk->trace;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; i < count && !status; i++, *column += dim) {
        verify_projection_params params = {
            .rows = trace->rows,
            .cols = dim,
            .depth = desc->hidden_size,
            .x = trace->hidden,
            .x_stride = desc->hidden_size,
            .weights = head_rows(of, heads[i], dim),
            .stored = vka_layer_weight_dtype(chunk->engine->layer),
            .y = trace->qkv + *column,
            .y_stride = stage_qkv_columns(trace, desc),
        };
        verify_result result = {0};

        status = verify_projection(&params, &result, error);
        stage_note(chunk, RUN_CHECK_QKV, (stage_place){0, *column, dim}, &result);
    }
    return status;
}

static void note_latent(void *user, verify_latent_stage stage, size_t row, size_t column, size_t columns,
                        const verify_result *result)
{
    static const run_check checks[] = {[VERIFY_LATENT_QKV] = RUN_CHECK_QKV,
                                       [VERIFY_LATENT_EPILOGUE] = RUN_CHECK_EPILOGUE,
                                       [VERIFY_LATENT_ATTENTION] = RUN_CHECK_ATTENTION};

    stage_note(user, checks[stage], (stage_place){row, column, columns}, result);
}

verify_latent_params stage_latent_params(const stage_chunk *chunk)
{
    return (verify_latent_params){.desc = &chunk->layer->source.desc,
                                  .weights = &chunk->layer->weights,
                                  .stored = vka_layer_weight_dtype(chunk->engine->layer),
                                  .trace = chunk->trace,
                                  .note = note_latent,
                                  .user = (void *)(uintptr_t)chunk};
}

vka_status stage_check_qkv(const stage_chunk *chunk, vka_error *error)
{
    const vka_layer_weights *weights = &chunk->layer->weights;
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    const vka_trace *trace = chunk->trace;
    bool gated = desc->gate != VKA_GATE_NONE;
    uint32_t dim = desc->head_dim, v_dim = desc->v_head_dim, kv_heads = trace->kv_heads;
    const weight_heads q = {&weights->q, gated ? 2 * dim : dim, 0}, gate = {&weights->q, 2 * dim, dim};
    const weight_heads k = {&weights->k, dim, 0}, v = {&weights->v, v_dim, 0};
    size_t column = 0;

    if (desc->kv_lora_rank > 0) {
        const verify_latent_params latent = stage_latent_params(chunk);

        return verify_latent_matrices(&latent, error);
    }
    vka_status status = check_projected_heads(chunk, q, trace->q_head, trace->q_heads, dim, &column, error);

    if (!status && gated)
        status = check_projected_heads(chunk, gate, trace->q_head, trace->q_heads, dim, &column, error);
    if (!status)
        status = check_projected_heads(chunk, k, trace->kv_head, kv_heads, dim, &column, error);
    return status ? status : check_projected_heads(chunk, v, trace->kv_head, kv_heads, v_dim, &column, error);
}

/* ---- output projection ---- */

/* Columns of the output weights that belong to `count` heads, one head after the other. */
static vka_status gather_columns(const vka_tensor *weights, const uint32_t *heads, uint32_t count, uint32_t dim,
                                 unsigned char **storage, vka_tensor *out, vka_error *error)
{
    size_t element = vka_dtype_size(weights->dtype);
    size_t stride = (size_t)(weights->row_stride ? weights->row_stride : weights->cols) * element;
    size_t piece = dim * element;
    unsigned char *to = vka_alloc(NULL, (size_t)weights->rows, count * piece);

    if (!to)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for the output weights of %u heads",
                        count);
    *storage = to;
    *out = (vka_tensor){.data = to, .dtype = weights->dtype, .rows = weights->rows, .cols = (uint64_t)count * dim};
    for (size_t r = 0; r < weights->rows; r++)
        for (uint32_t i = 0; i < count; i++, to += piece)
            memcpy(to, (const unsigned char *)weights->data + r * stride + heads[i] * piece, piece);
    return VKA_OK;
}

/* Local query heads behind partial `p`: those of its rank, or all. */
static void partial_heads(const stage_chunk *chunk, uint32_t p, uint32_t *first, uint32_t *count)
{
    const vka_trace *trace = chunk->trace;
    uint32_t ranks;
    const vka_rank *rank = vka_layer_ranks(chunk->engine->layer, &ranks);

    *first = 0;
    *count = trace->q_heads;
    if (trace->partial_rank[p] >= ranks)
        return;
    rank += trace->partial_rank[p];
    while (*first < trace->q_heads && trace->q_head[*first] != rank->q_begin)
        ++*first;
    *count = *first + rank->q_count <= trace->q_heads ? rank->q_count : trace->q_heads - *first;
}

static vka_status check_partial(const stage_chunk *chunk, uint32_t p, vka_error *error)
{
    const vka_layer_desc *desc = &chunk->layer->source.desc;
    const vka_trace *trace = chunk->trace;
    unsigned char *storage = NULL;
    uint32_t first, count;
    verify_projection_params params = {
        .rows = trace->rows,
        .cols = desc->hidden_size,
        .x_stride = (size_t)trace->q_heads * desc->v_head_dim,
        .stored = vka_layer_weight_dtype(chunk->engine->layer),
        .y = trace->partial + (size_t)p * trace->rows * desc->hidden_size,
        .y_stride = desc->hidden_size,
    };
    verify_result result = {0};
    vka_status status;

    partial_heads(chunk, p, &first, &count);
    params.depth = (size_t)count * desc->v_head_dim;
    params.x = trace->attention + (size_t)first * desc->v_head_dim;
    status = gather_columns(&chunk->layer->weights.o, trace->q_head + first, count, desc->v_head_dim, &storage,
                            &params.weights, error);
    if (!status)
        status = verify_projection(&params, &result, error);
    stage_note(chunk, RUN_CHECK_OUTPUT, (stage_place){0, 0, desc->hidden_size}, &result);
    vka_free(NULL, storage);
    return status;
}

vka_status stage_check_output(const stage_chunk *chunk, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t p = 0; p < chunk->trace->partials && !status; p++)
        status = check_partial(chunk, p, error);
    return status;
}

/* ---- sum ---- */

/* The output bias is added once, after the sum: one more partial with equal rows. */
static float *bias_rows(const stage_chunk *chunk)
{
    size_t hidden = chunk->layer->source.desc.hidden_size;
    float *rows = vka_alloc(NULL, chunk->trace->rows, hidden * sizeof(float));

    for (size_t r = 0; rows && r < chunk->trace->rows; r++)
        memcpy(rows + r * hidden, chunk->vectors->o_bias, hidden * sizeof(float));
    return rows;
}

/* Points at the partials that all devices have for the rows of `chunk`; returns their number. */
static size_t collect_partials(const stage_chunk *chunk, const run_trace_list *all, const float **partials)
{
    size_t elements = (size_t)chunk->trace->rows * chunk->layer->source.desc.hidden_size;
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++) {
        const vka_trace *trace = &all->items[i].trace;

        for (uint32_t p = 0; trace->first_row == chunk->trace->first_row && p < trace->partials; p++, count++)
            if (partials)
                partials[count] = trace->partial + p * elements;
    }
    return count;
}

vka_status stage_check_sum(const stage_chunk *chunk, const run_trace_list *all, vka_error *error)
{
    size_t hidden = chunk->layer->source.desc.hidden_size;
    size_t count = collect_partials(chunk, all, NULL);
    float *bias = chunk->vectors->o_bias ? bias_rows(chunk) : NULL;
    const float **partials = vka_alloc(NULL, count + 1, sizeof(partials[0]));
    verify_result result = {0};
    vka_status status;

    if (!partials || (chunk->vectors->o_bias && !bias)) {
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for %zu partials", count);
    } else {
        verify_sum_params params = {
            .count = chunk->trace->rows * hidden,
            .partial = partials,
            .got = chunk->call->output + chunk->trace->first_row * hidden,
            .got_dtype = VKA_F32,
        };

        params.partials = collect_partials(chunk, all, partials);
        if (bias)
            partials[params.partials++] = bias;
        status = verify_sum(&params, &result, error);
    }
    stage_note(chunk, RUN_CHECK_SUM, (stage_place){0, 0, hidden}, &result);
    vka_free(NULL, partials);
    vka_free(NULL, bias);
    return status;
}
