/* See latent.h. W_uk^T is made head by head from the rows of kv_b; the rest is the checks of verify.h on the parts of
 * each array. */
#include "verify/latent.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "verify/internal.h"

static uint32_t plain_dim(const vka_layer_desc *desc)
{
    return desc->head_dim - desc->rotary_dim;
}

static size_t q_columns(const vka_layer_desc *desc, uint32_t q_heads)
{
    return desc->q_lora_rank > 0 ? desc->q_lora_rank : (size_t)q_heads * desc->head_dim;
}

size_t verify_latent_qkv_columns(const vka_layer_desc *desc, uint32_t q_heads)
{
    return q_columns(desc, q_heads) + desc->kv_lora_rank + desc->rotary_dim;
}

size_t verify_latent_attention_elements(const vka_layer_desc *desc)
{
    return (size_t)desc->kv_lora_rank + desc->v_head_dim;
}

static vka_tensor rows_of(const vka_tensor *tensor, size_t first, size_t rows)
{
    size_t stride = (size_t)(tensor->row_stride ? tensor->row_stride : tensor->cols);
    vka_tensor view = *tensor;

    view.data = (const unsigned char *)tensor->data + first * stride * vka_dtype_size(tensor->dtype);
    view.rows = rows;
    return view;
}

/* ---- projections ---- */

/* A part of a product: `weights` against `x`, at `column` of rows `y`. */
typedef struct product {
    verify_latent_stage stage;
    const float *x, *y;
    size_t x_stride, y_stride, column;
} product;

static vka_status check_product(const verify_latent_params *p, const product *of, const vka_tensor *weights,
                                vka_error *error)
{
    const verify_projection_params params = {.rows = p->trace->rows,
                                             .cols = (size_t)weights->rows,
                                             .depth = (size_t)weights->cols,
                                             .x = of->x,
                                             .x_stride = of->x_stride,
                                             .weights = *weights,
                                             .stored = p->stored,
                                             .y = of->y + of->column,
                                             .y_stride = of->y_stride};
    verify_result result = {0};
    vka_status status = verify_projection(&params, &result, error);

    p->note(p->user, of->stage, 0, of->column, params.cols, &result);
    return status;
}

/* [plain parts of all local heads | rotary parts] */
static vka_status check_q(const verify_latent_params *p, product of, vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    uint32_t heads = p->trace->q_heads, plain = plain_dim(desc), turned = desc->rotary_dim;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; i < heads && !status; i++) {
        size_t first = (size_t)p->trace->q_head[i] * desc->head_dim;
        const vka_tensor before = rows_of(&p->weights->q, first, plain);
        const vka_tensor behind = rows_of(&p->weights->q, first + plain, turned);

        of.column = (size_t)i * plain;
        status = check_product(p, &of, &before, error);
        of.column = (size_t)heads * plain + (size_t)i * turned;
        if (!status)
            status = check_product(p, &of, &behind, error);
    }
    return status;
}

static vka_status check_down(const verify_latent_params *p, vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    const vka_trace *trace = p->trace;
    product of = {VERIFY_LATENT_QKV,
                  trace->hidden,
                  trace->qkv,
                  desc->hidden_size,
                  verify_latent_qkv_columns(desc, trace->q_heads),
                  0};
    vka_status status = desc->q_lora_rank > 0 ? check_product(p, &of, &p->weights->q_a, error) : check_q(p, of, error);

    of.column = q_columns(desc, trace->q_heads);
    if (!status)
        status = check_product(p, &of, &p->weights->kv_a, error);
    if (status || desc->q_lora_rank == 0)
        return status;
    of = (product){
        VERIFY_LATENT_QKV, trace->q_latent, trace->q_up, desc->q_lora_rank, (size_t)trace->q_heads * desc->head_dim, 0};
    return check_q(p, of, error);
}

/* Q's plain and rotary parts as they are before they become queries. */
static const float *raw_q(const verify_latent_params *p, size_t *stride)
{
    bool up = p->desc->q_lora_rank > 0;
    uint32_t heads = p->trace->q_heads;

    *stride = up ? (size_t)heads * p->desc->head_dim : verify_latent_qkv_columns(p->desc, heads);
    return up ? p->trace->q_up : p->trace->qkv;
}

/* The K rows of a head in kv_b as columns. */
static void transpose(const vka_tensor *rows, unsigned char *out)
{
    size_t size = vka_dtype_size(rows->dtype), stride = (size_t)(rows->row_stride ? rows->row_stride : rows->cols);

    for (size_t col = 0; col < rows->cols; col++)
        for (size_t row = 0; row < rows->rows; row++, out += size)
            memcpy(out, (const unsigned char *)rows->data + (row * stride + col) * size, size);
}

