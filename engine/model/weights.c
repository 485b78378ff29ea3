/* What a description asks of the weights, and the check that it is there: this is what keeps a configuration that does
 * not belong to the weights from giving a plausible wrong result. */
#include "model/weights.h"

#include <stddef.h>

#include "base/error.h"

typedef enum width { ONE, HIDDEN, Q_ROWS, K_ROWS, V_ROWS, O_COLS, HEAD } width;

typedef struct weight_row {
    const char *name;
    const char *names;
    size_t offset;
    width rows, cols;
} weight_row;

static const weight_row table[VKA_WEIGHT_COUNT] = {
    [VKA_WEIGHT_Q] = {"q", "[heads * head_dim, hidden_size]", offsetof(vka_layer_weights, q), Q_ROWS, HIDDEN},
    [VKA_WEIGHT_K] = {"k", "[kv_heads * head_dim, hidden_size]", offsetof(vka_layer_weights, k), K_ROWS, HIDDEN},
    [VKA_WEIGHT_V] = {"v", "[kv_heads * v_head_dim, hidden_size]", offsetof(vka_layer_weights, v), V_ROWS, HIDDEN},
    [VKA_WEIGHT_O] = {"o", "[hidden_size, heads * v_head_dim]", offsetof(vka_layer_weights, o), HIDDEN, O_COLS},
    [VKA_WEIGHT_Q_BIAS] = {"q_bias", "[heads * head_dim]", offsetof(vka_layer_weights, q_bias), ONE, Q_ROWS},
    [VKA_WEIGHT_K_BIAS] = {"k_bias", "[kv_heads * head_dim]", offsetof(vka_layer_weights, k_bias), ONE, K_ROWS},
    [VKA_WEIGHT_V_BIAS] = {"v_bias", "[kv_heads * v_head_dim]", offsetof(vka_layer_weights, v_bias), ONE, V_ROWS},
    [VKA_WEIGHT_O_BIAS] = {"o_bias", "[hidden_size]", offsetof(vka_layer_weights, o_bias), ONE, HIDDEN},
    [VKA_WEIGHT_Q_NORM] = {"q_norm", "[head_dim]", offsetof(vka_layer_weights, q_norm), ONE, HEAD},
    [VKA_WEIGHT_K_NORM] = {"k_norm", "[head_dim]", offsetof(vka_layer_weights, k_norm), ONE, HEAD},
};

static uint64_t width_of(const vka_layer_desc *desc, width which)
{
    switch (which) {
    case HIDDEN:
        return desc->hidden_size;
    case Q_ROWS:
        return (uint64_t)desc->heads * desc->head_dim;
    case K_ROWS:
        return (uint64_t)desc->kv_heads * desc->head_dim;
    case V_ROWS:
        return (uint64_t)desc->kv_heads * desc->v_head_dim;
    case O_COLS:
        return (uint64_t)desc->heads * desc->v_head_dim;
    case HEAD:
        return desc->head_dim;
    case ONE:
        break;
    }
    return 1;
}

static vka_weight_need need_of(const vka_layer_desc *desc, int weight)
{
    if (weight <= VKA_WEIGHT_O)
        return VKA_NEED_REQUIRED;
    if (weight == VKA_WEIGHT_Q_NORM || weight == VKA_WEIGHT_K_NORM)
        return desc->qk_norm == VKA_QK_NORM_PER_HEAD ? VKA_NEED_REQUIRED : VKA_NEED_FORBIDDEN;
    return VKA_NEED_OPTIONAL;
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
        return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' is there, but the description has no QK-norm", name);
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
