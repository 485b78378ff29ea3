/* One layer of a checkpoint: its tensors as the engine orders them, cross-checked against the configuration. The
 * tensors of a layer are one run of the sorted table; one that is there and not understood (scales of a quantised
 * weight, a projection of another layout) is refused by name, since leaving it out would change the result. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/checkpoint_tensors.h"
#include "model/json.h"
#include "model/weights.h"

/* Where the blocks of a model stand in its checkpoint: under the name of the model that a head was put on, of the text
 * model of a multimodal one, or under nothing. */
static const char *const roots[] = {"model.language_model.",
                                    "language_model.model.",
                                    "language_model.",
                                    "model.",
                                    "transformer.",
                                    "gpt_neox.",
                                    "bert.",
                                    "roberta.",
                                    "distilbert.",
                                    ""};

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

static vka_status find_prefix(const vka_model *model, uint32_t layer, vka_found_tensors *found, vka_error *error)
{
    const vka_tensor_names *names = found->names;

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        snprintf(found->prefix, sizeof(found->prefix), "%s%s%u%s", roots[i], names->before, layer, names->after);
        if (has_prefix(model, lower_bound(model, found->prefix), found->prefix))
            return VKA_OK;
    }
    return vka_fail(error, VKA_ERR_FORMAT, "%s: the weights have no tensor under 'model.%s%u%s' or '%s%u%s'",
                    model->config_path, names->before, layer, names->after, names->before, layer, names->after);
}

static const vka_tensor_row *row_of(const vka_tensor_names *names, const char *name)
{
    for (const vka_tensor_row *row = names->rows; row->name; row++)
        if (strcmp(name, row->name) == 0)
            return row;
    return NULL;
}

/* The weight `which` of a merged tensor: 0 Q, 1 K, 2 V. */
static int merged_weight(const vka_tensor_row *row, int which)
{
    return row->weight + which; /* the enumeration has Q, K, V and their biases in this order */
}

_Static_assert(VKA_WEIGHT_K == VKA_WEIGHT_Q + 1 && VKA_WEIGHT_V == VKA_WEIGHT_Q + 2 &&
                   VKA_WEIGHT_K_BIAS == VKA_WEIGHT_Q_BIAS + 1 && VKA_WEIGHT_V_BIAS == VKA_WEIGHT_Q_BIAS + 2,
               "merged_weight");

static vka_status take(vka_found_tensors *found, const vka_slot *slot, const vka_tensor_row *row, vka_error *error)
{
    int count = vka_is_merged(row->arrangement) ? 3 : 1;
    char one[VKA_PRINTABLE_BYTES], two[VKA_PRINTABLE_BYTES];

    for (int i = 0; i < count; i++) {
        vka_found_tensor *tensor = &found->tensors[merged_weight(row, i)];

        if (tensor->slot)
            return vka_fail(error, VKA_ERR_FORMAT, "%s: both '%s' and '%s' are there, which hold the same weights",
                            slot->shard->path, vka_printable(tensor->slot->tensor->name, one),
                            vka_printable(slot->tensor->name, two));
        *tensor = (vka_found_tensor){slot, row->arrangement};
    }
    return VKA_OK;
}

static vka_status find_tensors(const vka_model *model, vka_found_tensors *found, vka_error *error)
{
    char text[VKA_PRINTABLE_BYTES];

    for (size_t at = lower_bound(model, found->prefix); has_prefix(model, at, found->prefix); at++) {
        const vka_slot *slot = &model->slots[at];
        const vka_tensor_row *row = row_of(found->names, slot->tensor->name + strlen(found->prefix));
        vka_status status;

        if (!row)
            return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: tensor '%s' of an attention block is not known",
                            slot->shard->path, vka_printable(slot->tensor->name, text));
        status = row->arrangement == VKA_IGNORED ? VKA_OK : take(found, slot, row, error);
        if (status != VKA_OK)
            return status;
    }
    return VKA_OK;
}