static size_t kv_b_row(const verify_latent_params *p, uint32_t head)
{
    return (size_t)head * (plain_dim(p->desc) + p->desc->v_head_dim);
}

/* One head: the latent part of its query, and its values. */
static vka_status check_up(const verify_latent_params *p, uint32_t local, unsigned char *storage, vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    const vka_trace *trace = p->trace;
    uint32_t heads = trace->q_heads, plain = plain_dim(desc), rank = desc->kv_lora_rank,
             width = rank + desc->rotary_dim;
    uint32_t head = trace->q_head[local], next = (head + 1) % desc->heads;
    size_t v_row = kv_b_row(p, p->mutant == VERIFY_WRONG_KV_HEAD ? next : head) + plain;
    const vka_tensor k = rows_of(&p->weights->kv_b, kv_b_row(p, head), plain);
    const vka_tensor v = rows_of(&p->weights->kv_b, v_row, desc->v_head_dim);
    const vka_tensor turned = {.data = storage, .dtype = k.dtype, .rows = rank, .cols = plain};
    product queries = {VERIFY_LATENT_EPILOGUE, NULL, trace->q, 0, (size_t)heads * width, (size_t)local * width};
    const product values = {
        VERIFY_LATENT_ATTENTION, trace->latents + (size_t)local * rank, trace->attention,
        (size_t)heads * rank,    (size_t)heads * desc->v_head_dim,      (size_t)local * desc->v_head_dim};

    queries.x = raw_q(p, &queries.x_stride) + (size_t)local * plain;
    transpose(&k, storage);
    vka_status status = check_product(p, &queries, &turned, error);
    return status ? status : check_product(p, &values, &v, error);
}

vka_status verify_latent_matrices(const verify_latent_params *p, vka_error *error)
{
    size_t elements = (size_t)p->desc->kv_lora_rank * plain_dim(p->desc);
    unsigned char *storage = vka_alloc(NULL, elements, vka_dtype_size(p->weights->kv_b.dtype));
    vka_status status = check_down(p, error);

    if (!storage && !status)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for the key weights of a head");
    for (uint32_t i = 0; i < p->trace->q_heads && !status; i++)
        status = check_up(p, i, storage, error);
    vka_free(NULL, storage);
    return status;
}

/* ---- norms and RoPE ---- */

/* Q's latent, as epilogue.c bounds a norm; it may be longer than a head. */
static void check_q_norm(const verify_latent_params *p, const verify_latent_rows *rows, const float *weights)
{
    size_t count = p->desc->q_lora_rank, stride = verify_latent_qkv_columns(p->desc, p->trace->q_heads);
    double offset = p->desc->norm_unit_offset != 0 ? 1 : 0;
    verify_result result = {0};

    for (size_t r = rows->row; r < rows->row + rows->rows; r++) {
        const float *raw = p->trace->qkv + r * stride, *got = p->trace->q_latent + r * count;
        double squares = 0;

        for (size_t i = 0; i < count; i++)
            squares += (double)raw[i] * (double)raw[i];
        for (size_t i = 0; i < count; i++) {
            double factor = 1 / sqrt(squares / (double)count + p->desc->norm_eps);
            double want = (double)raw[i] * factor * (offset + (double)weights[i]);

            verify_element(&result, (r - rows->row) * count + i, (double)got[i], want,
                           ((double)count / 2 + 24) * UNIT * fabs(want) + 0x1p-126);
        }
    }
    p->note(p->user, VERIFY_LATENT_EPILOGUE, rows->row, 0, count, &result);
}

static vka_status check_turned(const verify_latent_params *p, const verify_latent_rows *rows, uint32_t offset,
                               verify_epilogue_params *params, size_t column, vka_error *error)
{
    vka_layer_desc desc = *p->desc;
    verify_result result = {0};

    desc.rotary_offset = offset;
    params->rows = rows->rows;
    params->heads = 1;
    params->desc = &desc;
    params->turned = true;
    params->position = rows->turned;
    params->length = (uint32_t)rows->keys;
    params->mutant = p->mutant;
    vka_status status = verify_epilogue(params, &result, error);
    p->note(p->user, VERIFY_LATENT_EPILOGUE, rows->row, column, params->head_dim, &result);
    return status;
}

