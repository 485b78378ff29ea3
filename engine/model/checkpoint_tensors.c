/* Rows of Q, K and V that stand in one tensor: views where they are one run each, copies where they alternate or where
 * matrices lie transposed. */
#include "model/checkpoint_tensors.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "model/json.h"
#include "model/safetensors.h"

static bool is_quantised(const vka_slot *slot)
{
    return slot->format && slot->format->decode;
}

/* Of a quantised tensor the type is what decode() makes of it, and the data are blocks still. */
static vka_status as_matrix(vka_tensor *out, const vka_slot *slot, vka_error *error)
{
    vka_named_tensor tensor = *slot->tensor;
    char name[VKA_PRINTABLE_BYTES];

    if (!slot->shard->gguf)
        return vka_tensor_as_matrix(out, slot->tensor, slot->shard->path, error);
    if (is_quantised(slot))
        tensor.dtype = VKA_F32;
    if (tensor.dtype == VKA_DTYPE_DEFAULT)
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "%s: tensor '%s' has the element type %s, expected F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or "
                        "Q6_K",
                        slot->shard->path, vka_printable(tensor.name, name),
                        slot->format ? slot->format->name : "of an unknown number");
    return vka_tensor_as_matrix(out, &tensor, slot->shard->path, error);
}

/* From blocks to F32; other tensors stay as they are. */
static vka_status decode(vka_tensor *tensor, void **owned, const vka_slot *slot, const char *name, vka_error *error)
{
    float *values;

    if (!is_quantised(slot))
        return VKA_OK;
    values = vka_alloc(NULL, (size_t)(tensor->rows * tensor->cols), sizeof(float));
    if (!values)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for tensor '%s' as F32, %llu elements", name,
                        (unsigned long long)(tensor->rows * tensor->cols));
    vka_blocks_decode(values, slot->format, tensor->data, tensor->rows * tensor->cols / slot->format->elements);
    tensor->data = *owned = values;
    return VKA_OK;
}

/* Bytes of `elements` neighbours in a row; whole blocks of them. */
static uint64_t bytes_of(const vka_slot *slot, const vka_tensor *whole, uint64_t elements)
{
    return is_quantised(slot) ? elements / slot->format->elements * slot->format->bytes
                              : elements * vka_dtype_size(whole->dtype);
}

/* What a merged tensor consists of. Of a bias, elements are meant where rows are said. */
typedef struct merge {
    uint64_t rows[3]; /* of Q, K and V in all */
    uint64_t groups;  /* how often [Q | K | V] repeats */
    uint64_t row_bytes;
    bool is_bias;
    bool transposed; /* columns are meant where rows are said */
} merge;

static uint64_t total(const merge *m)
{
    return m->rows[0] + m->rows[1] + m->rows[2];
}

static vka_status check_whole(const vka_tensor *whole, const merge *m, uint64_t cols, const char *name,
                              vka_error *error)
{
    uint64_t rows = m->is_bias ? 1 : total(m);

    if (m->transposed)
        rows = cols;
    if (m->is_bias || m->transposed)
        cols = total(m);
    if (whole->rows == rows && whole->cols == cols)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_FORMAT,
                    "tensor '%s' has shape [%llu, %llu], expected [%llu, %llu]: %llu + %llu + %llu for Q, K and V",
                    name, (unsigned long long)whole->rows, (unsigned long long)whole->cols, (unsigned long long)rows,
                    (unsigned long long)cols, (unsigned long long)m->rows[0], (unsigned long long)m->rows[1],
                    (unsigned long long)m->rows[2]);
}

/* Where the rows of part `which` begin in each repetition. */
static uint64_t part_begin(const merge *m, int which)
{
    uint64_t begin = 0;

    for (int i = 0; i < which; i++)
        begin += m->rows[i] / m->groups;
    return begin;
}

static void set_part(vka_tensor *part, const vka_tensor *whole, const merge *m, int which, const void *data)
{
    *part = *whole;
    part->data = data;
    if (m->is_bias)
        part->cols = m->rows[which];
    else
        part->rows = m->rows[which];
}

static vka_status copy_part(vka_tensor *part, void **owned, const vka_tensor *whole, const merge *m, int which,
                            const char *name, vka_error *error)
{
    uint64_t run = m->rows[which] / m->groups * m->row_bytes, stride = total(m) / m->groups * m->row_bytes;
    const char *from = (const char *)whole->data + part_begin(m, which) * m->row_bytes;
    char *copy = vka_alloc(NULL, (size_t)m->rows[which], (size_t)m->row_bytes);

    if (!copy)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a part of tensor '%s', %llu bytes", name,
                        (unsigned long long)(m->rows[which] * m->row_bytes));
    for (uint64_t i = 0; i < m->groups; i++)
        memcpy(copy + i * run, from + i * stride, (size_t)run);
    *owned = copy;
    set_part(part, whole, m, which, copy);
    return VKA_OK;
}

/* Columns first .. first + count - 1 of `whole`, as rows. */
static vka_status transpose(vka_tensor *part, void **owned, const vka_tensor *whole, uint64_t first, uint64_t count,
                            const char *name, vka_error *error)
{
    size_t size = vka_dtype_size(whole->dtype);
    char *copy = vka_alloc(NULL, (size_t)count, (size_t)whole->rows * size);

    if (!copy)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a copy of tensor '%s', %llu bytes", name,
                        (unsigned long long)(count * whole->rows * size));
    for (uint64_t row = 0; row < whole->rows; row++) {
        const char *from = (const char *)whole->data + (row * whole->cols + first) * size;

        for (uint64_t col = 0; col < count; col++)
            memcpy(copy + (col * whole->rows + row) * size, from + col * size, size);
    }
    *owned = copy;
    *part = (vka_tensor){.data = copy, .dtype = whole->dtype, .rows = count, .cols = whole->rows};
    return VKA_OK;
}

