/* See latent.h. kv_b is cut in two: its K rows are transposed, head by head, its V rows stay as they are. */
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/tensor.h"
#include "exec/latent.h"
#include "exec/staged.h"

typedef struct latent_source {
    const vka_layer *layer;
    const vka_shard *shard;
    const vka_layer_weights *weights;
} latent_source;

static uint32_t plain_dim(const vka_layer_desc *desc)
{
    return desc->head_dim - desc->rotary_dim;
}

static void put_row(matrix_row *out, const vka_tensor *tensor, uint64_t row)
{
    matrix_put(out, vka_tensor_element(tensor, row, 0), tensor->dtype, (uint32_t)tensor->cols);
}

/* Row i of a part that has `dim` rows of the tensor, from row `first` on, and zeros behind them. */
static void put_part_row(matrix_row *out, const vka_tensor *tensor, uint64_t first, uint32_t i, uint32_t dim)
{
    if (i < dim) {
        put_row(out, tensor, first + i);
    } else {
        matrix_put_zeros(out, vka_pad8((uint32_t)tensor->cols));
    }
}

/* Row of [plain parts of all local heads | rotary parts]. */
static void fill_q_row(void *user, uint32_t row, matrix_row *out)
{
    const latent_source *source = user;
    const vka_layer *layer = source->layer;
    uint32_t plain = plain_dim(&layer->desc), turned = source->shard->q_heads * layer->latent.plain;
    bool rotary = row >= turned;
    uint32_t pad = rotary ? layer->latent.rotary : layer->latent.plain, local = rotary ? row - turned : row;
    uint64_t head = source->shard->q_head[local / pad];

    put_part_row(out, &source->weights->q, head * layer->desc.head_dim + (rotary ? plain : 0), local % pad,
                 rotary ? layer->desc.rotary_dim : plain);
}

/* Row of [Q's latent, or Q | latent | K rotary]. */
static void fill_down_row(void *user, uint32_t row, matrix_row *out)
{
    const latent_source *source = user;
    const vka_layer *layer = source->layer;
    const vka_layer_weights *w = source->weights;
    uint32_t k_first = layer_k_column(layer, source->shard), latent = layer->latent.latent;

    if (row >= k_first + latent) {
        put_part_row(out, &w->kv_a, layer->desc.kv_lora_rank, row - k_first - latent, layer->desc.rotary_dim);
    } else if (row >= k_first) {
        put_part_row(out, &w->kv_a, 0, row - k_first, layer->desc.kv_lora_rank);
    } else if (layer->latent.rank > 0) {
        put_part_row(out, &w->q_a, 0, row, layer->desc.q_lora_rank);
    } else {
        fill_q_row(user, row, out);
    }
}

/* First row of a local head in kv_b: its part of K, then V. */
static uint64_t kv_b_row(const latent_source *source, uint32_t local)
{
    const vka_layer_desc *desc = &source->layer->desc;

    return (uint64_t)source->shard->q_head[local] * (plain_dim(desc) + desc->v_head_dim);
}

/* Element l of the latent, of one head: a column of that head's part of K. */
static void fill_k_up_row(void *user, uint32_t row, matrix_row *out)
{
    const latent_source *source = user;
    const vka_tensor *kv_b = &source->weights->kv_b;
    uint32_t block = source->layer->latent.latent, plain = plain_dim(&source->layer->desc);
    uint64_t first = kv_b_row(source, row / block);
    size_t size = vka_dtype_size(kv_b->dtype);
    unsigned char column[VKA_MAX_HEAD_DIM * sizeof(float)];

    if (row % block >= source->layer->desc.kv_lora_rank) {
        matrix_put_zeros(out, source->layer->latent.plain);
        return;
    }
    for (uint32_t i = 0; i < plain; i++) {
        memcpy(column + i * size, vka_tensor_element(kv_b, first + i, row % block), size);
    }
    matrix_put(out, column, kv_b->dtype, plain);
}

static void fill_v_up_row(void *user, uint32_t row, matrix_row *out)
{
    const latent_source *source = user;
    const vka_layer *layer = source->layer;
    uint32_t block = layer->latent.value;

    put_part_row(out, &source->weights->kv_b, kv_b_row(source, row / block) + plain_dim(&layer->desc), row % block,
                 layer->desc.v_head_dim);
}

/* Weights of both norms, [Q's latent | latent | zeros], 1 added where norms multiply by 1 + weight. */
static void fill_norms(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const latent_source *source = user;
    const vka_layer *layer = source->layer;
    uint32_t first = (uint32_t)(offset / sizeof(float)), count = (uint32_t)(bytes / sizeof(float));
    uint32_t rank = layer->latent.rank;
    float *out = target;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t col = first + i < rank ? first + i : first + i - rank;
        const vka_tensor *from = first + i < rank ? &source->weights->q_a_norm : &source->weights->kv_a_norm;
        out[i] = 0;
        if (col < from->cols) {
            vka_convert(&out[i], VKA_F32, vka_tensor_element(from, 0, col), from->dtype, 1);
            out[i] += layer->desc.norm_unit_offset != 0 ? 1 : 0;
        }
    }
}

static vka_status create_norms(latent_source *source, layer_device *out, gpu_device *gpu, vka_error *error)
{
    uint64_t bytes = ((uint64_t)source->layer->latent.rank + source->layer->qk_pad) * sizeof(float);
    vka_status status = gpu_buffer_create(&out->constants, gpu, bytes, GPU_MEMORY_DEVICE, "layer constants", error);

    return status == VKA_OK ? staged_upload(gpu, out->constants, 0, bytes, sizeof(float), fill_norms, source, error)
                            : status;
}

vka_status latent_weights_create(vka_layer *layer, uint32_t device, const vka_layer_weights *weights, vka_error *error)
{
    layer_device *out = &layer->devices[device];
    gpu_device *gpu = layer->context->devices[device].gpu;
    const vka_latent *part = &layer->latent;
    uint32_t heads = out->shard.q_heads;
    latent_source source = {layer, &out->shard, weights};
    const struct {
        weight_matrix *matrix;
        uint32_t rows, depth, block_rows;
        const char *name;
        matrix_row_fn fill;
    } matrices[] = {
        {&out->qkv, layer_qkv_columns(layer, &out->shard), layer->hidden_pad, 0, "latent weights", fill_down_row},
        {&out->q_up, heads * (part->plain + part->rotary), part->rank, 0, "query weights", fill_q_row},
        {&out->k_up, heads * part->latent, part->plain, part->latent, "key weights", fill_k_up_row},
        {&out->v_up, heads * part->value, part->latent, part->value, "value weights", fill_v_up_row},
    };
    vka_status status = create_norms(&source, out, gpu, error);

    for (size_t i = 0; status == VKA_OK && i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        const weight_matrix shape = {.rows = matrices[i].rows,
                                     .depth = matrices[i].depth,
                                     .dtype = layer->weight_dtype,
                                     .block_rows = matrices[i].block_rows};
        if (shape.depth > 0) { /* no q_up without q_lora_rank */
            status = matrix_create(matrices[i].matrix, gpu, &shape, matrices[i].name, matrices[i].fill, &source,
                                   &layer->context->allocator, error);
        }
    }
    return status;
}
