/* The families, and which one a configuration belongs to. Facts: configuration and modelling files of Hugging Face
 * transformers 5.24 for each model. */
#include "model/config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/json.h"

static const vka_family families[] = {
    {"llama", "Llama", VKA_BIAS_OPTION, VKA_WINDOW_NEVER, VKA_QK_NORM_NONE, false, false},
    {"mistral", "Mistral", VKA_BIAS_NEVER, VKA_WINDOW_ALL, VKA_QK_NORM_NONE, true, false},
    {"qwen2", "Qwen2", VKA_BIAS_QKV, VKA_WINDOW_LAYERS, VKA_QK_NORM_NONE, true, false},
    {"qwen3", "Qwen3", VKA_BIAS_OPTION, VKA_WINDOW_LAYERS, VKA_QK_NORM_PER_HEAD, true, true},
};

/* What may follow the family's name: heads on top of the same blocks. */
static const char *const suffixes[] = {"ForCausalLM", "Model", "ForSequenceClassification", "ForTokenClassification"};

#define SUPPORTED "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM are supported"

static bool is_architecture_of(const vka_family *family, const char *architecture)
{
    size_t length = strlen(family->name);

    if (strncmp(architecture, family->name, length) != 0)
        return false;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (strcmp(architecture + length, suffixes[i]) == 0)
            return true;
    return false;
}

static const vka_family *find_family(const char *architecture, const char *model_type)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const vka_family *family = &families[i];

        if (architecture ? is_architecture_of(family, architecture) : strcmp(model_type, family->model_type) == 0)
            return family;
    }
    return NULL;
}

vka_status vka_config_family(const vka_config_source *source, vka_config *config)
{
    const json_t *list = vka_json_get(source->root, "architectures");
    const json_t *type = vka_json_get(source->root, "model_type");
    const char *architecture = json_string_value(json_array_get(list, 0));
    const char *model_type = json_string_value(type);
    char text[VKA_PRINTABLE_BYTES];

    if (list && (json_array_size(list) != 1 || !architecture))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: architectures is %s, expected an array of one name",
                        source->label, vka_json_describe(list, text));
    if (type && !model_type)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: model_type is %s, expected text", source->label,
                        vka_json_describe(type, text));
    if (!architecture && !model_type)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: neither architectures nor model_type says what model it is",
                        source->label);
    config->family = find_family(architecture, model_type);
    if (!config->family)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: %s '%s' is not supported; " SUPPORTED, source->label,
                        architecture ? "architecture" : "model_type",
                        vka_printable(architecture ? architecture : model_type, text));
    if (model_type && strcmp(model_type, config->family->model_type) != 0)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: architecture '%s' goes with model_type '%s', not '%s'",
                        source->label, architecture, config->family->model_type, vka_printable(model_type, text));
    snprintf(config->architecture, sizeof(config->architecture), "%s%s",
             architecture ? architecture : config->family->name, architecture ? "" : suffixes[0]);
    return VKA_OK;
}
