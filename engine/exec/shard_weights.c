/* See shard_weights.h. Rows and columns of the whole layer are [head][dim]; on the device each head is padded with
 * zeros to a multiple of 8. */
#include "exec/shard_weights.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/tensor.h"
#include "exec/latent.h"
#include "exec/staged.h"

typedef struct shard_source {
    const vka_layer *layer;
    const vka_shard *shard;
    const vka_layer_weights *weights;
} shard_source;

/* Where one local row of the qkv matrix comes from. */
typedef struct row_origin {
    const vka_tensor *matrix;
    const vka_tensor *bias; /* or the norm weights */
    uint64_t row;
    bool padding; /* past the head's own size: zeros */
} row_origin;

static row_origin head_row(const vka_tensor *matrix, const vka_tensor *bias, const uint32_t *heads, uint32_t row,
                           uint32_t dim, uint32_t pad)
{
    uint32_t i = row % pad;

    return (row_origin){matrix, bias, (uint64_t)heads[row / pad] * dim + i, i >= dim};
}

/* Rows of Q, then those of its gates; the tensor holds [query | gate] of each head. */
static row_origin q_origin(const shard_source *source, uint32_t row)
{
    const vka_layer *layer = source->layer;
    const vka_layer_weights *w = source->weights;
    uint32_t dim = layer->desc.head_dim, gates = source->shard->q_heads * layer->qk_pad;
    bool gate = row >= gates;
    row_origin origin =
        head_row(&w->q, &w->q_bias, source->shard->q_head, gate ? row - gates : row, dim, layer->qk_pad);

    if (layer->desc.gate != VKA_GATE_NONE) {
        origin.row += origin.row / dim * dim + (gate ? dim : 0);
    }
    return origin;
}

static row_origin qkv_origin(const shard_source *source, uint32_t row)
{
    const vka_layer *layer = source->layer;
    const vka_layer_weights *w = source->weights;
    uint32_t k_first = layer_k_column(layer, source->shard), v_first = layer_v_column(layer, source->shard);

    if (row < k_first) {
        return q_origin(source, row);
    }
    if (row < v_first) {
        return head_row(&w->k, &w->k_bias, source->shard->kv_head, row - k_first, layer->desc.head_dim, layer->qk_pad);
    }
    return head_row(&w->v, &w->v_bias, source->shard->kv_head, row - v_first, layer->desc.v_head_dim, layer->v_pad);
}

static void fill_qkv_row(void *user, uint32_t row, matrix_row *out)
{
    const shard_source *source = user;
    row_origin origin = qkv_origin(source, row);

    uint32_t first_kv = layer_k_column(source->layer, source->shard);

    if (origin.padding) {
        matrix_put_zeros(out, row < first_kv ? source->layer->hidden_pad : source->layer->kv_hidden_pad);
    } else {
        matrix_put(out, vka_tensor_element(origin.matrix, origin.row, 0), origin.matrix->dtype,
                   (uint32_t)origin.matrix->cols);
    }
}

/* The same from the first row of K on. */
static void fill_kv_row(void *user, uint32_t row, matrix_row *out)
{
    const shard_source *source = user;

    fill_qkv_row(user, layer_k_column(source->layer, source->shard) + row, out);
}

static void fill_output_row(void *user, uint32_t row, matrix_row *out)
{
    const shard_source *source = user;
    const vka_tensor *o = &source->weights->o;
    uint32_t dim = source->layer->desc.v_head_dim;

    for (uint32_t h = 0; h < source->shard->q_heads; h++) {
        matrix_put(out, vka_tensor_element(o, row, (uint64_t)source->shard->q_head[h] * dim), o->dtype, dim);
    }
}

/* Where a norm weight comes from: the i-th float of the norms. */
static row_origin norm_origin(const shard_source *source, uint32_t i)
{
    const vka_layer *layer = source->layer;
    const vka_shard *shard = source->shard;
    const vka_layer_weights *w = source->weights;
    uint32_t q = layer_norm_floats(layer, shard->q_heads), k = layer_norm_floats(layer, shard->kv_heads);
    bool wide = layer->desc.qk_norm == VKA_QK_NORM_FULL_WIDTH;
    static const uint32_t shared[1] = {0}; /* one weight for all heads */

    if (i < q) {
        return head_row(NULL, &w->q_norm, wide ? shard->q_head : shared, i, layer->desc.head_dim, layer->qk_pad);
    }
    if (i - q < k) {
        return head_row(NULL, &w->k_norm, wide ? shard->kv_head : shared, i - q, layer->desc.head_dim, layer->qk_pad);
    }
    return head_row(NULL, &w->k_out_norm, shared, i - q - k, layer->desc.head_dim, layer->qk_pad);
}

