/* Scaling keys, and tensors that hold a divisor for each frequency: rope_freqs (Llama 3: the converter has worked out
 * the bands, so these divisors hold at every length) and rope_factors_short and rope_factors_long (Phi 3). */
#include "model/gguf_rope.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "model/json.h"
#include "vkattn/layer_desc.h"

static const json_t *value_of(const vka_gguf_rope_source *s, const char *key)
{
    char full[VKA_PRINTABLE_BYTES];

    snprintf(full, sizeof(full), "%s.rope.%s", s->architecture, key);
    return vka_json_get(vka_gguf_metadata(s->file), full);
}

/* *out: an array, half-filled after a failure, which the caller owns; NULL when there is no such tensor. */
static vka_status read_divisors(const vka_gguf_rope_source *s, const char *name, json_t **out)
{
    const vka_gguf_tensor *tensor = vka_gguf_find(s->file, name);

    *out = NULL;
    if (!tensor)
        return VKA_OK;
    if (tensor->tensor.dtype != VKA_F32 || tensor->tensor.dims != 1 || tensor->tensor.shape[0] > VKA_MAX_HEAD_DIM / 2)
        return vka_fail(s->error, VKA_ERR_FORMAT, "%s: tensor '%s' is no F32 vector of at most %u elements", s->label,
                        name, VKA_MAX_HEAD_DIM / 2);
    *out = json_array();
    for (uint64_t i = 0; i < tensor->tensor.shape[0]; i++) {
        float value;

        vka_convert(&value, VKA_F32, (const float *)tensor->tensor.data + i, VKA_F32, 1);
        if (json_array_append_new(*out, json_real((double)value)) != 0)
            return vka_fail(s->error, VKA_ERR_FORMAT, "%s: element %llu of tensor '%s' is no finite number", s->label,
                            (unsigned long long)i, name);
    }
    return VKA_OK;
}

static void put(json_t *object, const char *name, const json_t *value)
{
    if (value)
        json_object_set_new(object, name, json_deep_copy(value));
}

/* Takes both lists over. */
static void add_lists(const vka_gguf_rope_source *s, json_t *shorter, json_t *longer)
{
    json_t *scaling =
        json_pack("{s:s, s:o, s:o}", "rope_type", "longrope", "short_factor", shorter, "long_factor", longer);

    put(scaling, "attention_factor", value_of(s, "scaling.attn_factor"));
    put(s->out, "original_max_position_embeddings", value_of(s, "scaling.original_context_length"));
    json_object_set_new(s->out, "rope_scaling", scaling);
}

/* One list for every length: both lists of longrope, with a limit that no length reaches. */
static void add_fixed(const vka_gguf_rope_source *s, json_t *list)
{
    json_t *scaling =
        json_pack("{s:s, s:O, s:o, s:i, s:f, s:f}", "rope_type", "longrope", "short_factor", list, "long_factor", list,
                  "original_max_position_embeddings", INT32_MAX, "factor", 1.0, "attention_factor", 1.0);

    json_object_set_new(s->out, "rope_scaling", scaling);
}

static bool is_one(const json_t *value)
{
    return !value || (json_is_number(value) && json_number_value(value) == 1);
}

/* Scaling keys that would be left out: a factor beside divisors, and an amplitude that only longrope has (llama.cpp
 * multiplies it with that of yarn, which writers do not agree on). */
static vka_status check_unused(const vka_gguf_rope_source *s, bool has_divisors)
{
    const char *type = json_string_value(value_of(s, "scaling.type"));
    bool is_scaled = type && (strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0);
    bool is_long = has_divisors && vka_gguf_find(s->file, "rope_factors_long.weight") != NULL;

    if (has_divisors && (is_scaled || !is_one(value_of(s, "scaling.factor"))))
        return vka_fail(s->error, VKA_ERR_UNSUPPORTED,
                        "%s: %s.rope.scaling has a type or factor beside a tensor of divisors, which is not understood",
                        s->label, s->architecture);
    if (!is_long && !is_one(value_of(s, "scaling.attn_factor")))
        return vka_fail(s->error, VKA_ERR_UNSUPPORTED,
                        "%s: %s.rope.scaling.attn_factor is not 1 without rope_factors_long.weight, which is not "
                        "understood",
                        s->label, s->architecture);
    return VKA_OK;
}

/* A factor without a type is linear. */
static vka_status add_type(const vka_gguf_rope_source *s)
{
    const json_t *type = value_of(s, "scaling.type");
    const char *name = type ? json_string_value(type) : "linear";
    char text[VKA_PRINTABLE_BYTES];
    json_t *scaling;

    if ((!type && is_one(value_of(s, "scaling.factor"))) || (name && strcmp(name, "none") == 0))
        return VKA_OK;
    if (!name || (strcmp(name, "linear") != 0 && strcmp(name, "yarn") != 0))
        return vka_fail(s->error, VKA_ERR_UNSUPPORTED,
                        "%s: %s.rope.scaling.type is %s, expected none, linear or yarn, or longrope with its tensors",
                        s->label, s->architecture, vka_json_describe(type, text));
    scaling = json_pack("{s:s}", "rope_type", name);
    put(scaling, "factor", value_of(s, "scaling.factor"));
    if (strcmp(name, "yarn") == 0) {
        put(scaling, "original_max_position_embeddings", value_of(s, "scaling.original_context_length"));
        put(scaling, "beta_fast", value_of(s, "scaling.yarn_beta_fast"));
        put(scaling, "beta_slow", value_of(s, "scaling.yarn_beta_slow"));
        if (strcmp(s->architecture, "gpt-oss") == 0) /* as the model was trained */
            json_object_set_new(scaling, "truncate", json_false());
    }
    json_object_set_new(s->out, "rope_scaling", scaling);
    return VKA_OK;
}

vka_status vka_gguf_rope(const vka_gguf_rope_source *source)
{
    json_t *fixed = NULL, *shorter = NULL, *longer = NULL;
    vka_status status = read_divisors(source, "rope_freqs.weight", &fixed);

    if (status == VKA_OK)
        status = read_divisors(source, "rope_factors_short.weight", &shorter);
    if (status == VKA_OK)
        status = read_divisors(source, "rope_factors_long.weight", &longer);
    if (status == VKA_OK && (shorter || longer) && (!shorter || !longer || fixed))
        status = vka_fail(source->error, VKA_ERR_FORMAT,
                          "%s: of rope_factors_short.weight, rope_factors_long.weight and rope_freqs.weight expected "
                          "none, the first two, or the last",
                          source->label);
    if (status == VKA_OK)
        status = check_unused(source, shorter || fixed);
    if (status == VKA_OK && shorter) {
        add_lists(source, shorter, longer);
        return VKA_OK;
    }
    if (status == VKA_OK && fixed) {
        add_fixed(source, fixed);
        return VKA_OK;
    }
    json_decref(fixed);
    json_decref(shorter);
    json_decref(longer);
    return status == VKA_OK ? add_type(source) : status;
}