/* The vectors in the cache: normed latent, turned rotary part. */
static vka_status check_cached(const verify_latent_params *p, const verify_latent_rows *rows, const float *norm,
                               vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    size_t stride = verify_latent_qkv_columns(desc, p->trace->q_heads), first = q_columns(desc, p->trace->q_heads);
    size_t width = desc->kv_lora_rank + desc->rotary_dim;
    verify_epilogue_params params = {.head_dim = width,
                                     .raw = p->trace->qkv + rows->row * stride + first,
                                     .raw_stride = stride,
                                     .norm = norm,
                                     .norm_dim = desc->kv_lora_rank,
                                     .got = rows->k + rows->position * width,
                                     .got_stride = width,
                                     .got_dtype = rows->cache};

    return check_turned(p, rows, desc->kv_lora_rank, &params, first, error);
}

static vka_status check_turned_q(const verify_latent_params *p, const verify_latent_rows *rows, uint32_t local,
                                 vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    uint32_t heads = p->trace->q_heads, width = desc->kv_lora_rank + desc->rotary_dim;
    size_t stride, column = (size_t)local * width + desc->kv_lora_rank;
    const float *raw = raw_q(p, &stride);
    verify_epilogue_params params = {.head_dim = desc->rotary_dim, .got_dtype = VKA_F32};

    params.raw = raw + rows->row * stride + (size_t)heads * plain_dim(desc) + (size_t)local * desc->rotary_dim;
    params.raw_stride = stride;
    params.got_stride = (size_t)heads * width;
    params.got = p->trace->q + rows->row * params.got_stride + column;
    return check_turned(p, rows, 0, &params, column, error);
}

/* ---- attention ---- */

static double element_or(const vka_tensor *tensor, uint32_t i, double otherwise)
{
    float value;

    if (!tensor->data)
        return otherwise;
    vka_convert(&value, VKA_F32, (const unsigned char *)tensor->data + i * vka_dtype_size(tensor->dtype), tensor->dtype,
                1);
    return (double)value;
}

static vka_status check_sums(const verify_latent_params *p, const verify_latent_rows *rows, uint32_t local,
                             vka_error *error)
{
    const vka_layer_desc *desc = p->desc;
    size_t rank = desc->kv_lora_rank, width = rank + desc->rotary_dim, heads = p->trace->q_heads;
    uint32_t head = p->trace->q_head[local];
    float sink = (float)element_or(&p->weights->sinks, head, 0);
    const verify_attention_params params = {.rows = rows->rows,
                                            .keys = rows->keys,
                                            .qk_dim = width,
                                            .v_dim = rank,
                                            .q = p->trace->q + (rows->row * heads + local) * width,
                                            .q_stride = heads * width,
                                            .k = rows->k,
                                            .v = rows->k,
                                            .k_key_stride = width,
                                            .v_key_stride = width,
                                            .kv_heads = 1,
                                            .scale = desc->scale,
                                            .position = rows->position,
                                            .causal = true,
                                            .window = desc->window,
                                            .softcap = desc->softcap,
                                            .slope = element_or(&p->weights->alibi_slopes, head, 0),
                                            .sink = p->weights->sinks.data ? &sink : NULL,
                                            .got = p->trace->latents + (rows->row * heads + local) * rank,
                                            .got_stride = heads * rank,
                                            .mutant = p->mutant};
    verify_result result = {0};
    vka_status status = verify_attention(&params, &result, NULL, error);

    p->note(p->user, VERIFY_LATENT_ATTENTION, rows->row, local * rank, rank, &result);
    return status;
}

/* ---- one sequence ---- */

static void load_norms(const verify_latent_params *p, float *q, float *kv)
{
    const vka_tensor *from[2] = {&p->weights->q_a_norm, &p->weights->kv_a_norm};
    float *to[2] = {q, kv};

    for (int i = 0; i < 2; i++)
        if (from[i]->data)
            vka_convert(to[i], VKA_F32, from[i]->data, from[i]->dtype, (size_t)from[i]->cols);
}

vka_status verify_latent_sequence(const verify_latent_params *p, const verify_latent_rows *rows, vka_error *error)
{
    size_t rank = p->desc->q_lora_rank;
    float *norms = vka_alloc(NULL, rank + p->desc->kv_lora_rank, sizeof(float));
    vka_status status;

    if (!norms)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for norm weights");
    load_norms(p, norms, norms + rank);
    if (rank > 0)
        check_q_norm(p, rows, norms);
    status = check_cached(p, rows, norms + rank, error);
    for (uint32_t i = 0; i < p->trace->q_heads && !status; i++) {
        status = check_turned_q(p, rows, i, error);
        if (!status)
            status = check_sums(p, rows, i, error);
    }
    vka_free(NULL, norms);
    return status;
}