/* Value i of the constants: a bias, or a norm weight, 1 added where norms multiply by 1 + weight. */
static float constant(const shard_source *source, uint32_t i)
{
    uint32_t columns = layer_qkv_columns(source->layer, source->shard);
    bool bias = i < columns;
    row_origin origin = bias ? qkv_origin(source, i) : norm_origin(source, i - columns);
    float value = 0;

    if (origin.padding || origin.bias->data == NULL) {
        return 0;
    }
    vka_convert(&value, VKA_F32, vka_tensor_element(origin.bias, 0, origin.row), origin.bias->dtype, 1);
    return bias || source->layer->desc.norm_unit_offset == 0 ? value : 1 + value;
}

static void fill_constants(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    uint32_t first = (uint32_t)(offset / sizeof(float)), count = (uint32_t)(bytes / sizeof(float));
    float *out = target;

    for (uint32_t i = 0; i < count; i++) {
        out[i] = constant(user, first + i);
    }
}

/* Values of the local query heads of a tensor with one for each head of the layer. */
static vka_status take_terms(const shard_source *source, const vka_tensor *tensor, float **out, vka_error *error)
{
    uint32_t heads = source->shard->q_heads;

    if (tensor->data == NULL) {
        return VKA_OK;
    }
    *out = vka_alloc(&source->layer->context->allocator, heads, sizeof(**out));
    if (*out == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the sinks or slopes of %u heads", heads);
    }
    for (uint32_t h = 0; h < heads; h++) {
        vka_convert(&(*out)[h], VKA_F32, vka_tensor_element(tensor, 0, source->shard->q_head[h]), tensor->dtype, 1);
    }
    return VKA_OK;
}

static vka_status create_heads(shard_source *source, layer_device *out, gpu_device *gpu, vka_error *error)
{
    const vka_layer *layer = source->layer;
    const vka_allocator *allocator = &layer->context->allocator;
    uint32_t columns = layer_qkv_columns(layer, source->shard);
    uint32_t kv_first = layer->desc.attend == VKA_ATTEND_CAUSAL ? columns : layer_k_column(layer, source->shard);
    const weight_matrix qkv = {.rows = kv_first, .depth = layer->hidden_pad, .dtype = layer->weight_dtype};
    const weight_matrix kv = {.rows = columns - kv_first, .depth = layer->kv_hidden_pad, .dtype = layer->weight_dtype};
    uint64_t constants = layer_constants(layer, source->shard) * sizeof(float);
    vka_status status = gpu_buffer_create(&out->constants, gpu, constants, GPU_MEMORY_DEVICE, "layer constants", error);

    if (status == VKA_OK) {
        status = staged_upload(gpu, out->constants, 0, constants, sizeof(float), fill_constants, source, error);
    }
    if (status == VKA_OK) {
        status = matrix_create(&out->qkv, gpu, &qkv, "QKV weights", fill_qkv_row, source, allocator, error);
    }
    if (status == VKA_OK && kv_first < columns) {
        status = matrix_create(&out->kv, gpu, &kv, "KV weights", fill_kv_row, source, allocator, error);
    }
    return status;
}

vka_status shard_weights_create(vka_layer *layer, uint32_t device, const vka_layer_weights *weights, vka_error *error)
{
    layer_device *out = &layer->devices[device];
    gpu_device *gpu = layer->context->devices[device].gpu;
    shard_source source = {layer, &out->shard, weights};
    const weight_matrix output = {
        .rows = layer->desc.hidden_size, .depth = out->shard.q_heads * layer->o_pad, .dtype = layer->weight_dtype};
    vka_status status = layer_is_latent(layer) ? latent_weights_create(layer, device, weights, error)
                                               : create_heads(&source, out, gpu, error);

    if (status == VKA_OK) {
        status = matrix_create(&out->output, gpu, &output, "output projection weights", fill_output_row, &source,
                               &layer->context->allocator, error);
    }
    if (status == VKA_OK) {
        status = take_terms(&source, &weights->sinks, &out->sinks, error);
    }
    if (status == VKA_OK) {
        status = take_terms(&source, &weights->alibi_slopes, &out->slopes, error);
    }
    return status;
}
