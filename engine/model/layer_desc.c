/* Resolving a layer description: defaults are filled in, then every field is judged, so that all later code may take a
 * resolved description as it is. That query heads form whole groups is a rule of the layout, refused there with the
 * ways out, and so not judged here. Row numbers and widths stay below 2^31, the arithmetic of the kernels. */
#include "vkattn/layer_desc.h"

#include <math.h>

#include "base/error.h"

#define MAX_WIDTH 0x7fffffffu

_Static_assert(VKA_MAX_HEADS * VKA_MAX_HEAD_DIM <= MAX_WIDTH, "no projection is too wide");

static vka_status check_count(const char *field, uint32_t value, uint32_t most, vka_error *error)
{
    if (value >= 1 && value <= most)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %u, expected 1 .. %u", field, value, most);
}

static vka_status check_positive(const char *field, double value, vka_error *error)
{
    if (isfinite(value) && value > 0)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %g, expected a finite number above 0", field, value);
}

static vka_status resolve_heads(vka_layer_desc *desc, vka_error *error)
{
    vka_status status = check_count("hidden_size", desc->hidden_size, MAX_WIDTH, error);

    if (status == VKA_OK)
        status = check_count("heads", desc->heads, VKA_MAX_HEADS, error);
    if (status == VKA_OK)
        status = check_count("kv_heads", desc->kv_heads, desc->heads, error);
    if (status != VKA_OK)
        return status;
    if (desc->head_dim == 0) {
        if (desc->hidden_size % desc->heads != 0)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "head_dim is not given and hidden_size / heads = %u / %u is not whole: give head_dim "
                            "(it never depends on the number of ranks)",
                            desc->hidden_size, desc->heads);
        desc->head_dim = desc->hidden_size / desc->heads;
    }
    if (desc->v_head_dim == 0)
        desc->v_head_dim = desc->head_dim;
    status = check_count("head_dim", desc->head_dim, VKA_MAX_HEAD_DIM, error);
    if (status == VKA_OK)
        status = check_count("v_head_dim", desc->v_head_dim, VKA_MAX_HEAD_DIM, error);
    return status;
}

static vka_status resolve_rope(vka_layer_desc *desc, vka_error *error)
{
    if (desc->rope_type != VKA_ROPE_DEFAULT && desc->rope_type != VKA_ROPE_NONE)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rope_type is %d, expected VKA_ROPE_DEFAULT or VKA_ROPE_NONE",
                        (int)desc->rope_type);
    if (desc->rope_pairing != VKA_ROPE_HALF_SPLIT)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rope_pairing is %d, expected VKA_ROPE_HALF_SPLIT",
                        (int)desc->rope_pairing);
    if (desc->rope_theta == 0)
        desc->rope_theta = 10000.0;
    if (desc->rope_type == VKA_ROPE_NONE) {
        desc->rotary_dim = 0;
        return check_positive("rope_theta", desc->rope_theta, error);
    }
    if (desc->rotary_dim == 0)
        desc->rotary_dim = desc->head_dim;
    if (desc->rotary_dim > desc->head_dim || desc->rotary_dim % 2 != 0)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rotary_dim is %u, expected an even number, at most head_dim = %u",
                        desc->rotary_dim, desc->head_dim);
    return check_positive("rope_theta", desc->rope_theta, error);
}

static vka_status resolve_rest(vka_layer_desc *desc, vka_error *error)
{
    vka_status status;

    if (desc->qk_norm != VKA_QK_NORM_NONE && desc->qk_norm != VKA_QK_NORM_PER_HEAD)
        return vka_fail(error, VKA_ERR_ARGUMENT, "qk_norm is %d, expected VKA_QK_NORM_NONE or VKA_QK_NORM_PER_HEAD",
                        (int)desc->qk_norm);
    if (desc->scale == 0)
        desc->scale = 1.0 / sqrt((double)desc->head_dim);
    if (desc->norm_eps == 0)
        desc->norm_eps = 1e-6;
    status = check_positive("scale", desc->scale, error);
    if (status == VKA_OK)
        status = check_positive("norm_eps", desc->norm_eps, error);
    return status;
}

vka_status vka_layer_desc_resolve(vka_layer_desc *desc, vka_error *error)
{
    vka_layer_desc resolved;
    vka_status status;

    if (!desc)
        return vka_fail(error, VKA_ERR_ARGUMENT, "desc is NULL");
    if (desc->struct_size != sizeof(*desc))
        return vka_fail(error, VKA_ERR_ARGUMENT, "struct_size of vka_layer_desc is %u, expected %zu", desc->struct_size,
                        sizeof(*desc));
    resolved = *desc;
    status = resolve_heads(&resolved, error);
    if (status == VKA_OK)
        status = resolve_rope(&resolved, error);
    if (status == VKA_OK)
        status = resolve_rest(&resolved, error);
    if (status == VKA_OK)
        *desc = resolved;
    return status;
}
