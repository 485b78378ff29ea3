/* What a description asks of the weights, and the check that it is there: this is what keeps a configuration that does
 * not belong to the weights from giving a plausible wrong result. */
#include "model/weights.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef enum width {
    ONE,
    HIDDEN,
    KV_HIDDEN,
    Q_ROWS, /* with the gate's, where there is one */
    Q_COLS,
    K_ROWS,
    V_ROWS,
    O_COLS,
    HEAD,
    Q_NORM,
    K_NORM,
    HEADS,
    Q_RANK,
    KV_RANK,
    KV_A_ROWS,
    KV_B_ROWS,
} width;

typedef struct weight_row {
    const char *name;
    const char *names;
    size_t offset;
    width rows, cols;
    vka_weight_kind kind;
} weight_row;

#define ROW(name, shape, rows, cols, kind)                                                                             \
    {                                                                                                                  \
#name, shape, offsetof(vka_layer_weights, name), rows, cols, VKA_KIND_##kind                                   \
    }

static const weight_row table[VKA_WEIGHT_COUNT] = {
    [VKA_WEIGHT_Q] =
        ROW(q, "[heads * head_dim (twice with a gate), hidden_size or q_lora_rank]", Q_ROWS, Q_COLS, MATRIX),
    [VKA_WEIGHT_K] = ROW(k, "[kv_heads * head_dim, kv_hidden_size]", K_ROWS, KV_HIDDEN, MATRIX),
    [VKA_WEIGHT_V] = ROW(v, "[kv_heads * v_head_dim, kv_hidden_size]", V_ROWS, KV_HIDDEN, MATRIX),
    [VKA_WEIGHT_O] = ROW(o, "[hidden_size, heads * v_head_dim]", HIDDEN, O_COLS, MATRIX),
    [VKA_WEIGHT_Q_BIAS] = ROW(q_bias, "[heads * head_dim (twice with a gate)]", ONE, Q_ROWS, BIAS),
    [VKA_WEIGHT_K_BIAS] = ROW(k_bias, "[kv_heads * head_dim]", ONE, K_ROWS, BIAS),
    [VKA_WEIGHT_V_BIAS] = ROW(v_bias, "[kv_heads * v_head_dim]", ONE, V_ROWS, BIAS),
    [VKA_WEIGHT_O_BIAS] = ROW(o_bias, "[hidden_size]", ONE, HIDDEN, BIAS),
    [VKA_WEIGHT_Q_NORM] = ROW(q_norm, "[head_dim, or heads * head_dim for the full width]", ONE, Q_NORM, NORM),
    [VKA_WEIGHT_K_NORM] = ROW(k_norm, "[head_dim, or kv_heads * head_dim for the full width]", ONE, K_NORM, NORM),
    [VKA_WEIGHT_K_OUT_NORM] = ROW(k_out_norm, "[head_dim]", ONE, HEAD, NORM),
    [VKA_WEIGHT_SINKS] = ROW(sinks, "[heads]", ONE, HEADS, LOGIT),
    [VKA_WEIGHT_ALIBI_SLOPES] = ROW(alibi_slopes, "[heads]", ONE, HEADS, SLOPE),
    [VKA_WEIGHT_Q_A] = ROW(q_a, "[q_lora_rank, hidden_size]", Q_RANK, HIDDEN, MATRIX),
    [VKA_WEIGHT_Q_A_NORM] = ROW(q_a_norm, "[q_lora_rank]", ONE, Q_RANK, NORM),
    [VKA_WEIGHT_KV_A] = ROW(kv_a, "[kv_lora_rank + rotary_dim, hidden_size]", KV_A_ROWS, HIDDEN, MATRIX),
    [VKA_WEIGHT_KV_A_NORM] = ROW(kv_a_norm, "[kv_lora_rank]", ONE, KV_RANK, NORM),
    [VKA_WEIGHT_KV_B] =
        ROW(kv_b, "[heads * (head_dim - rotary_dim + v_head_dim), kv_lora_rank]", KV_B_ROWS, KV_RANK, MATRIX),
};

static uint64_t width_of(const vka_layer_desc *desc, width which)
{
    uint64_t q_rows = (uint64_t)desc->heads * desc->head_dim, k_rows = (uint64_t)desc->kv_heads * desc->head_dim;
    bool full_width = desc->qk_norm == VKA_QK_NORM_FULL_WIDTH;

    switch (which) {
    case HIDDEN:
        return desc->hidden_size;
    case KV_HIDDEN:
        return desc->kv_hidden_size;
    case Q_ROWS:
        return desc->gate == VKA_GATE_NONE ? q_rows : 2 * q_rows;
    case Q_COLS:
        return desc->q_lora_rank > 0 ? desc->q_lora_rank : desc->hidden_size;
    case K_ROWS:
        return k_rows;
    case V_ROWS:
        return (uint64_t)desc->kv_heads * desc->v_head_dim;
    case O_COLS:
        return (uint64_t)desc->heads * desc->v_head_dim;
    case HEAD:
        return desc->head_dim;
    case Q_NORM:
        return full_width ? q_rows : desc->head_dim;
    case K_NORM:
        return full_width ? k_rows : desc->head_dim;
    case HEADS:
        return desc->heads;
    case Q_RANK:
        return desc->q_lora_rank;
    case KV_RANK:
        return desc->kv_lora_rank;
    case KV_A_ROWS:
        return (uint64_t)desc->kv_lora_rank + desc->rotary_dim;
    case KV_B_ROWS:
        return (uint64_t)desc->heads * (desc->head_dim - desc->rotary_dim + desc->v_head_dim);
    case ONE:
        break;
    }
    return 1;
}

