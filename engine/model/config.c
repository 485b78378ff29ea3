/* A whole configuration: family, geometry, biases; RoPE, windows and unknown keys have files of their own. Every number
 * is hostile until its range is checked; what is absent takes the default that transformers gives it, or is refused
 * where that default is a number of one particular model. */
#include "model/config.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/json.h"

vka_status vka_config_require(const vka_config_source *source, const char *key)
{
    if (json_object_get(source->root, key))
        return VKA_OK;
    return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is missing", source->label, key);
}

static vka_status read_required(const vka_config_source *source, const char *key, uint32_t most, uint32_t *out)
{
    if (!vka_json_get(source->root, key))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is missing", source->label, key);
    return vka_json_count(source->root, key, 1, most, out, source->label, source->error);
}

static vka_status read_heads(const vka_config_source *source, vka_config *config)
{
    vka_layer_desc *desc = &config->desc;
    vka_status status = read_required(source, "num_attention_heads", VKA_MAX_HEADS, &desc->heads);

    if (status == VKA_OK && config->family->needs_kv_heads)
        status = vka_config_require(source, "num_key_value_heads");
    if (status == VKA_OK && config->family->needs_head_dim)
        status = vka_config_require(source, "head_dim");
    if (status != VKA_OK)
        return status;
    desc->kv_heads = desc->heads;
    status = vka_json_count(source->root, "num_key_value_heads", 1, VKA_MAX_HEADS, &desc->kv_heads, source->label,
                            source->error);
    if (status == VKA_OK)
        status = vka_json_count(source->root, "head_dim", 1, VKA_MAX_HEAD_DIM, &desc->head_dim, source->label,
                                source->error);
    if (status != VKA_OK || desc->head_dim > 0)
        return status;
    if (desc->hidden_size % desc->heads != 0)
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: head_dim is not given and hidden_size / num_attention_heads = %u / %u is not whole",
                        source->label, desc->hidden_size, desc->heads);
    desc->head_dim = desc->hidden_size / desc->heads;
    return VKA_OK;
}

static vka_status read_biases(const vka_config_source *source, vka_config *config)
{
    vka_bias_rule rule = config->family->bias;
    bool wanted = rule == VKA_BIAS_QKV;
    vka_status status = vka_json_flag(source->root, "attention_bias", &wanted, source->label, source->error);

    if (status != VKA_OK)
        return status;
    if (rule != VKA_BIAS_OPTION && wanted != (rule == VKA_BIAS_QKV))
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: attention_bias is %s, but %s always has %s",
                        source->label, wanted ? "true" : "false", config->family->name,
                        wanted ? "no bias" : "a bias on q, k and v");
    config->qkv_bias = wanted;
    config->o_bias = wanted && rule == VKA_BIAS_OPTION;
    return VKA_OK;
}

static vka_status read_all(const vka_config_source *source, vka_config *config)
{
    vka_layer_desc *desc = &config->desc;
    vka_status status = vka_config_family(source, config);

    if (status == VKA_OK)
        status = vka_config_keys(source);
    if (status != VKA_OK)
        return status;
    *desc = (vka_layer_desc){.struct_size = sizeof(*desc), .norm_eps = 1e-6, .qk_norm = config->family->qk_norm};
    status = read_required(source, "num_hidden_layers", VKA_MAX_LAYERS, &config->layers);
    if (status == VKA_OK)
        status = read_required(source, "hidden_size", INT32_MAX, &desc->hidden_size);
    if (status == VKA_OK)
        status = read_heads(source, config);
    if (status == VKA_OK)
        status = read_biases(source, config);
    if (status == VKA_OK)
        status = vka_json_positive(source->root, "rms_norm_eps", &desc->norm_eps, source->label, source->error);
    if (status == VKA_OK)
        status = vka_config_rope(source, config);
    if (status == VKA_OK)
        status = vka_config_window(source, config);
    return status;
}

/* Takes `root` over. */
static vka_status from_json(vka_config *out, json_t *root, const char *label, vka_error *error)
{
    vka_config_source source = {.root = root, .label = label, .error = error};
    vka_config config = {0};
    vka_error inner = {0};
    vka_status status = read_all(&source, &config);

    json_decref(root);
    if (status == VKA_OK && vka_layer_desc_resolve(&config.desc, &inner) != VKA_OK)
        status = vka_fail(error, VKA_ERR_FORMAT, "%s: %s", label, inner.message);
    if (status != VKA_OK)
        vka_config_free(&config);
    else
        *out = config;
    return status;
}

vka_status vka_config_parse(vka_config *out, const void *data, size_t size, const char *label, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_parse(&root, data, size, label, error);

    return status == VKA_OK ? from_json(out, root, label, error) : status;
}

vka_status vka_config_read(vka_config *out, const char *path, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_read(&root, path, error);

    return status == VKA_OK ? from_json(out, root, path, error) : status;
}

void vka_config_free(vka_config *config)
{
    if (!config)
        return;
    vka_free(NULL, config->sliding);
    *config = (vka_config){0};
}

vka_status vka_config_layer(const vka_config *config, vka_block block, uint32_t layer, vka_layer_desc *desc,
                            const char *label, vka_error *error)
{
    if (block != VKA_BLOCK_SELF)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s: %s layers have one attention block, that of self attention",
                        label, config->family->name);
    if (layer >= config->layers)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s: layer %u is asked for, but the model has layers 0 .. %u", label,
                        layer, config->layers - 1);
    *desc = config->desc;
    desc->window = config->sliding[layer] ? config->window : 0;
    return VKA_OK;
}
