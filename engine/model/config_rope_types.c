/* The types of RoPE: which keys each one has, and what they come to. A key that a type does not have is refused, as the
 * type itself is when it is not known. Formulas: vka_rope_type in vkattn/layer_desc.h. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/config.h"
#include "model/json.h"

typedef struct rope_reader {
    const vka_config_source *source;
    const char *where;
    const json_t *json;
    vka_layer_desc *desc;
} rope_reader;

typedef vka_status (*rope_reading)(const rope_reader *reader);

static vka_status read_positive(const rope_reader *reader, const char *key, double *out)
{
    return vka_json_positive(reader->json, key, out, reader->source->label, reader->source->error);
}

/* 0 and null leave the default. */
static vka_status read_optional(const rope_reader *reader, const char *key, double *out)
{
    const json_t *value = vka_json_get(reader->json, key);

    if (json_is_number(value) && json_number_value(value) == 0)
        return VKA_OK;
    return read_positive(reader, key, out);
}

static vka_status need(const rope_reader *reader, const char *key)
{
    if (vka_json_get(reader->json, key))
        return VKA_OK;
    return vka_fail(reader->source->error, VKA_ERR_FORMAT, "%s: %s.%s is missing", reader->source->label, reader->where,
                    key);
}

static vka_status read_needed(const rope_reader *reader, const char *key, double *out)
{
    vka_status status = need(reader, key);

    return status == VKA_OK ? read_positive(reader, key, out) : status;
}

static vka_status read_context(const rope_reader *reader, uint32_t *context)
{
    return vka_config_count(reader->source, reader->source->keys, "max_position_embeddings", INT32_MAX, context);
}

/* The length a model was first trained for: at the top, in the object, or in both with one value; absent: the length it
 * is for now. */
static vka_status read_original(const rope_reader *reader, uint32_t *original)
{
    static const char key[] = "original_max_position_embeddings";
    const vka_config_source *source = reader->source;
    uint32_t top = 0, inner = 0;
    vka_status status = vka_json_count(source->keys, key, 1, INT32_MAX, &top, source->label, source->error);

    if (status == VKA_OK)
        status = vka_json_count(reader->json, key, 1, INT32_MAX, &inner, source->label, source->error);
    if (status != VKA_OK)
        return status;
    if (top > 0 && inner > 0 && top != inner)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is given twice, as %u and in %s as %u", source->label,
                        key, top, reader->where, inner);
    *original = top > 0 ? top : inner;
    if (*original > 0)
        return VKA_OK;
    if (source->family->rotary.flags & VKA_ROTARY_LONGROPE)
        return vka_config_require(source, key);
    return read_context(reader, original);
}

/* ---- the types ---- */

static vka_status read_factor(const rope_reader *reader)
{
    return read_needed(reader, "factor", &reader->desc->rope_scaling.factor);
}

static vka_status read_dynamic(const rope_reader *reader)
{
    uint32_t original = 0;
    const vka_config_source *source = reader->source;
    vka_rope_scaling *scaling = &reader->desc->rope_scaling;
    vka_status status = read_factor(reader);

    if (status == VKA_OK)
        status = read_context(reader, &scaling->context);
    if (status == VKA_OK)
        status = vka_json_count(reader->json, "original_max_position_embeddings", 1, INT32_MAX, &original,
                                source->label, source->error);
    if (status == VKA_OK && original > 0 && original != scaling->context)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                        "%s: %s.original_max_position_embeddings is %u and max_position_embeddings %u; implementations "
                        "of 'dynamic' differ in which one they take",
                        source->label, reader->where, original, scaling->context);
    return status;
}

static vka_status read_mscales(const rope_reader *reader)
{
    vka_rope_scaling *scaling = &reader->desc->rope_scaling;
    double mscale = 0, all = 0;
    vka_status status = read_optional(reader, "mscale", &mscale);

    if (status == VKA_OK)
        status = read_optional(reader, "mscale_all_dim", &all);
    if (status == VKA_OK && mscale > 0 && all > 0) { /* one alone changes no angle */
        scaling->mscale = mscale;
        scaling->mscale_all_dim = all;
    }
    return status;
}

static vka_status read_yarn(const rope_reader *reader)
{
    vka_rope_scaling *scaling = &reader->desc->rope_scaling;
    bool truncate = true;
    uint32_t context = 0;
    vka_status status = read_original(reader, &scaling->original_context);

    if (status == VKA_OK)
        status = read_positive(reader, "factor", &scaling->factor);
    if (status == VKA_OK && scaling->factor == 0) {
        status = read_context(reader, &context);
        scaling->factor = (double)context / scaling->original_context;
    }
    if (status == VKA_OK)
        status = read_optional(reader, "beta_fast", &scaling->beta_fast);
    if (status == VKA_OK)
        status = read_optional(reader, "beta_slow", &scaling->beta_slow);
    if (status == VKA_OK)
        status = read_positive(reader, "attention_factor", &scaling->attention_factor);
    if (status == VKA_OK)
        status = read_mscales(reader);
    if (status == VKA_OK)
        status = vka_json_flag(reader->json, "truncate", &truncate, reader->source->label, reader->source->error);
    scaling->no_truncate = !truncate;
    return status;
}

