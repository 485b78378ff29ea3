/* RoPE in a configuration. Two spellings: top-level rope_theta and partial_rotary_factor with an object rope_scaling,
 * or everything in an object rope_parameters (transformers 5). The object's kind is rope_type, or type in older files.
 * Only the kind "default" is computed; what is given twice must agree. */
#include "model/config.h"

#include <string.h>

#include "base/error.h"
#include "model/json.h"

static vka_status check_type(const vka_config_source *source, const char *where, const json_t *rope, const char *key)
{
    const json_t *type = vka_json_get(rope, key);
    char text[VKA_PRINTABLE_BYTES];

    if (!type)
        return VKA_OK;
    if (!json_is_string(type))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s.%s is %s, expected text", source->label, where, key,
                        vka_json_describe(type, text));
    if (strcmp(json_string_value(type), "default") == 0)
        return VKA_OK;
    return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                    "%s: rope type '%s' (%s.%s) is not supported by this release; only 'default' is", source->label,
                    vka_json_describe(type, text), where, key);
}

static vka_status check_keys(const vka_config_source *source, const char *where, json_t *rope)
{
    static const char *const known[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    char name[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach(rope, key, value)
    {
        bool is_known = json_is_null(value);

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            is_known = is_known || strcmp(key, known[i]) == 0;
        if (!is_known)
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: %s has the key '%s', which the rope type 'default' does not have", source->label,
                            where, vka_printable(key, name));
    }
    return VKA_OK;
}

/* The one object that describes RoPE; *rope stays NULL when there is none. */
static vka_status find_object(const vka_config_source *source, const char **where, json_t **rope)
{
    json_t *scaling = vka_json_get(source->root, "rope_scaling");
    json_t *parameters = vka_json_get(source->root, "rope_parameters");
    json_t *found = parameters ? parameters : scaling;
    char text[VKA_PRINTABLE_BYTES];
    vka_status status;

    if (scaling && parameters)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: both rope_scaling and rope_parameters are given",
                        source->label);
    *where = parameters ? "rope_parameters" : "rope_scaling";
    if (!found)
        return VKA_OK;
    if (!json_is_object(found))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is %s, expected an object", source->label, *where,
                        vka_json_describe(found, text));
    status = check_type(source, *where, found, "rope_type");
    if (status == VKA_OK)
        status = check_type(source, *where, found, "type");
    if (status == VKA_OK)
        status = check_keys(source, *where, found);
    if (status == VKA_OK)
        *rope = found;
    return status;
}

/* A number that may stand at the top, in the object, or in both with one value. */
static vka_status read_number(const vka_config_source *source, const char *where, const json_t *rope, const char *key,
                              double *out)
{
    double top = *out, inner;
    vka_status status = vka_json_positive(source->root, key, &top, source->label, source->error);

    if (status != VKA_OK)
        return status;
    inner = top;
    status = vka_json_positive(rope, key, &inner, source->label, source->error);
    if (status != VKA_OK)
        return status;
    if (vka_json_get(source->root, key) && (inner < top || inner > top))
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: %s is given twice, as %g and in %s as %g", source->label,
                        key, top, where, inner);
    *out = inner;
    return VKA_OK;
}

vka_status vka_config_rope(const vka_config_source *source, vka_config *config)
{
    double theta = 10000.0, factor = 1.0; /* what all four families take when nothing is given */
    const char *where = NULL;
    json_t *rope = NULL;
    vka_status status = find_object(source, &where, &rope);

    if (status == VKA_OK)
        status = read_number(source, where, rope, "rope_theta", &theta);
    if (status == VKA_OK)
        status = read_number(source, where, rope, "partial_rotary_factor", &factor);
    if (status != VKA_OK)
        return status;
    if (factor > 1.0)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: partial_rotary_factor is %g, expected at most 1",
                        source->label, factor);
    config->desc.rope_theta = theta;
    config->desc.rotary_dim = (uint32_t)(config->desc.head_dim * factor);
    if (config->desc.rotary_dim == 0 || config->desc.rotary_dim % 2 != 0)
        return vka_fail(
            source->error, VKA_ERR_UNSUPPORTED,
            "%s: partial_rotary_factor %g of head_dim %u makes %u rotating elements, expected an even number "
            "above 0",
            source->label, factor, config->desc.head_dim, config->desc.rotary_dim);
    return VKA_OK;
}
