/* Keys that are not understood. A configuration names every option of its model, and one that changes attention must
 * not be passed over in silence. So a key that speaks of attention is refused unless it is read elsewhere in this
 * folder, is known to change nothing, or holds nothing (null, false, empty). */
#include <string.h>

#include "base/error.h"
#include "model/config.h"
#include "model/json.h"

/* Words that make a key one about attention, or about how weights are stored. */
static const char *const words[] = {"attn",
                                    "attention",
                                    "rope",
                                    "rotary",
                                    "window",
                                    "softcap",
                                    "soft_cap",
                                    "qkv",
                                    "qk_",
                                    "kv_",
                                    "head",
                                    "alibi",
                                    "sink",
                                    "quant",
                                    "compress",
                                    "lora",
                                    "query_",
                                    "clip",
                                    "position_embedding_type",
                                    "causal",
                                    "bidirectional",
                                    "nope"};

static const char *const known[] = {
    /* read */
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "attention_bias",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    /* about training, about how something else computes attention, or about what follows it */
    "attention_dropout",
    "attn_pdrop",
    "attention_probs_dropout_prob",
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "_attn_implementation",
    "attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "use_flash_attn",
    "use_flash_attention",
    "output_attentions",
    "final_logit_softcapping",
    "lm_head_bias",
    "is_causal", /* read */
    NULL,
};

static bool speaks_of_attention(const char *key)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(key, words[i]))
            return true;
    return false;
}

static bool is_in(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (strcmp(key, *list) == 0)
            return true;
    return false;
}

static bool is_key_of(const vka_family *family, const char *key)
{
    const vka_geometry_keys *keys = family->keys;
    const char *const read[] = {keys->heads, keys->kv_heads ? keys->kv_heads : "", keys->head_dim ? keys->head_dim : "",
                                family->bias.key ? family->bias.key : "", NULL};

    if ((family->softcap && strcmp(key, "attn_logit_softcapping") == 0) ||
        (family->query_scalar != 0 && strcmp(key, "query_pre_attn_scalar") == 0) ||
        (family->gate && strcmp(key, "attn_output_gate") == 0) ||
        (family->period_key && strcmp(key, family->period_key) == 0))
        return true;
    for (const vka_fixed_key *fixed = family->fixed; fixed && fixed->key; fixed++)
        if (strcmp(key, fixed->key) == 0)
            return true;
    return is_in(known, key) || is_in(family->known, key) || is_in(read, key);
}

static bool holds_nothing(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_STRING:
        return json_string_length(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_TRUE:
    case JSON_INTEGER:
    case JSON_REAL:
        break;
    }
    return false;
}

/* A quantised model may leave attention as it is, and say so. */
static bool spares_attention(const char *key, const json_t *value)
{
    const json_t *list = vka_json_get(value, "modules_to_not_convert");

    for (size_t i = 0; strcmp(key, "quantization_config") == 0 && i < json_array_size(list); i++) {
        const char *module = json_string_value(json_array_get(list, i));

        if (module && strcmp(module, "model.layers.*.self_attn") == 0)
            return true;
    }
    return false;
}

static vka_status check_fixed(const vka_config_source *source, const json_t *object)
{
    char text[VKA_PRINTABLE_BYTES];

    for (const vka_fixed_key *fixed = source->family->fixed; fixed && fixed->key; fixed++) {
        const json_t *value = vka_json_get(object, fixed->key);

        if (value && strcmp(vka_json_describe(value, text), fixed->value) != 0)
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: option '%s' is %s; for %s this release knows %s only", source->label, fixed->key, text,
                            source->family->name, fixed->value);
    }
    return VKA_OK;
}

vka_status vka_config_check_keys(const vka_config_source *source, const json_t *object)
{
    char name[VKA_PRINTABLE_BYTES], text[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (speaks_of_attention(key) && !is_key_of(source->family, key) && !holds_nothing(value) &&
            !spares_attention(key, value))
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: option '%s' is %s; it may change attention and this release does not know it",
                            source->label, vka_printable(key, name), vka_json_describe(value, text));
    }
    return check_fixed(source, object);
}
