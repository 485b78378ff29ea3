/* One layer of a checkpoint: views of its tensors, cross-checked against the configuration. The tensors of a layer are
 * one run of the sorted table; one that is there and not understood (scales of a quantised weight, sinks, a fused
 * projection) is refused by name, since leaving it out would change the result. */
#include "model/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/json.h"
#include "model/safetensors.h"
#include "model/weights.h"

enum { NAME_BYTES = 96 };

typedef struct block {
    char prefix[NAME_BYTES / 2];
    char names[VKA_WEIGHT_COUNT][NAME_BYTES];
    const vka_slot *slots[VKA_WEIGHT_COUNT]; /* NULL: not there */
} block;

static const char *const tensor_names[VKA_WEIGHT_COUNT] = {
    [VKA_WEIGHT_Q] = "q_proj.weight",      [VKA_WEIGHT_K] = "k_proj.weight",    [VKA_WEIGHT_V] = "v_proj.weight",
    [VKA_WEIGHT_O] = "o_proj.weight",      [VKA_WEIGHT_Q_BIAS] = "q_proj.bias", [VKA_WEIGHT_K_BIAS] = "k_proj.bias",
    [VKA_WEIGHT_V_BIAS] = "v_proj.bias",   [VKA_WEIGHT_O_BIAS] = "o_proj.bias", [VKA_WEIGHT_Q_NORM] = "q_norm.weight",
    [VKA_WEIGHT_K_NORM] = "k_norm.weight",
};

/* Written by old versions of transformers; follows from rope_theta. */
static const char ignored_name[] = "rotary_emb.inv_freq";

/* The first slot whose name is not before `text`. */
static size_t lower_bound(const vka_model *model, const char *text)
{
    size_t low = 0, high = model->slot_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(model->slots[middle].tensor->name, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_prefix(const vka_model *model, size_t at, const char *prefix)
{
    return at < model->slot_count && strncmp(model->slots[at].tensor->name, prefix, strlen(prefix)) == 0;
}

/* Blocks stand under "model." in a model with a head, and under nothing in a bare one. */
static vka_status find_prefix(const vka_model *model, uint32_t layer, block *found, vka_error *error)
{
    static const char *const roots[] = {"model.", ""};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        snprintf(found->prefix, sizeof(found->prefix), "%slayers.%u.self_attn.", roots[i], layer);
        if (has_prefix(model, lower_bound(model, found->prefix), found->prefix))
            return VKA_OK;
    }
    return vka_fail(error, VKA_ERR_FORMAT,
                    "%s: the weights have no tensor under 'model.layers.%u.self_attn.' or 'layers.%u.self_attn.'",
                    model->config_path, layer, layer);
}

static int weight_of(const char *name)
{
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        if (tensor_names[i] && strcmp(name, tensor_names[i]) == 0)
            return i;
    return VKA_WEIGHT_COUNT;
}

static vka_status find_tensors(const vka_model *model, block *found, vka_error *error)
{
    char text[VKA_PRINTABLE_BYTES];

    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        snprintf(found->names[i], sizeof(found->names[i]), "%s%s", found->prefix,
                 tensor_names[i] ? tensor_names[i] : vka_weight_shape_of(&model->config.desc, i).name);
    for (size_t at = lower_bound(model, found->prefix); has_prefix(model, at, found->prefix); at++) {
        const vka_slot *slot = &model->slots[at];
        const char *name = slot->tensor->name + strlen(found->prefix);
        int weight = weight_of(name);

        if (weight < VKA_WEIGHT_COUNT)
            found->slots[weight] = slot;
        else if (strcmp(name, ignored_name) != 0)
            return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: tensor '%s' of an attention block is not known",
                            slot->shard->path, vka_printable(slot->tensor->name, text));
    }
    return VKA_OK;
}

/* Biases are optional to the engine, but the configuration says whether the model has them. */
static vka_status check_biases(const vka_model *model, const block *found, vka_error *error)
{
    for (int i = VKA_WEIGHT_Q_BIAS; i <= VKA_WEIGHT_O_BIAS; i++) {
        bool wanted = i == VKA_WEIGHT_O_BIAS ? model->config.o_bias : model->config.qkv_bias;

        if (wanted != (found->slots[i] != NULL))
            return vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' is %s, but the model of %s %s it", found->names[i],
                            wanted ? "missing" : "there", model->config_path, wanted ? "has" : "does not have");
    }
    return VKA_OK;
}

static vka_status view_tensors(const block *found, vka_layer_weights *weights, vka_error *error)
{
    vka_status status = VKA_OK;

    *weights = (vka_layer_weights){.struct_size = sizeof(*weights)};
    for (int i = 0; i < VKA_WEIGHT_COUNT && status == VKA_OK; i++)
        if (found->slots[i])
            status = vka_tensor_as_matrix(vka_weight_at(weights, i), found->slots[i]->tensor,
                                          found->slots[i]->shard->path, error);
    return status;
}

static vka_status load(vka_model_layer *out, const vka_model *model, vka_block block_kind, uint32_t layer,
                       vka_error *error)
{
    const char *names[VKA_WEIGHT_COUNT];
    block found = {0};
    vka_status status = vka_config_layer(&model->config, block_kind, layer, &out->desc, model->config_path, error);

    if (status == VKA_OK)
        status = find_prefix(model, layer, &found, error);
    if (status == VKA_OK)
        status = find_tensors(model, &found, error);
    if (status == VKA_OK)
        status = check_biases(model, &found, error);
    if (status == VKA_OK)
        status = view_tensors(&found, &out->weights, error);
    if (status != VKA_OK)
        return status;
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        names[i] = found.names[i];
    return vka_weights_check_named(&out->weights, &out->desc, names, error);
}

vka_status vka_model_layer_load(vka_model_layer **out, const vka_model *model, vka_block block_kind, uint32_t layer,
                                vka_error *error)
{
    vka_model_layer *made;
    vka_status status;

    if (!out || !model)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out ? "model" : "out");
    made = vka_alloc(NULL, 1, sizeof(*made));
    if (!made)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a layer of a checkpoint");
    status = load(made, model, block_kind, layer, error);
    if (status == VKA_OK)
        *out = made;
    else
        vka_model_layer_free(&made);
    return status;
}

void vka_model_layer_free(vka_model_layer **layer)
{
    if (!layer || !*layer)
        return;
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        vka_free(NULL, (*layer)->owned[i]);
    vka_free(NULL, *layer);
    *layer = NULL;
}

const vka_layer_desc *vka_model_layer_desc(const vka_model_layer *layer)
{
    return layer ? &layer->desc : NULL;
}

const vka_layer_weights *vka_model_layer_weights(const vka_model_layer *layer)
{
    return layer ? &layer->weights : NULL;
}
