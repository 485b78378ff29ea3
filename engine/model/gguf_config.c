/* Metadata of GGUF as keys of config.json, by three tables: architectures, keys that have a name of their own there,
 * and keys that change nothing. So a GGUF file goes through the same rules of families as any other checkpoint. Facts:
 * the constants of the gguf package of PyPI (0.19), and how llama.cpp's converter writes the families named here. */
#include "model/gguf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/gguf_rope.h"
#include "model/json.h"

/* Pairs of the listed families stand side by side in GGUF (llama.cpp's NORM type): the converter permutes the rows of Q
 * and K, so RoPE turns neighbours. */
static const struct architecture {
    const char *name, *model_type;
    bool interleaved;
} architectures[] = {
    {"llama", "llama", true},
    {"qwen2", "qwen2", false},
    {"qwen3", "qwen3", false},
    {"qwen3moe", "qwen3_moe", false},
    {"gemma", "gemma", false},
    {"gemma2", "gemma2", false},
    {"gemma3", "gemma3_text", false},
    {"phi3", "phi3", false},
    {"olmo2", "olmo2", false},
    {"gpt-oss", "gpt_oss", false},
    {"starcoder2", "starcoder2", false},
    {"gptneox", "gpt_neox", false},
    {"phi2", "phi", false},
    {"falcon", "falcon", false},
    {"bert", "bert", false},
};

/* Below "ARCHITECTURE.". */
static const struct renamed {
    const char *key, *name;
} renamed[] = {
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
};

/* Read elsewhere, or about other things than what attention computes. */
static const char *const others[] = {
    "attention.value_length",
    "attention.layer_norm_epsilon",
    "attention.causal",
    "attention.sliding_window_pattern",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    NULL,
};

typedef struct reader {
    const vka_gguf *file;
    const struct architecture *architecture;
    json_t *out;
    const char *label;
    vka_error *error;
} reader;

static const json_t *value_of(const reader *r, const char *key)
{
    char full[VKA_PRINTABLE_BYTES];

    snprintf(full, sizeof(full), "%s.%s", r->architecture->name, key);
    return vka_json_get(vka_gguf_metadata(r->file), full);
}

