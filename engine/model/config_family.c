/* Which family a configuration belongs to, and where in it the keys of attention stand. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model/config.h"
#include "model/json.h"

/* What may follow the family's name: heads on top of the same blocks. */
static const char *const suffixes[] = {
    "ForCausalLM",
    "Model",
    "ForConditionalGeneration",
    "TextModel",
    "LMHeadModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForMaskedLM",
    "ForQuestionAnswering",
    "ForPreTraining",
    "EncoderModel",
    "ForImageTextToText",
    "VFMTransformer",
};

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

static bool is_type_of(const vka_family *family, const char *model_type)
{
    return strcmp(model_type, family->model_type) == 0 ||
           (family->text_type && strcmp(model_type, family->text_type) == 0);
}

/* What a configuration says of itself; NULL: nothing. */
typedef struct identity {
    const char *architecture, *model_type, *text_type;
} identity;

static const vka_family *find_in(const vka_family *families, size_t count, const identity *who)
{
    for (size_t i = 0; i < count; i++) {
        const vka_family *family = &families[i];
        bool named =
            who->architecture ? is_architecture_of(family, who->architecture) : is_type_of(family, who->model_type);

        if (named && (!who->text_type || is_type_of(family, who->text_type)))
            return family;
    }
    return NULL;
}

static const vka_family *find_family(const identity *who)
{
    const vka_family *family = find_in(vka_families, vka_family_count, who);

    return family ? family : find_in(vka_plain_families, vka_plain_family_count, who);
}

static vka_status refuse_unknown(const identity *who, const char *label, vka_error *error)
{
    char name[VKA_PRINTABLE_BYTES], text[VKA_PRINTABLE_BYTES], list[1400];
    vka_text out = {list, sizeof(list), 0};

    for (size_t i = 0; i < vka_family_count; i++)
        vka_append(&out, "%s%s", i ? ", " : "", vka_families[i].model_type);
    vka_append(&out, "; laid out, not run: ");
    for (size_t i = 0; i < vka_plain_family_count; i++)
        vka_append(&out, "%s%s", i ? ", " : "", vka_plain_families[i].model_type);
    return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: %s '%s'%s%s%s is not supported; known model types: %s", label,
                    who->architecture ? "architecture" : "model_type",
                    vka_printable(who->architecture ? who->architecture : who->model_type, name),
                    who->text_type ? " with text_config.model_type '" : "",
                    who->text_type ? vka_printable(who->text_type, text) : "", who->text_type ? "'" : "", list);
}

static vka_status read_identity(const vka_config *config, identity *who, const char *label, vka_error *error)
{
    const json_t *list = vka_json_get(config->root, "architectures");
    const json_t *type = vka_json_get(config->root, "model_type");
    const json_t *text = vka_json_get(config->root, "text_config");
    const json_t *text_type = vka_json_get(text, "model_type");
    char printed[VKA_PRINTABLE_BYTES];

    who->architecture = json_string_value(json_array_get(list, 0));
    who->model_type = json_string_value(type);
    who->text_type = json_string_value(text_type);
    if (list && (json_array_size(list) != 1 || !who->architecture))
        return vka_fail(error, VKA_ERR_FORMAT, "%s: architectures is %s, expected an array of one name", label,
                        vka_json_describe(list, printed));
    if (type && !who->model_type)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: model_type is %s, expected text", label,
                        vka_json_describe(type, printed));
    if (text && (!json_is_object(text) || (text_type && !who->text_type)))
        return vka_fail(error, VKA_ERR_FORMAT, "%s: text_config is no object whose model_type is text", label);
    if (!who->architecture && !who->model_type)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: neither architectures nor model_type says what model it is", label);
    return VKA_OK;
}

vka_status vka_config_find_family(vka_config *config, const char *label, vka_error *error)
{
    identity who;
    vka_status status = read_identity(config, &who, label, error);
    json_t *text = vka_json_get(config->root, "text_config");
    char printed[VKA_PRINTABLE_BYTES];

    if (status != VKA_OK)
        return status;
    config->family = find_family(&who);
    if (!config->family)
        return refuse_unknown(&who, label, error);
    if (who.model_type && !is_type_of(config->family, who.model_type))
        return vka_fail(error, VKA_ERR_FORMAT, "%s: architecture '%s' goes with model_type '%s', not '%s'", label,
                        who.architecture, config->family->model_type, vka_printable(who.model_type, printed));
    if (text && !config->family->text_type)
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: text_config is given, but %s has none", label,
                        config->family->name);
    config->keys = text ? text : config->root;
    if (who.architecture)
        snprintf(config->architecture, sizeof(config->architecture), "%s", who.architecture);
    else
        snprintf(config->architecture, sizeof(config->architecture), "%s%s", config->family->name,
                 config->family->suffix ? config->family->suffix : suffixes[0]);
    return VKA_OK;
}
