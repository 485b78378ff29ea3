/* One layer of a checkpoint: views of its tensors, cross-checked against the configuration. The tensors of a layer are
 * one run of the sorted table; one that is there and not understood (scales of a quantised weight, sinks, a fused
 * projection) is refused by name, since leaving it out would change the result. */
#include "model/checkpoint.h"

#include <stdio.h>
#include <string.h>

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
        if (strcmp(name, tensor_names[i]) == 0)
            return i;
    return VKA_WEIGHT_COUNT;
}

static vka_status find_tensors(const vka_model *model, block *found, vka_error *error)
{
    char text[VKA_PRINTABLE_BYTES];

    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        snprintf(found->names[i], sizeof(found->names[i]), "%s%s", found->prefix, tensor_names[i]);
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

vka_status vka_model_layer(const vka_model *model, uint32_t layer, vka_layer_desc *desc, vka_layer_weights *weights,
                           vka_error *error)
{
    const char *names[VKA_WEIGHT_COUNT];
    block found = {0};
    vka_layer_desc described;
    vka_layer_weights views;
    vka_status status;

    if (!model || !desc || !weights)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", !model ? "model" : !desc ? "desc" : "weights");
    status = vka_config_layer(&model->config, layer, &described, model->config_path, error);
    if (status == VKA_OK)
        status = find_prefix(model, layer, &found, error);
    if (status == VKA_OK)
        status = find_tensors(model, &found, error);
    if (status == VKA_OK)
        status = check_biases(model, &found, error);
    if (status == VKA_OK)
        status = view_tensors(&found, &views, error);
    if (status != VKA_OK)
        return status;
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        names[i] = found.names[i];
    status = vka_weights_check_named(&views, &described, names, error);
    if (status != VKA_OK)
        return status;
    *desc = described;
    *weights = views;
    return VKA_OK;
}