static vka_status find_architecture(reader *r)
{
    const json_t *value = vka_json_get(vka_gguf_metadata(r->file), "general.architecture");
    char text[VKA_PRINTABLE_BYTES];

    for (size_t i = 0; json_is_string(value) && i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (strcmp(json_string_value(value), architectures[i].name) == 0)
            r->architecture = &architectures[i];
    if (r->architecture)
        return VKA_OK;
    return vka_fail(r->error, VKA_ERR_UNSUPPORTED,
                    "%s: general.architecture is %s; known are llama, qwen2, qwen3, qwen3moe, gemma, gemma2, gemma3, "
                    "phi2, phi3, olmo2, gpt-oss, starcoder2, gptneox, falcon and bert",
                    r->label, value ? vka_json_describe(value, text) : "missing");
}

static bool is_read(const char *key)
{
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
        if (strcmp(key, renamed[i].key) == 0)
            return true;
    for (const char *const *other = others; *other; other++)
        if (strcmp(key, *other) == 0)
            return true;
    return false;
}

/* Head sizes of the layers with a window, where they are those of the others. */
static bool is_same_size(const reader *r, const char *key)
{
    static const char *const pairs[][2] = {{"attention.key_length_swa", "attention.key_length"},
                                           {"attention.value_length_swa", "attention.value_length"},
                                           {"rope.dimension_count_swa", "rope.dimension_count"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (strcmp(key, pairs[i][0]) == 0)
            return json_equal(value_of(r, key), value_of(r, pairs[i][1]));
    return false;
}

/* Encoders see everything, the others what is before. */
static vka_status check_causal(const reader *r)
{
    const json_t *value = value_of(r, "attention.causal");
    bool is_encoder = strcmp(r->architecture->name, "bert") == 0;

    if (!value || (json_is_boolean(value) && json_is_true(value) != is_encoder))
        return VKA_OK;
    return vka_fail(r->error, VKA_ERR_UNSUPPORTED, "%s: %s.attention.causal is not %s", r->label, r->architecture->name,
                    is_encoder ? "false" : "true");
}

/* Which layers of Qwen have a window only a pattern says. */
static vka_status check_window(const reader *r)
{
    const json_t *window = json_object_get(r->out, "sliding_window");
    bool is_qwen = strncmp(r->architecture->name, "qwen", 4) == 0;

    if (json_is_integer(window) && json_integer_value(window) == 0)
        json_object_del(r->out, "sliding_window");
    else if (window && is_qwen && !json_is_array(value_of(r, "attention.sliding_window_pattern")))
        return vka_fail(r->error, VKA_ERR_UNSUPPORTED,
                        "%s: %s.attention.sliding_window is there, but not which layers have the window "
                        "(attention.sliding_window_pattern)",
                        r->label, r->architecture->name);
    else if (window && is_qwen)
        json_object_set_new(r->out, "use_sliding_window", json_true());
    return VKA_OK;
}

/* Of the keys below the architecture, those about attention and RoPE must be understood. */
static vka_status check_keys(const reader *r)
{
    size_t length = strlen(r->architecture->name);
    char name[VKA_PRINTABLE_BYTES], text[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)vka_gguf_metadata(r->file), key, value)
    {
        const char *below = key + length + 1;

        if (strncmp(key, r->architecture->name, length) != 0 || key[length] != '.')
            continue;
        if (is_same_size(r, below))
            continue;
        if ((strstr(below, "attention.") || strstr(below, "attn_") || strncmp(below, "rope.", 5) == 0) &&
            !is_read(below))
            return vka_fail(r->error, VKA_ERR_UNSUPPORTED,
                            "%s: key '%s' is %s; it may change attention and this release does not know it", r->label,
                            vka_printable(key, name), vka_json_describe(value, text));
    }
    if (vka_json_get(vka_gguf_metadata(r->file), "split.count") &&
        json_integer_value(json_object_get(vka_gguf_metadata(r->file), "split.count")) > 1)
        return vka_fail(r->error, VKA_ERR_UNSUPPORTED,
                        "%s: the model is split over several files (split.count): join them first", r->label);
    return VKA_OK;
}

/* A number for each layer is taken when all are one. */
static const json_t *one_of(const json_t *value)
{
    const json_t *first = json_array_get(value, 0);

    for (size_t i = 1; i < json_array_size(value); i++)
        if (!json_equal(json_array_get(value, i), first))
            return value; /* refused as no number by whoever reads it */
    return first ? first : value;
}

static void copy_keys(const reader *r)
{
    json_object_set_new(r->out, "model_type", json_string(r->architecture->model_type));
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        const json_t *value = one_of(value_of(r, renamed[i].key));

        if (value)
            json_object_set_new(r->out, renamed[i].name, json_deep_copy(value));
    }
}

/* V heads of another size are left to families that have them; head_dim must be there even if it follows. */
static vka_status read_head_sizes(const reader *r)
{
    uint32_t key = 0, value = 0, hidden = 0, heads = 1;
    vka_status status = vka_json_count(r->out, "head_dim", 1, VKA_MAX_HEAD_DIM, &key, r->label, r->error);

    if (status == VKA_OK)
        status = vka_json_count(r->out, "hidden_size", 1, INT32_MAX, &hidden, r->label, r->error);
    if (status == VKA_OK)
        status = vka_json_count(r->out, "num_attention_heads", 1, VKA_MAX_HEADS, &heads, r->label, r->error);
    if (status != VKA_OK)
        return status;
    if (key == 0 && hidden % heads == 0)
        json_object_set_new(r->out, "head_dim", json_integer(key = hidden / heads));
    value = json_is_integer(value_of(r, "attention.value_length"))
                ? (uint32_t)json_integer_value(value_of(r, "attention.value_length"))
                : key;
    if (value != key)
        return vka_fail(
            r->error, VKA_ERR_UNSUPPORTED,
            "%s: attention.value_length is %u, attention.key_length %u: %s has V heads of the size of K heads",
            r->label, value, key, r->architecture->name);
    return VKA_OK;
}

/* True for each layer with a window. */
static void read_pattern(const reader *r)
{
    const json_t *pattern = value_of(r, "attention.sliding_window_pattern");
    json_t *types;

    if (!json_is_array(pattern)) {
        if (pattern)
            json_object_set_new(r->out, "sliding_window_pattern", json_deep_copy(pattern));
        return;
    }
    types = json_array();
    for (size_t i = 0; i < json_array_size(pattern); i++)
        json_array_append_new(
            types, json_string(json_is_true(json_array_get(pattern, i)) ? "sliding_attention" : "full_attention"));
    json_object_set_new(r->out, "layer_types", types);
}

/* Falcon's own name of the number of KV heads. */
static void put_kv_heads(const reader *r)
{
    const json_t *heads = json_object_get(r->out, "num_key_value_heads");

    if (heads)
        json_object_set_new(r->out, "num_kv_heads", json_deep_copy(heads));
    json_object_del(r->out, "num_key_value_heads");
}

/* What config.json says and GGUF does not, where llama.cpp knows it from the family and the size of a model: the scale
 * of Gemma (hidden / heads in its 27B models, of 46 and 62 layers, else the head size), and that Falcon's converter has
 * ungrouped its merged rows. A llama that has a window is a Mistral. */
static void add_unsaid(reader *r)
{
    json_int_t layers = json_integer_value(json_object_get(r->out, "num_hidden_layers"));
    json_int_t heads = json_integer_value(json_object_get(r->out, "num_attention_heads"));
    bool gemma2 = strcmp(r->architecture->name, "gemma2") == 0, gemma3 = strcmp(r->architecture->name, "gemma3") == 0;
    json_int_t size = json_integer_value(json_object_get(r->out, "head_dim"));

    if (((gemma2 && layers == 46) || (gemma3 && layers == 62)) && heads > 0)
        size = json_integer_value(json_object_get(r->out, "hidden_size")) / heads;
    if (gemma2 || gemma3)
        json_object_set_new(r->out, "query_pre_attn_scalar", json_integer(size));
    if (strcmp(r->architecture->name, "llama") == 0 && json_object_get(r->out, "sliding_window"))
        json_object_set_new(r->out, "model_type", json_string("mistral"));
    if (strcmp(r->architecture->name, "falcon") == 0) {
        json_object_set_new(r->out, "new_decoder_architecture", json_true());
        put_kv_heads(r);
    }
}

static vka_status translate(reader *r)
{
    vka_status status = find_architecture(r);

    if (status == VKA_OK)
        status = check_keys(r);
    if (status != VKA_OK)
        return status;
    copy_keys(r);
    status = read_head_sizes(r);
    if (status == VKA_OK)
        status = check_causal(r);
    if (status == VKA_OK)
        status = check_window(r);
    if (status != VKA_OK)
        return status;
    read_pattern(r);
    add_unsaid(r);
    return vka_gguf_rope(&(vka_gguf_rope_source){r->file, r->architecture->name, r->out, r->label, r->error});
}

/* The share as config.json has it, and the number itself, which is not rounded. */
static vka_status read_rotary_dim(const reader *r, vka_gguf_facts *facts)
{
    const json_t *value = value_of(r, "rope.dimension_count");

    if (!value)
        return VKA_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 2 || json_integer_value(value) > VKA_MAX_HEAD_DIM)
        return vka_fail(r->error, VKA_ERR_FORMAT, "%s: %s.rope.dimension_count is no number from 2 to %u", r->label,
                        r->architecture->name, VKA_MAX_HEAD_DIM);
    facts->rotary_dim = (uint32_t)json_integer_value(value);
    if (facts->rotary_dim != json_integer_value(json_object_get(r->out, "head_dim")))
        json_object_set_new(r->out, "partial_rotary_factor",
                            json_real(facts->rotary_dim / json_number_value(json_object_get(r->out, "head_dim"))));
    return VKA_OK;
}

vka_status vka_gguf_config(vka_config *out, const vka_gguf *file, const char *label, vka_error *error)
{
    reader r = {.file = file, .out = json_object(), .label = label, .error = error};
    vka_gguf_facts facts = {.names = &vka_names_gguf};
    vka_status status;

    if (!r.out)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "%s: no memory for a configuration", label);
    status = translate(&r);
    if (status == VKA_OK)
        status = read_rotary_dim(&r, &facts);
    if (status != VKA_OK) {
        json_decref(r.out);
        return status;
    }
    facts.interleaved = r.architecture->interleaved;
    return vka_config_from_json(out, r.out, &facts, label, error);
}
