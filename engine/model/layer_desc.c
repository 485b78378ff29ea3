/* Resolving a layer description: defaults are filled in, then every field is judged, so that all later code may take a
 * resolved description as it is. That query heads form whole groups is a rule of the layout, refused there with the
 * ways out, and so not judged here. Row numbers and widths stay below 2^31, the arithmetic of the kernels. */
#include "model/layer_desc.h"

#include <math.h>

#include "base/error.h"

#define MAX_WIDTH 0x7fffffffu

_Static_assert(2 * VKA_MAX_HEADS * VKA_MAX_HEAD_DIM <= MAX_WIDTH, "no projection is too wide");

vka_status vka_desc_count(const char *field, uint32_t value, uint32_t most, vka_error *error)
{
    if (value >= 1 && value <= most)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %u, expected 1 .. %u", field, value, most);
}

vka_status vka_desc_positive(const char *field, double value, vka_error *error)
{
    if (isfinite(value) && value > 0)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %g, expected a finite number above 0", field, value);
}

/* 0 means that the option is off. */
static vka_status check_optional(const char *field, double value, vka_error *error)
{
    if (isfinite(value) && value >= 0)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %g, expected 0 (off) or a finite number above 0", field, value);
}

static vka_status check_choice(const char *field, int value, int most, const char *names, vka_error *error)
{
    if (value >= 0 && value <= most)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s is %d, expected 0 .. %d (%s)", field, value, most, names);
}

static vka_status resolve_head_size(vka_layer_desc *desc, vka_error *error)
{
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
    vka_status status = vka_desc_count("head_dim", desc->head_dim, VKA_MAX_HEAD_DIM, error);
    return status == VKA_OK ? vka_desc_count("v_head_dim", desc->v_head_dim, VKA_MAX_HEAD_DIM, error) : status;
}

static vka_status resolve_heads(vka_layer_desc *desc, vka_error *error)
{
    vka_status status = vka_desc_count("hidden_size", desc->hidden_size, MAX_WIDTH, error);

    if (desc->kv_hidden_size == 0)
        desc->kv_hidden_size = desc->hidden_size;
    if (status == VKA_OK)
        status = vka_desc_count("kv_hidden_size", desc->kv_hidden_size, MAX_WIDTH, error);
    if (status == VKA_OK && desc->kv_hidden_size != desc->hidden_size && desc->attend != VKA_ATTEND_CROSS)
        status = vka_fail(error, VKA_ERR_ARGUMENT,
                          "kv_hidden_size is %u and hidden_size %u: only cross attention (VKA_ATTEND_CROSS) may have "
                          "another one",
                          desc->kv_hidden_size, desc->hidden_size);
    if (status == VKA_OK)
        status = vka_desc_count("heads", desc->heads, VKA_MAX_HEADS, error);
    if (status == VKA_OK)
        status = vka_desc_count("kv_heads", desc->kv_heads, desc->heads, error);
    if (status == VKA_OK)
        status = resolve_head_size(desc, error);
    if (status != VKA_OK)
        return status;
    if (desc->kv_policy == VKA_KV_DEFAULT)
        desc->kv_policy = VKA_KV_REPLICATE;
    return check_choice("kv_policy", (int)desc->kv_policy, VKA_KV_STRICT, "replicate, strict", error);
}

static vka_status resolve_norms(vka_layer_desc *desc, vka_error *error)
{
    vka_status status =
        check_choice("qk_norm", (int)desc->qk_norm, VKA_QK_NORM_FULL_WIDTH, "none, per head, full width", error);

    if (desc->norm_eps == 0)
        desc->norm_eps = 1e-6;
    if (status == VKA_OK)
        status = vka_desc_positive("norm_eps", desc->norm_eps, error);
    if (status == VKA_OK)
        status = check_optional("clip_qkv", desc->clip_qkv, error);
    return status;
}

