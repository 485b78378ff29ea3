/* Keys that are not understood. A configuration names every option of its model, and one that changes attention must
 * not be passed over in silence. So a key that speaks of attention is refused unless it is read elsewhere in this
 * folder, is known to change nothing, or holds nothing (null, false, empty). */
#include "model/config.h"

#include <string.h>

#include "base/error.h"
#include "model/json.h"

/* Words that make a key one about attention, or about how weights are stored. */
static const char *const words[] = {"attn",     "attention", "rope",     "rotary", "window", "softcap",
                                    "soft_cap", "qkv",       "qk_",      "kv_",    "head",   "alibi",
                                    "sink",     "quant",     "compress", "lora",   "query_", "clip"};

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
    "_attn_implementation",
    "attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "use_flash_attn",
    "use_flash_attention",
    "output_attentions",
    "final_logit_softcapping",
    "lm_head_bias",
};

static bool speaks_of_attention(const char *key)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(key, words[i]))
            return true;
    return false;
}

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
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

vka_status vka_config_keys(const vka_config_source *source)
{
    char name[VKA_PRINTABLE_BYTES], text[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach(source->root, key, value)
    {
        if (speaks_of_attention(key) && !is_known(key) && !holds_nothing(value))
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: option '%s' is %s; it may change attention and this release does not know it",
                            source->label, vka_printable(key, name), vka_json_describe(value, text));
    }
    return VKA_OK;
}
