/* What only one family does. */
#include <math.h>

#include "base/error.h"
#include "model/config.h"
#include "model/json.h"

static vka_status read_flag(const vka_config_source *source, const char *key, bool *out)
{
    return vka_json_flag(source->keys, key, out, source->label, source->error);
}

/* One KV head with multi_query, num_kv_heads with new_decoder_architecture, else as many as query heads. */
vka_status vka_falcon_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    bool multi = true, grouped = false, alibi = false;
    uint32_t kv_heads = desc->heads;
    vka_status status = read_flag(source, "multi_query", &multi);

    if (status == VKA_OK)
        status = read_flag(source, "new_decoder_architecture", &grouped);
    if (status == VKA_OK)
        status = read_flag(source, "alibi", &alibi);
    if (status == VKA_OK)
        status =
            vka_json_count(source->keys, "num_kv_heads", 1, VKA_MAX_HEADS, &kv_heads, source->label, source->error);
    if (status != VKA_OK)
        return status;
    desc->kv_heads = grouped || !multi ? kv_heads : 1;
    if (!grouped && !multi && kv_heads != desc->heads)
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: num_kv_heads is %u with %u heads, which needs multi_query or new_decoder_architecture",
                        source->label, kv_heads, desc->heads);
    if (alibi) {
        desc->rope_type = VKA_ROPE_NONE;
        desc->alibi = 1;
    }
    return VKA_OK;
}

vka_status vka_bigcode_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    bool multi = true;
    vka_status status = read_flag(source, "multi_query", &multi);

    desc->kv_heads = multi ? 1 : desc->heads;
    return status;
}

/* Keys of attention stand in an object of their own. */
vka_status vka_dbrx_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    const json_t *inner = vka_json_get(source->keys, "attn_config");
    vka_status status = VKA_OK;

    if (!json_is_object(inner))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: attn_config is no object", source->label);
    if (vka_json_get(source->keys, "clip_qkv") || vka_json_get(source->keys, "kv_n_heads"))
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: clip_qkv or kv_n_heads stands outside attn_config, where %s does not look for it",
                        source->label, source->family->name);
    status = vka_config_check_keys(source, inner);
    desc->kv_heads = 1;
    if (status == VKA_OK)
        status = vka_json_count(inner, "kv_n_heads", 1, VKA_MAX_HEADS, &desc->kv_heads, source->label, source->error);
    if (status == VKA_OK)
        status = vka_json_positive(inner, "clip_qkv", &desc->clip_qkv, source->label, source->error);
    if (status == VKA_OK)
        status = vka_json_positive(inner, "rope_theta", &desc->rope_theta, source->label, source->error);
    return status;
}

/* Multi-head latent attention: a head is [part without RoPE | part with]. */
vka_status vka_deepseek_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    const json_t *keys = source->keys;
    uint32_t plain = 0, turning = 0;
    vka_status status = vka_config_count(source, keys, "qk_nope_head_dim", VKA_MAX_HEAD_DIM, &plain);

    if (status == VKA_OK)
        status = vka_config_count(source, keys, "qk_rope_head_dim", VKA_MAX_HEAD_DIM, &turning);
    if (status == VKA_OK)
        status = vka_config_count(source, keys, "v_head_dim", VKA_MAX_HEAD_DIM, &desc->v_head_dim);
    if (status == VKA_OK)
        status = vka_config_count(source, keys, "kv_lora_rank", VKA_MAX_HEAD_DIM, &desc->kv_lora_rank);
    if (status == VKA_OK)
        status = vka_config_require(source, "q_lora_rank");
    if (status == VKA_OK)
        status = vka_json_count(keys, "q_lora_rank", 1, INT32_MAX, &desc->q_lora_rank, source->label, source->error);
    desc->head_dim = plain + turning;
    desc->rotary_offset = plain;
    return status;
}

/* The softmax scale takes part in yarn: times get(factor, mscale_all_dim)^2, get(s, m) = 0.1 m ln s + 1. */
vka_status vka_deepseek_finish(const vka_config_source *source, vka_layer_desc *desc)
{
    const json_t *new_style = vka_json_get(source->keys, "rope_parameters");
    const json_t *rope = new_style ? new_style : vka_json_get(source->keys, "rope_scaling");
    double all_dim = json_number_value(vka_json_get(rope, "mscale_all_dim")), times = 1;
    bool interleaved = true;
    vka_status status = read_flag(source, "rope_interleave", &interleaved);

    desc->rope_pairing = interleaved ? VKA_ROPE_INTERLEAVED : VKA_ROPE_HALF_SPLIT;
    if (desc->rope_type == VKA_ROPE_YARN && desc->rope_scaling.factor > 1)
        times = 0.1 * all_dim * log(desc->rope_scaling.factor) + 1;
    desc->scale = times * times / sqrt((double)desc->head_dim);
    return status;
}

/* Norms of the understanding pathway are options; the generating one always has them. */
vka_status vka_cosmos3_finish(const vka_config_source *source, vka_layer_desc *desc)
{
    bool norm = true, out_norm = false;
    const json_t *rope = vka_json_get(source->keys, "rope_parameters");
    vka_status status = read_flag(source, "qk_norm_for_text", &norm);

    if (status == VKA_OK && !vka_json_get(rope, "rope_theta")) /* models differ in it */
        status = vka_config_require(source, "rope_theta");
    if (status == VKA_OK)
        status = read_flag(source, "use_und_k_norm_for_gen", &out_norm);
    if (status != VKA_OK || source->block != VKA_BLOCK_SELF)
        return status;
    if (norm && out_norm)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                        "%s: use_und_k_norm_for_gen beside qk_norm_for_text: implementations differ on whether keys "
                        "handed on then have one norm or two; models have either of the two",
                        source->label);
    desc->qk_norm = norm ? VKA_QK_NORM_PER_HEAD : VKA_QK_NORM_NONE;
    desc->k_out_norm = out_norm;
    return VKA_OK;
}

/* Each layer has its own number of query heads per KV head, or no attention. */
vka_status vka_nemotron_nas_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    const json_t *block = json_array_get(vka_json_get(source->keys, "block_configs"), source->layer);
    const json_t *attention = vka_json_get(block, "attention");
    uint32_t group = 0;
    vka_status status;

    if (!json_is_object(attention))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: block_configs[%u].attention is no object", source->label,
                        source->layer);
    if (json_is_true(vka_json_get(attention, "no_op")) || json_is_true(vka_json_get(attention, "replace_with_linear")))
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: layer %u has no attention (block_configs)",
                        source->label, source->layer);
    status = vka_config_count(source, attention, "n_heads_in_group", VKA_MAX_HEADS, &group);
    if (status == VKA_OK && desc->heads % group != 0)
        status = vka_fail(source->error, VKA_ERR_FORMAT,
                          "%s: block_configs[%u].attention.n_heads_in_group is %u, which does not divide %u heads",
                          source->label, source->layer, group, desc->heads);
    if (status == VKA_OK)
        desc->kv_heads = desc->heads / group;
    return status;
}

vka_status vka_chatglm_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    bool grouped = false;
    vka_status status = read_flag(source, "multi_query_attention", &grouped);

    if (status == VKA_OK && grouped)
        status = vka_config_count(source, source->keys, "multi_query_group_num", VKA_MAX_HEADS, &desc->kv_heads);
    return status;
}