static vka_status read_divisors(const rope_reader *reader, const char *key, float *out)
{
    const vka_config_source *source = reader->source;
    const json_t *list = vka_json_get(reader->json, key);
    uint32_t pairs = reader->desc->rotary_dim / 2;
    char text[VKA_PRINTABLE_BYTES];

    if (!json_is_array(list) || json_array_size(list) != pairs)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.%s is no array of rotary elements / 2 = %u numbers",
                        source->label, reader->where, key, pairs);
    for (uint32_t i = 0; i < pairs; i++) {
        const json_t *value = json_array_get(list, i);
        float number = (float)json_number_value(value);

        if (!json_is_number(value) || !isfinite(number) || number <= 0)
            return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.%s[%u] is %s, expected a finite number above 0",
                            source->label, reader->where, key, i, vka_json_describe(value, text));
        out[i] = number;
    }
    return VKA_OK;
}

static vka_status read_longrope(const rope_reader *reader)
{
    vka_rope_scaling *scaling = &reader->desc->rope_scaling;
    uint32_t context = 0;
    vka_status status = read_original(reader, &scaling->original_context);

    if (status == VKA_OK)
        status = read_divisors(reader, "short_factor", scaling->short_factor);
    if (status == VKA_OK)
        status = read_divisors(reader, "long_factor", scaling->long_factor);
    if (status == VKA_OK)
        status = read_positive(reader, "attention_factor", &scaling->attention_factor);
    if (status == VKA_OK)
        status = read_positive(reader, "factor", &scaling->factor);
    if (status == VKA_OK && scaling->factor == 0) {
        status = read_context(reader, &context);
        scaling->factor = (double)context / scaling->original_context;
    }
    return status;
}

static vka_status read_llama3(const rope_reader *reader)
{
    vka_rope_scaling *scaling = &reader->desc->rope_scaling;
    vka_status status = read_factor(reader);

    if (status == VKA_OK)
        status = read_needed(reader, "low_freq_factor", &scaling->low_freq_factor);
    if (status == VKA_OK)
        status = read_needed(reader, "high_freq_factor", &scaling->high_freq_factor);
    return status == VKA_OK ? read_original(reader, &scaling->original_context) : status;
}

#define ORIGINAL "original_max_position_embeddings"

static const struct rope_type {
    const char *name;
    vka_rope_type type;
    rope_reading read; /* NULL: nothing to read */
    const char *keys[9];
} types[] = {
    {"default", VKA_ROPE_DEFAULT, NULL, {NULL}},
    {"mrope", VKA_ROPE_DEFAULT, NULL, {NULL}}, /* old name, where there are sections */
    {"linear", VKA_ROPE_LINEAR, read_factor, {"factor"}},
    {"ntk", VKA_ROPE_NTK, read_factor, {"factor"}},
    {"dynamic", VKA_ROPE_DYNAMIC, read_dynamic, {"factor", ORIGINAL}},
    {"yarn",
     VKA_ROPE_YARN,
     read_yarn,
     {"factor", ORIGINAL, "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate"}},
    {"longrope",
     VKA_ROPE_LONGROPE,
     read_longrope,
     {"factor", ORIGINAL, "attention_factor", "short_factor", "long_factor"}},
    {"su", VKA_ROPE_LONGROPE, read_longrope, {"factor", ORIGINAL, "attention_factor", "short_factor", "long_factor"}},
    {"llama3", VKA_ROPE_LLAMA3, read_llama3, {"factor", ORIGINAL, "low_freq_factor", "high_freq_factor"}},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

static vka_status find_type(const rope_reader *reader, const struct rope_type **type)
{
    const vka_config_source *source = reader->source;
    const json_t *given = vka_json_get(reader->json, "rope_type"), *old = vka_json_get(reader->json, "type");
    unsigned flags = source->family->rotary.flags;
    const char *name;
    char text[VKA_PRINTABLE_BYTES], other[VKA_PRINTABLE_BYTES];

    *type = &types[0];
    if ((given && !json_is_string(given)) || (old && !json_is_string(old)))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.%s is %s, expected text", source->label, reader->where,
                        given && !json_is_string(given) ? "rope_type" : "type",
                        vka_json_describe(given && !json_is_string(given) ? given : old, text));
    if (given && old && !json_equal(given, old) && strcmp(json_string_value(old), "mrope") != 0)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s has the rope_type '%s' and the type '%s'", source->label,
                        reader->where, vka_json_describe(given, text), vka_json_describe(old, other));
    if (!given && !old)
        return VKA_OK;
    name = json_string_value(given ? given : old);
    for (*type = types; *type < types + TYPES; ++*type) {
        bool fits = strcmp((*type)->name, "mrope") != 0 || (flags & VKA_ROTARY_MROPE);
        bool allowed =
            !(flags & VKA_ROTARY_LONGROPE) || (*type)->type == VKA_ROPE_DEFAULT || (*type)->type == VKA_ROPE_LONGROPE;

        if (strcmp((*type)->name, name) == 0 && fits && allowed)
            return VKA_OK;
    }
    return vka_fail(
        source->error, VKA_ERR_UNSUPPORTED,
        "%s: rope type '%s' (%s.%s) is not supported for %s; known are default, linear, ntk, dynamic, yarn, "
        "longrope (su) and llama3",
        source->label, vka_printable(name, text), reader->where, given ? "rope_type" : "type", source->family->name);
}