static vka_status split(vka_model_layer *out, const vka_found_tensors *all, int weight, vka_error *error)
{
    const vka_found_tensor *found = &all->tensors[weight];
    const char *name = all->texts[weight];
    vka_tensor *part = vka_weight_at(&out->weights, weight);
    int first = weight >= VKA_WEIGHT_Q_BIAS ? VKA_WEIGHT_Q_BIAS : VKA_WEIGHT_Q;
    merge m = {.is_bias = weight >= VKA_WEIGHT_Q_BIAS, .groups = 1};
    vka_tensor whole = {0};
    vka_status status = as_matrix(&whole, found->slot, error);

    for (int i = 0; i < 3; i++) {
        vka_weight_shape shape = vka_weight_shape_of(&out->desc, first + i);

        m.rows[i] = m.is_bias ? shape.cols : shape.rows;
    }
    m.transposed = found->arrangement == VKA_Q_K_V_TRANSPOSED;
    if (status == VKA_OK)
        status = check_whole(&whole, &m, out->desc.hidden_size, name, error);
    if (status != VKA_OK)
        return status;
    if (m.transposed)
        return transpose(part, &out->owned[weight], &whole, part_begin(&m, weight - first), m.rows[weight - first],
                         name, error);
    if (found->arrangement == VKA_GROUPS)
        m.groups = out->desc.kv_heads;
    if (m.is_bias && is_quantised(found->slot))
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "tensor '%s' is a quantised bias", name);
    m.row_bytes = bytes_of(found->slot, &whole, m.is_bias ? 1 : whole.cols);
    if (m.groups == 1) {
        set_part(part, &whole, &m, weight - first,
                 (const char *)whole.data + part_begin(&m, weight - first) * m.row_bytes);
        return decode(part, &out->owned[weight], found->slot, name, error);
    }
    if (out->desc.heads % out->desc.kv_heads != 0)
        return vka_fail(error, VKA_ERR_FORMAT,
                        "tensor '%s' holds groups of heads, but %u heads are no multiple of %u KV heads", name,
                        out->desc.heads, out->desc.kv_heads);
    return copy_part(part, &out->owned[weight], &whole, &m, weight - first, name, error);
}

/* Slopes of n heads (Press et al.): 2^(-8 i / n), i = 1 .. n, for a power of two; else those of the power of two below,
 * then every other one of twice that power. Falcon rounds them to bfloat16 and scales them with the scores. */
static double slope_of(uint32_t head, uint32_t heads)
{
    uint32_t power = 1;

    while (power * 2 <= heads)
        power *= 2;
    return head < power ? exp2(-8.0 * (head + 1) / power) : exp2(-4.0 * (2.0 * (head - power) + 1) / power);
}

static vka_status make_slopes(vka_model_layer *out, vka_error *error)
{
    uint32_t heads = out->desc.heads;
    float *slopes = vka_alloc(NULL, heads, sizeof(float));

    if (!slopes)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u ALiBi slopes", heads);
    out->owned[VKA_WEIGHT_ALIBI_SLOPES] = slopes;
    for (uint32_t i = 0; i < heads; i++) {
        float exact = (float)slope_of(i, heads);
        uint16_t rounded;

        vka_convert(&rounded, VKA_BF16, &exact, VKA_F32, 1);
        vka_convert(&slopes[i], VKA_F32, &rounded, VKA_BF16, 1);
        slopes[i] = (float)(slopes[i] * out->desc.scale);
    }
    out->weights.alibi_slopes = (vka_tensor){.data = slopes, .dtype = VKA_F32, .rows = 1, .cols = heads};
    return VKA_OK;
}

static vka_status take_whole(vka_model_layer *out, const vka_found_tensors *all, int weight, vka_error *error)
{
    const vka_slot *slot = all->tensors[weight].slot;
    const char *name = all->texts[weight];
    vka_tensor *tensor = vka_weight_at(&out->weights, weight);
    vka_status status = as_matrix(tensor, slot, error);
    vka_tensor lying = *tensor;

    if (status != VKA_OK)
        return status;
    if (all->tensors[weight].arrangement == VKA_TRANSPOSED)
        return transpose(tensor, &out->owned[weight], &lying, 0, lying.cols, name, error);
    return decode(tensor, &out->owned[weight], slot, name, error);
}

vka_status vka_order_tensors(const vka_found_tensors *found, vka_model_layer *out, vka_error *error)
{
    vka_status status = VKA_OK;

    out->weights = (vka_layer_weights){.struct_size = sizeof(out->weights)};
    for (int i = 0; i < VKA_WEIGHT_COUNT && status == VKA_OK; i++) {
        const vka_found_tensor *tensor = &found->tensors[i];

        if (!tensor->slot)
            continue;
        status = vka_is_merged(tensor->arrangement) ? split(out, found, i, error) : take_whole(out, found, i, error);
    }
    if (status == VKA_OK && out->desc.alibi)
        status = make_slopes(out, error);
    return status;
}
