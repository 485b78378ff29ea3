/* Hidden size, heads, head sizes and biases of a configuration. */
#include "base/error.h"
#include "model/config.h"
#include "model/json.h"

vka_status vka_config_require(const vka_config_source *source, const char *key)
{
    if (json_object_get(source->keys, key))
        return VKA_OK;
    return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is missing", source->label, key);
}

vka_status vka_config_count(const vka_config_source *source, const json_t *object, const char *key, uint32_t most,
                            uint32_t *out)
{
    if (!vka_json_get(object, key))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is missing", source->label, key);
    return vka_json_count(object, key, 1, most, out, source->label, source->error);
}

static vka_status read_heads(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_family *family = source->family;
    const char *block_key = family->blocks[source->block].heads;
    const char *key = block_key ? block_key : family->keys->heads;

    if (family->defaults.heads == 0)
        return vka_config_count(source, source->keys, key, VKA_MAX_HEADS, &desc->heads);
    desc->heads = family->defaults.heads;
    return vka_json_count(source->keys, key, 1, VKA_MAX_HEADS, &desc->heads, source->label, source->error);
}

static vka_status read_kv_heads(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_family *family = source->family;
    uint32_t absent = family->defaults.kv_heads;
    const char *key = family->keys->kv_heads;
    vka_status status;

    desc->kv_heads = desc->heads; /* also for null */
    if (!key)
        return VKA_OK;
    if (absent == 0) {
        status = vka_config_require(source, key);
        if (status != VKA_OK)
            return status;
    } else if (absent != VKA_AS_HEADS && !json_object_get(source->keys, key)) {
        desc->kv_heads = absent;
    }
    return vka_json_count(source->keys, key, 1, VKA_MAX_HEADS, &desc->kv_heads, source->label, source->error);
}

static vka_status read_head_dim(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_geometry_keys *keys = source->family->keys;
    vka_status status = VKA_OK;

    desc->head_dim = source->family->defaults.head_dim;
    if (keys->head_dim)
        status = vka_json_count(source->keys, keys->head_dim, 1, VKA_MAX_HEAD_DIM, &desc->head_dim, source->label,
                                source->error);
    if (status != VKA_OK || desc->head_dim > 0)
        return status;
    if (desc->hidden_size % desc->heads != 0)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is not given and %s / %s = %u / %u is not whole",
                        source->label, keys->head_dim ? keys->head_dim : "head_dim", keys->hidden, keys->heads,
                        desc->hidden_size, desc->heads);
    desc->head_dim = desc->hidden_size / desc->heads;
    return VKA_OK;
}

vka_status vka_config_geometry(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_family *family = source->family;
    vka_status status = vka_config_count(source, source->keys, family->keys->hidden, INT32_MAX, &desc->hidden_size);

    if (status == VKA_OK)
        status = read_heads(source, desc);
    if (status == VKA_OK)
        status = read_kv_heads(source, desc);
    if (status == VKA_OK && family->needs_head_dim)
        status = vka_config_require(source, family->keys->head_dim);
    if (status == VKA_OK)
        status = read_head_dim(source, desc);
    if (status == VKA_OK && family->geometry)
        status = family->geometry(source, desc);
    return status;
}

vka_status vka_config_biases(const vka_config_source *source, unsigned *biases)
{
    const vka_bias_rule *rule = &source->family->bias;
    bool on = rule->on, claimed = false;
    vka_status status = VKA_OK;

    if (rule->key)
        status = vka_json_flag(source->keys, rule->key, &on, source->label, source->error);
    *biases = rule->always | (on ? rule->keyed : 0);
    if (status != VKA_OK || !vka_json_get(source->keys, "attention_bias"))
        return status;
    status = vka_json_flag(source->keys, "attention_bias", &claimed, source->label, source->error);
    if (status == VKA_OK && claimed != (*biases != 0))
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: attention_bias is %s, but %s always has %s",
                        source->label, claimed ? "true" : "false", source->family->name,
                        *biases ? "a bias on q, k and v" : "no bias");
    return status;
}