static bool has_key(const rope_reader *reader, const struct rope_type *type, const char *key)
{
    static const char *const always[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    static const char *const sections[] = {"mrope_section", "mrope_interleaved"};

    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        if (strcmp(key, always[i]) == 0)
            return true;
    for (size_t i = 0; i < 2 && (reader->source->family->rotary.flags & VKA_ROTARY_MROPE); i++)
        if (strcmp(key, sections[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof(type->keys) / sizeof(type->keys[0]) && type->keys[i]; i++)
        if (strcmp(key, type->keys[i]) == 0)
            return true;
    return false;
}

static vka_status check_keys(const rope_reader *reader, const struct rope_type *type)
{
    char name[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)reader->json, key, value)
    {
        if (!json_is_null(value) && !has_key(reader, type, key))
            return vka_fail(reader->source->error, VKA_ERR_UNSUPPORTED,
                            "%s: %s has the key '%s', which the rope type '%s' does not have", reader->source->label,
                            reader->where, vka_printable(key, name), type->name);
    }
    return VKA_OK;
}

/* Three positions per token: which pairs follow which. */
static vka_status read_sections(const rope_reader *reader)
{
    const vka_config_source *source = reader->source;
    const json_t *list = vka_json_get(reader->json, "mrope_section");
    uint32_t *section = reader->desc->mrope_section;
    bool family_interleaves = !(source->family->rotary.flags & VKA_ROTARY_IN_ORDER), interleaved = family_interleaves;
    vka_status status = vka_json_flag(reader->json, "mrope_interleaved", &interleaved, source->label, source->error);

    if (status != VKA_OK)
        return status;
    if (interleaved != family_interleaves)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: mrope_interleaved is %s, but %s %s", source->label,
                        interleaved ? "true" : "false", source->family->name,
                        interleaved ? "does not interleave" : "interleaves");
    memcpy(section, source->family->rotary.mrope, sizeof(reader->desc->mrope_section));
    if (list && (!json_is_array(list) || json_array_size(list) != 3))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.mrope_section is no array of 3 numbers", source->label,
                        reader->where);
    for (size_t i = 0; list && i < 3; i++) {
        json_int_t pairs = json_integer_value(json_array_get(list, i));

        if (!json_is_integer(json_array_get(list, i)) || pairs < 0 || pairs > VKA_MAX_HEAD_DIM)
            return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.mrope_section[%zu] is no count of pairs",
                            source->label, reader->where, i);
        section[i] = (uint32_t)pairs;
    }
    if (section[0] + section[1] + section[2] != reader->desc->rotary_dim / 2)
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: mrope_section is %u, %u, %u, expected a sum of rotary elements / 2 = %u", source->label,
                        section[0], section[1], section[2], reader->desc->rotary_dim / 2);
    reader->desc->mrope_interleaved = interleaved;
    return VKA_OK;
}

vka_status vka_config_rope_type(const vka_config_source *source, const char *where, const json_t *rope,
                                vka_layer_desc *desc)
{
    const rope_reader reader = {source, where, rope, desc};
    const struct rope_type *type = NULL;
    vka_status status = find_type(&reader, &type);

    if (status == VKA_OK)
        status = check_keys(&reader, type);
    if (status != VKA_OK)
        return status;
    desc->rope_type = type->type;
    if (source->family->rotary.flags & VKA_ROTARY_MROPE)
        status = read_sections(&reader);
    if (status == VKA_OK && type->read)
        status = type->read(&reader);
    return status;
}