static vka_weight_need required_iff(bool condition)
{
    return condition ? VKA_NEED_REQUIRED : VKA_NEED_FORBIDDEN;
}

static vka_weight_need need_of(const vka_layer_desc *desc, int weight)
{
    bool latent = desc->kv_lora_rank > 0;

    switch (weight) {
    case VKA_WEIGHT_Q:
    case VKA_WEIGHT_O:
        return VKA_NEED_REQUIRED;
    case VKA_WEIGHT_K:
    case VKA_WEIGHT_V:
        return required_iff(!latent);
    case VKA_WEIGHT_Q_BIAS:
    case VKA_WEIGHT_K_BIAS:
    case VKA_WEIGHT_V_BIAS:
        return latent ? VKA_NEED_FORBIDDEN : VKA_NEED_OPTIONAL;
    case VKA_WEIGHT_Q_NORM:
    case VKA_WEIGHT_K_NORM:
        return required_iff(desc->qk_norm != VKA_QK_NORM_NONE);
    case VKA_WEIGHT_K_OUT_NORM:
        return required_iff(desc->k_out_norm != 0);
    case VKA_WEIGHT_SINKS:
        return required_iff(desc->sinks != 0);
    case VKA_WEIGHT_ALIBI_SLOPES:
        return required_iff(desc->alibi != 0);
    case VKA_WEIGHT_Q_A:
    case VKA_WEIGHT_Q_A_NORM:
        return required_iff(desc->q_lora_rank > 0);
    case VKA_WEIGHT_KV_A:
    case VKA_WEIGHT_KV_A_NORM:
    case VKA_WEIGHT_KV_B:
        return required_iff(latent);
    default:
        return VKA_NEED_OPTIONAL;
    }
}

vka_weight_shape vka_weight_shape_of(const vka_layer_desc *desc, int weight)
{
    const weight_row *row = &table[weight];

    return (vka_weight_shape){
        .name = row->name,
        .names = row->names,
        .rows = width_of(desc, row->rows),
        .cols = width_of(desc, row->cols),
        .need = need_of(desc, weight),
        .kind = row->kind,
    };
}

vka_tensor *vka_weight_at(vka_layer_weights *weights, int weight)
{
    return (vka_tensor *)(void *)((char *)weights + table[weight].offset);
}

static vka_status check_shape(const vka_tensor *tensor, const vka_weight_shape *shape, const vka_layer_desc *desc,
                              const char *name, vka_error *error)
{
    if (tensor->rows == shape->rows && tensor->cols == shape->cols)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_FORMAT,
                    "tensor '%s' has shape [%llu, %llu], expected [%llu, %llu] = %s with hidden_size %u, heads %u, "
                    "kv_heads %u, head_dim %u, v_head_dim %u: the description does not belong to these weights",
                    name, (unsigned long long)tensor->rows, (unsigned long long)tensor->cols,
                    (unsigned long long)shape->rows, (unsigned long long)shape->cols, shape->names, desc->hidden_size,
                    desc->heads, desc->kv_heads, desc->head_dim, desc->v_head_dim);
}

static vka_status check_tensor(const vka_tensor *tensor, const vka_weight_shape *shape, const vka_layer_desc *desc,
                               const char *name, vka_error *error)
{
    if (!tensor->data) {
        if (shape->need != VKA_NEED_REQUIRED)
            return VKA_OK;
        return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' %s is missing", name, shape->names);
    }
    if (shape->need == VKA_NEED_FORBIDDEN)
        return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' is there, but the description does not use it", name);
    if (vka_dtype_size(tensor->dtype) == 0)
        return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' has element type %d, expected F32, F16 or BF16", name,
                        (int)tensor->dtype);
    if (tensor->row_stride != 0 && tensor->row_stride < tensor->cols)
        return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' has a row_stride of %llu, expected 0 or at least %llu",
                        name, (unsigned long long)tensor->row_stride, (unsigned long long)tensor->cols);
    return check_shape(tensor, shape, desc, name, error);
}

vka_status vka_weights_check_named(const vka_layer_weights *weights, const vka_layer_desc *desc,
                                   const char *const *names, vka_error *error)
{
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++) {
        const vka_tensor *tensor = (const vka_tensor *)(const void *)((const char *)weights + table[i].offset);
        vka_weight_shape shape = vka_weight_shape_of(desc, i);
        vka_status status = check_tensor(tensor, &shape, desc, names ? names[i] : shape.name, error);

        if (status != VKA_OK)
            return status;
    }
    return VKA_OK;
}

vka_status vka_layer_weights_check(const vka_layer_weights *weights, const vka_layer_desc *desc, vka_error *error)
{
    if (!weights || !desc)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", weights ? "desc" : "weights");
    if (weights->struct_size != sizeof(*weights))
        return vka_fail(error, VKA_ERR_ARGUMENT, "struct_size of vka_layer_weights is %u, expected %zu",
                        weights->struct_size, sizeof(*weights));
    return vka_weights_check_named(weights, desc, NULL, error);
}