static vka_status resolve_attention(vka_layer_desc *desc, vka_error *error)
{
    vka_status status = check_choice("attend", (int)desc->attend, VKA_ATTEND_CROSS, "causal, full, cross", error);

    if (desc->scale == 0)
        desc->scale = 1.0 / sqrt((double)desc->head_dim);
    if (status == VKA_OK)
        status = vka_desc_positive("scale", desc->scale, error);
    if (status == VKA_OK)
        status = check_optional("softcap", desc->softcap, error);
    if (status == VKA_OK)
        status = check_choice("gate", (int)desc->gate, VKA_GATE_SIGMOID, "none, sigmoid", error);
    if (status != VKA_OK)
        return status;
    if (desc->gate != VKA_GATE_NONE && desc->v_head_dim != desc->head_dim)
        return vka_fail(
            error, VKA_ERR_ARGUMENT,
            "v_head_dim is %u and head_dim %u, expected the same: a gate has one value for each element of a "
            "head's output",
            desc->v_head_dim, desc->head_dim);
    if (desc->window_right > 0 && desc->attend == VKA_ATTEND_CAUSAL)
        return vka_fail(error, VKA_ERR_ARGUMENT, "window_right is %u, but a causal layer sees no key to the right",
                        desc->window_right);
    if (desc->attend == VKA_ATTEND_CROSS && desc->rope_type != VKA_ROPE_NONE)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "rope_type is %d: cross attention turns nothing, as keys come from another sequence; set it to "
                        "VKA_ROPE_NONE (1)",
                        (int)desc->rope_type);
    if (desc->attend == VKA_ATTEND_CROSS && (desc->window > 0 || desc->window_right > 0 || desc->alibi != 0))
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "cross attention has window %u, window_right %u, alibi %u: the distance from a row to a key of "
                        "another sequence means nothing; set them to 0",
                        desc->window, desc->window_right, desc->alibi);
    return VKA_OK;
}

static uint32_t padded(uint32_t elements)
{
    return (elements + 7) / 8 * 8;
}

static vka_status check_latent(const vka_layer_desc *desc, vka_error *error)
{
    if (desc->kv_lora_rank == 0) {
        if (desc->q_lora_rank == 0)
            return VKA_OK;
        return vka_fail(error, VKA_ERR_ARGUMENT, "q_lora_rank is %u without kv_lora_rank", desc->q_lora_rank);
    }
    if (desc->kv_heads != desc->heads)
        return vka_fail(error, VKA_ERR_ARGUMENT, "kv_lora_rank is %u with %u heads and %u kv_heads, expected as many",
                        desc->kv_lora_rank, desc->heads, desc->kv_heads);
    if (desc->kv_lora_rank > VKA_MAX_HEAD_DIM || desc->q_lora_rank > MAX_WIDTH ||
        padded(desc->kv_lora_rank) + padded(desc->rotary_dim) > VKA_MAX_HEAD_DIM)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "kv_lora_rank %u + rotary_dim %u (what the cache holds of a token, each in multiples of 8), "
                        "expected at most %u",
                        desc->kv_lora_rank, desc->rotary_dim, VKA_MAX_HEAD_DIM);
    if (desc->rotary_offset + desc->rotary_dim != desc->head_dim || desc->rotary_offset == 0)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "rotary_offset %u + rotary_dim %u: with kv_lora_rank RoPE turns the last elements of a head of "
                        "%u, and not all",
                        desc->rotary_offset, desc->rotary_dim, desc->head_dim);
    if (desc->qk_norm != VKA_QK_NORM_NONE || desc->gate != VKA_GATE_NONE || desc->clip_qkv > 0 ||
        desc->attend != VKA_ATTEND_CAUSAL)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "kv_lora_rank goes with neither a QK-norm nor a gate nor clip_qkv, and with causal attention "
                        "only");
    return VKA_OK;
}

static vka_status resolve_all(vka_layer_desc *desc, vka_error *error)
{
    vka_status status = resolve_heads(desc, error);

    if (status == VKA_OK)
        status = vka_desc_resolve_rope(desc, error);
    if (status == VKA_OK)
        status = resolve_norms(desc, error);
    if (status == VKA_OK)
        status = resolve_attention(desc, error);
    return status == VKA_OK ? check_latent(desc, error) : status;
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
    status = resolve_all(&resolved, error);
    if (status == VKA_OK)
        *desc = resolved;
    return status;
}
