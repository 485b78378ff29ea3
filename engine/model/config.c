/* A whole configuration. Every number is hostile until its range is checked; what is absent takes the default that
 * transformers gives it, or is refused where that default is a number of one particular model. */
#include "model/config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "model/json.h"

static vka_config_source source_of(const vka_config *config, vka_block block, uint32_t layer, const char *label,
                                   vka_error *error)
{
    return (vka_config_source){.family = config->family,
                               .keys = config->keys,
                               .label = label,
                               .error = error,
                               .block = block,
                               .layers = vka_config_layers(config, block),
                               .layer = layer};
}

uint32_t vka_config_layers(const vka_config *config, vka_block block)
{
    const vka_family_block *row = &config->family->blocks[block];
    uint32_t layers = config->layers;

    if (!row->tensors && !row->refused && !config->family->not_run)
        return 0;
    if (row->layers)
        vka_json_count(config->keys, row->layers, 1, VKA_MAX_LAYERS, &layers, "", NULL);
    return layers;
}

/* ---- one layer ---- */

static vka_status read_scores(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_family *family = source->family;
    double scalar = family->query_scalar;
    vka_status status = VKA_OK;

    desc->scale = family->scale;
    if (scalar < 0 && !vka_json_get(source->keys, "query_pre_attn_scalar"))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: query_pre_attn_scalar is missing", source->label);
    if (family->query_scalar != 0) {
        status = vka_json_positive(source->keys, "query_pre_attn_scalar", &scalar, source->label, source->error);
        desc->scale = 1.0 / sqrt(scalar);
    }
    if (status == VKA_OK && family->softcap)
        status = vka_config_require(source, "attn_logit_softcapping");
    if (status == VKA_OK && family->softcap)
        status =
            vka_json_positive(source->keys, "attn_logit_softcapping", &desc->softcap, source->label, source->error);
    return status;
}

/* Embedding models made from decoders let every row see every key, and say it by a flag that is false. */
static vka_status check_causal(const vka_config_source *source, const vka_layer_desc *desc)
{
    bool causal = true;
    vka_status status = vka_json_flag(source->keys, "is_causal", &causal, source->label, source->error);

    if (status == VKA_OK && !causal && desc->attend == VKA_ATTEND_CAUSAL)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                        "%s: is_causal is false; this release knows %s as a causal model only", source->label,
                        source->family->name);
    return status;
}

static vka_status read_options(const vka_config_source *source, vka_layer_desc *desc)
{
    const vka_family *family = source->family;
    bool gate = family->gate;
    vka_status status = VKA_OK;

    desc->attend = family->blocks[source->block].attend;
    desc->kv_policy = family->kv_policy;
    desc->qk_norm = family->qk_norm;
    desc->norm_unit_offset = family->unit_offset;
    desc->norm_eps = family->norm_eps > 0 ? family->norm_eps : 1e-6;
    desc->sinks = family->sinks;
    status = check_causal(source, desc);
    if (status == VKA_OK && !family->fixed_eps)
        status = vka_json_positive(source->keys, "rms_norm_eps", &desc->norm_eps, source->label, source->error);
    if (status == VKA_OK && family->gate)
        status = vka_json_flag(source->keys, "attn_output_gate", &gate, source->label, source->error);
    desc->gate = gate ? VKA_GATE_SIGMOID : VKA_GATE_NONE;
    return status == VKA_OK ? read_scores(source, desc) : status;
}

static vka_status read_layer(const vka_config_source *source, vka_layer_desc *desc)
{
    vka_status status = vka_config_geometry(source, desc);
    unsigned biases;

    if (status != VKA_OK || source->family->not_run)
        return status;
    status = read_options(source, desc);
    if (status == VKA_OK)
        status = vka_config_biases(source, &biases);
    if (status == VKA_OK)
        status = vka_config_rope(source, desc);
    if (status == VKA_OK)
        status = vka_config_window(source, desc);
    if (status == VKA_OK && source->family->finish)
        status = source->family->finish(source, desc);
    return status;
}

static vka_status check_block(const vka_config_source *source)
{
    static const char *const names[VKA_BLOCKS] = {
        [VKA_BLOCK_SELF] = "self", [VKA_BLOCK_CROSS] = "cross", [VKA_BLOCK_ENCODER] = "encoder"};
    const vka_family_block *row;

    if ((int)source->block < 0 || (int)source->block >= VKA_BLOCKS)
        return vka_fail(source->error, VKA_ERR_ARGUMENT, "block is %d, expected 0 .. %d (self, cross, encoder)",
                        (int)source->block, VKA_BLOCKS - 1);
    row = &source->family->blocks[source->block];
    if (row->refused)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: %s", source->label, row->refused);
    if (!row->tensors && !source->family->not_run)
        return vka_fail(source->error, VKA_ERR_ARGUMENT, "%s: layers of %s have no block '%s'", source->label,
                        source->family->name, names[source->block]);
    if (source->layer >= source->layers)
        return vka_fail(source->error, VKA_ERR_ARGUMENT, "%s: layer %u is asked for, but the model has layers 0 .. %u",
                        source->label, source->layer, source->layers - 1);
    return VKA_OK;
}

