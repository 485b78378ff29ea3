/* RoPE in a configuration. Two spellings: top-level rope_theta and partial_rotary_factor with an object rope_scaling,
 * or everything in an object rope_parameters (transformers 5), which may hold one object per kind of layer. What is
 * given twice must agree. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/config.h"
#include "model/json.h"

typedef struct rope_object {
    const char *where;  /* its name */
    const json_t *json; /* NULL: there is none */
} rope_object;

static const char *kind_name(const vka_config_source *source)
{
    return source->kind == VKA_LAYER_SLIDING ? "sliding_attention" : "full_attention";
}

/* The object of this kind of layer in rope_parameters, which holds objects only. */
static vka_status choose_kind(const vka_config_source *source, rope_object *rope)
{
    char text[VKA_PRINTABLE_BYTES], name[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)rope->json, key, value)
    {
        bool is_kind = strcmp(key, "full_attention") == 0 || strcmp(key, "sliding_attention") == 0;

        if (!is_kind || (!json_is_object(value) && !json_is_null(value)))
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: rope_parameters.%s is %s; %s has one object each for full_attention and "
                            "sliding_attention there",
                            source->label, vka_printable(key, name), vka_json_describe(value, text),
                            source->family->name);
    }
    rope->json = vka_json_get(rope->json, kind_name(source));
    rope->where =
        source->kind == VKA_LAYER_SLIDING ? "rope_parameters.sliding_attention" : "rope_parameters.full_attention";
    return VKA_OK;
}

static vka_status find_object(const vka_config_source *source, rope_object *rope)
{
    const json_t *scaling = vka_json_get(source->keys, "rope_scaling");
    const json_t *parameters = vka_json_get(source->keys, "rope_parameters");
    bool by_kind = source->family->rotary.flags & VKA_ROTARY_BY_KIND;
    char text[VKA_PRINTABLE_BYTES];

    if (scaling && parameters)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: both rope_scaling and rope_parameters are given",
                        source->label);
    rope->where = parameters ? "rope_parameters" : "rope_scaling";
    rope->json = parameters ? parameters : scaling;
    if (rope->json && !json_is_object(rope->json))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is %s, expected an object", source->label, rope->where,
                        vka_json_describe(rope->json, text));
    if (!rope->json && (source->family->rotary.flags & VKA_ROTARY_GIVEN))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: neither rope_parameters nor rope_scaling is given",
                        source->label);
    if (by_kind && parameters)
        return choose_kind(source, rope);
    if (by_kind && source->kind == VKA_LAYER_SLIDING)
        rope->json = NULL; /* rope_scaling is for the layers without a window */
    return VKA_OK;
}

/* A number that may stand at the top, in the object, or in both with one value. */
static vka_status read_number(const vka_config_source *source, const rope_object *rope, const char *top_key,
                              const char *key, double *out)
{
    double top = *out, inner;
    vka_status status = vka_json_positive(source->keys, top_key, &top, source->label, source->error);

    if (status != VKA_OK)
        return status;
    inner = top;
    status = vka_json_positive(rope->json, key, &inner, source->label, source->error);
    if (status != VKA_OK)
        return status;
    if (vka_json_get(source->keys, top_key) && (inner < top || inner > top))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is given twice, as %g and in %s as %g", source->label,
                        top_key, top, rope->where, inner);
    *out = inner;
    return VKA_OK;
}

static vka_status read_theta(const vka_config_source *source, const rope_object *rope, vka_layer_desc *desc)
{
    const vka_rotary_rule *rule = &source->family->rotary;
    bool local = (rule->flags & VKA_ROTARY_BY_KIND) && source->kind == VKA_LAYER_SLIDING;
    const char *key = local ? "rope_local_base_freq" : rule->theta_key ? rule->theta_key : "rope_theta";

    double nested = desc->rope_theta, plain; /* nested: a hook has read it */
    vka_status status;

    if (nested == 0)
        desc->rope_theta = rule->theta > 0 && !local ? rule->theta : 10000.0;
    status = read_number(source, rope, key, "rope_theta", &desc->rope_theta);
    plain = desc->rope_theta;
    if (status == VKA_OK && rule->theta_key)
        status = vka_json_positive(source->keys, "rope_theta", &plain, source->label, source->error);
    if (status == VKA_OK && ((nested > 0 && fabs(nested - desc->rope_theta) > 0) || fabs(plain - desc->rope_theta) > 0))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: rope_theta is given twice, as %g and as %g", source->label,
                        nested > 0 ? nested : plain, desc->rope_theta);
    return status;
}

/* How many elements of a head turn. */
static vka_status read_rotary_dim(const vka_config_source *source, const rope_object *rope, vka_layer_desc *desc)
{
    const vka_rotary_rule *rule = &source->family->rotary;
    uint32_t span = desc->head_dim - desc->rotary_offset;
    double part = rule->part > 0 ? rule->part : 1.0;
    vka_status status = VKA_OK;

    if (rule->dim_key) {
        desc->rotary_dim = span;
        return vka_json_count(source->keys, rule->dim_key, 2, span, &desc->rotary_dim, source->label, source->error);
    }
    if (rule->part_key)
        status = vka_json_positive(source->keys, rule->part_key, &part, source->label, source->error);
    if (status == VKA_OK)
        status = read_number(source, rope, "partial_rotary_factor", "partial_rotary_factor", &part);
    if (status != VKA_OK)
        return status;
    if (part > 1.0)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: partial_rotary_factor is %g, expected at most 1",
                        source->label, part);
    desc->rotary_dim = (uint32_t)(span * part);
    if (desc->rotary_dim == 0 || desc->rotary_dim % 2 != 0)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                        "%s: partial_rotary_factor %g of head_dim %u makes %u rotating elements, expected an even "
                        "number above 0",
                        source->label, part, span, desc->rotary_dim);
    return VKA_OK;
}

static vka_status refuse_rope(const vka_config_source *source)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters", "rope_theta"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (vka_json_get(source->keys, keys[i]))
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: %s is given, but %s has no rotary embedding",
                            source->label, keys[i], source->family->name);
    return VKA_OK;
}

vka_status vka_config_rope(const vka_config_source *source, vka_layer_desc *desc)
{
    rope_object rope = {0};
    vka_status status;

    if (desc->rope_type == VKA_ROPE_NONE) /* a hook has said so */
        return VKA_OK;
    if (source->family->rotary.flags & VKA_ROTARY_NONE) {
        desc->rope_type = VKA_ROPE_NONE;
        return refuse_rope(source);
    }
    desc->rope_pairing = source->family->rotary.pairing;
    status = find_object(source, &rope);
    if (status == VKA_OK)
        status = read_theta(source, &rope, desc);
    if (status == VKA_OK)
        status = read_rotary_dim(source, &rope, desc);
    return status == VKA_OK ? vka_config_rope_type(source, rope.where, rope.json, desc) : status;
}