/* Names for messages: of the tensor that is there, or that would be. */
static void name_weights(vka_found_tensors *found, const vka_layer_desc *desc)
{
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++) {
        const char *name = NULL;

        for (const vka_tensor_row *row = found->names->rows; row->name && !name; row++)
            if (row->arrangement != VKA_IGNORED && i >= row->weight &&
                i <= merged_weight(row, vka_is_merged(row->arrangement) ? 2 : 0))
                name = row->name;
        if (found->tensors[i].slot)
            name = found->tensors[i].slot->tensor->name + strlen(found->prefix);
        snprintf(found->texts[i], sizeof(found->texts[i]), "%s%s", found->prefix,
                 name ? name : vka_weight_shape_of(desc, i).name);
    }
}

/* Biases are optional to the engine, but a config.json says whether the model has them; of a GGUF file only those are
 * known that every model of the family has. */
static vka_status check_biases(const vka_model *model, const vka_found_tensors *found, vka_block block,
                               vka_error *error)
{
    unsigned biases = 0, always = model->config.family->bias.always;
    vka_status status = vka_config_layer_biases(&model->config, block, &biases, model->config_path, error);

    for (int i = VKA_WEIGHT_Q_BIAS; i <= VKA_WEIGHT_O_BIAS && status == VKA_OK; i++) {
        bool wanted = biases & (1u << (i - VKA_WEIGHT_Q_BIAS));

        if (model->config.gguf.names)
            wanted = found->tensors[i].slot || always & (1u << (i - VKA_WEIGHT_Q_BIAS));
        if (wanted != (found->tensors[i].slot != NULL))
            status = vka_fail(error, VKA_ERR_FORMAT, "tensor '%s' is %s, but the model of %s %s it", found->texts[i],
                              wanted ? "missing" : "there", model->config_path, wanted ? "has" : "does not have");
    }
    return status;
}

/* Without a key that says so, a gate is recognised by the rows of Q's projection. */
static void settle_gate(const vka_model *model, const vka_found_tensors *found, vka_layer_desc *desc)
{
    const vka_slot *q = found->tensors[VKA_WEIGHT_Q].slot;

    if (desc->gate == VKA_GATE_NONE || vka_json_get(model->config.keys, "attn_output_gate") || !q)
        return;
    if (q->tensor->dims == 2 && q->tensor->shape[0] == (uint64_t)desc->heads * desc->head_dim)
        desc->gate = VKA_GATE_NONE;
}

static vka_status load(vka_model_layer *out, const vka_model *model, vka_block block, uint32_t layer, vka_error *error)
{
    const char *names[VKA_WEIGHT_COUNT];
    vka_found_tensors found = {0};
    vka_status status = vka_config_layer(&model->config, block, layer, &out->desc, model->config_path, error);

    if (status != VKA_OK)
        return status;
    if (model->config.family->not_run)
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: layers of %s are laid out, not run: %s", model->config_path,
                        model->config.architecture, model->config.family->not_run);
    found.names = model->config.gguf.names ? model->config.gguf.names : model->config.family->blocks[block].tensors;
    status = find_prefix(model, layer, &found, error);
    if (status == VKA_OK)
        status = find_tensors(model, &found, error);
    if (status != VKA_OK)
        return status;
    settle_gate(model, &found, &out->desc);
    name_weights(&found, &out->desc);
    status = check_biases(model, &found, block, error);
    if (status == VKA_OK)
        status = vka_order_tensors(&found, out, error);
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        names[i] = found.texts[i];
    return status == VKA_OK ? vka_weights_check_named(&out->weights, &out->desc, names, error) : status;
}

vka_status vka_model_layer_load(vka_model_layer **out, const vka_model *model, vka_block block, uint32_t layer,
                                vka_error *error)
{
    vka_model_layer *made;
    vka_status status;

    if (!out || !model)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out ? "model" : "out");
    made = vka_alloc(NULL, 1, sizeof(*made));
    if (!made)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a layer of a checkpoint");
    status = load(made, model, block, layer, error);
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