/* Converters to GGUF add the 1 to the norm weights of families that have an offset. */
static void apply_gguf(const vka_gguf_facts *gguf, vka_layer_desc *desc)
{
    desc->norm_unit_offset = 0;
    if (gguf->interleaved)
        desc->rope_pairing = VKA_ROPE_INTERLEAVED;
    if (gguf->rotary_dim > 0)
        desc->rotary_dim = gguf->rotary_dim;
}

vka_status vka_config_layer(const vka_config *config, vka_block block, uint32_t layer, vka_layer_desc *desc,
                            const char *label, vka_error *error)
{
    bool known = (int)block >= 0 && (int)block < VKA_BLOCKS;
    vka_config_source source = source_of(config, known ? block : VKA_BLOCK_SELF, layer, label, error);
    vka_layer_desc found = {.struct_size = sizeof(found)};
    vka_error inner = {0};
    vka_status status;

    source.block = block;
    status = check_block(&source);
    if (status == VKA_OK)
        status = vka_config_layer_kind(&source, &source.kind);
    if (status == VKA_OK)
        status = read_layer(&source, &found);
    if (config->gguf.names)
        apply_gguf(&config->gguf, &found);
    if (status == VKA_OK && vka_layer_desc_resolve(&found, &inner) != VKA_OK)
        status = vka_fail(error, VKA_ERR_FORMAT, "%s: %s", label, inner.message);
    if (status == VKA_OK)
        *desc = found;
    return status;
}

vka_status vka_config_layer_biases(const vka_config *config, vka_block block, unsigned *biases, const char *label,
                                   vka_error *error)
{
    vka_config_source source = source_of(config, block, 0, label, error);

    return vka_config_biases(&source, biases);
}

/* ---- the whole ---- */

/* The first layer with attention must be describable, so that a hopeless file is refused when it is opened. */
static vka_status check_first(const vka_config *config, const char *label, vka_error *error)
{
    vka_block block = config->family->blocks[VKA_BLOCK_SELF].refused ? VKA_BLOCK_CROSS : VKA_BLOCK_SELF;
    vka_config_source source = source_of(config, block, 0, label, error);
    vka_layer_desc desc;
    vka_status status = vka_config_first_attention(&source, &source.layer);

    return status == VKA_OK ? vka_config_layer(config, block, source.layer, &desc, label, error) : status;
}

static vka_status read_all(vka_config *config, const char *label, vka_error *error)
{
    vka_config_source source;
    uint32_t layers;
    vka_status status = vka_config_find_family(config, label, error);

    if (status != VKA_OK)
        return status;
    source = (vka_config_source){.family = config->family, .keys = config->keys, .label = label, .error = error};
    if (!config->family->not_run)
        status = vka_config_check_keys(&source, config->keys);
    if (status == VKA_OK && !config->family->not_run && config->root != config->keys)
        status = vka_config_check_keys(&source, config->root);
    for (int i = 0; i < VKA_BLOCKS && status == VKA_OK; i++)
        if (config->family->blocks[i].layers)
            status = vka_json_count(config->keys, config->family->blocks[i].layers, 1, VKA_MAX_LAYERS, &layers, label,
                                    error);
    if (status == VKA_OK)
        status = vka_config_count(&source, config->keys, config->family->keys->layers, VKA_MAX_LAYERS, &config->layers);
    return status == VKA_OK ? check_first(config, label, error) : status;
}

vka_status vka_config_from_json(vka_config *out, json_t *root, const vka_gguf_facts *gguf, const char *label,
                                vka_error *error)
{
    vka_config config = {.root = root};
    vka_status status;

    if (gguf)
        config.gguf = *gguf;
    status = read_all(&config, label, error);
    if (status == VKA_OK)
        *out = config;
    else
        vka_config_free(&config);
    return status;
}

vka_status vka_config_parse(vka_config *out, const void *data, size_t size, const char *label, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_parse(&root, data, size, label, error);

    return status == VKA_OK ? vka_config_from_json(out, root, NULL, label, error) : status;
}

vka_status vka_config_read(vka_config *out, const char *path, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_read(&root, path, error);

    return status == VKA_OK ? vka_config_from_json(out, root, NULL, path, error) : status;
}

void vka_config_free(vka_config *config)
{
    if (!config)
        return;
    json_decref(config->root);
    *config = (vka_config){0};
}
