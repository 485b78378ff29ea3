/* jansson under strict flags, and typed reads with ranges. */
#include "model/json.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files.h"

const char *vka_printable(const char *text, char out[VKA_PRINTABLE_BYTES])
{
    size_t n = 0;

    for (; text[n] != '\0' && n + 4 < VKA_PRINTABLE_BYTES; n++)
        out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    snprintf(out + n, VKA_PRINTABLE_BYTES - n, "%s", text[n] != '\0' ? "..." : "");
    return out;
}

const char *vka_json_describe(const json_t *value, char out[VKA_PRINTABLE_BYTES])
{
    static const char *const types[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    if (json_is_string(value))
        vka_printable(json_string_value(value), out);
    else if (json_is_integer(value))
        snprintf(out, VKA_PRINTABLE_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(out, VKA_PRINTABLE_BYTES, "%g", json_real_value(value));
    else
        snprintf(out, VKA_PRINTABLE_BYTES, "%s", value ? types[json_typeof(value)] : "absent");
    return out;
}

vka_status vka_json_parse(json_t **out, const void *data, size_t size, const char *label, vka_error *error)
{
    char reason[VKA_PRINTABLE_BYTES];
    json_error_t problem;
    json_t *root;

    if (size > VKA_JSON_MAX_BYTES)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %zu bytes of JSON, expected at most %u", label, size,
                        VKA_JSON_MAX_BYTES);
    root = json_loadb(size > 0 ? data : "", size, JSON_REJECT_DUPLICATES, &problem);
    if (!root) {
        bool exhausted = json_error_code(&problem) == json_error_out_of_memory;

        return vka_fail(error, exhausted ? VKA_ERR_HOST_MEMORY : VKA_ERR_FORMAT, "%s: JSON, line %d, column %d: %s",
                        label, problem.line, problem.column, vka_printable(problem.text, reason));
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return vka_fail(error, VKA_ERR_FORMAT, "%s: the JSON is not an object", label);
    }
    *out = root;
    return VKA_OK;
}

vka_status vka_json_read(json_t **out, const char *path, vka_error *error)
{
    vka_mapping mapping = {0};
    vka_status status = vka_map_file(&mapping, path, error);

    if (status == VKA_OK)
        status = vka_json_parse(out, mapping.data, mapping.size, path, error);
    vka_unmap_file(&mapping);
    return status;
}

json_t *vka_json_get(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

vka_status vka_json_count(const json_t *object, const char *key, uint32_t least, uint32_t most, uint32_t *out,
                          const char *label, vka_error *error)
{
    const json_t *value = vka_json_get(object, key);
    char text[VKA_PRINTABLE_BYTES];

    if (!value)
        return VKA_OK;
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least ||
        json_integer_value(value) > (json_int_t)most)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected an integer %u .. %u", label, key,
                        vka_json_describe(value, text), least, most);
    *out = (uint32_t)json_integer_value(value);
    return VKA_OK;
}

vka_status vka_json_positive(const json_t *object, const char *key, double *out, const char *label, vka_error *error)
{
    const json_t *value = vka_json_get(object, key);
    double number = json_number_value(value);
    char text[VKA_PRINTABLE_BYTES];

    if (!value)
        return VKA_OK;
    if (!json_is_number(value) || !isfinite(number) || number <= 0)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected a finite number above 0", label, key,
                        vka_json_describe(value, text));
    *out = number;
    return VKA_OK;
}

vka_status vka_json_flag(const json_t *object, const char *key, bool *out, const char *label, vka_error *error)
{
    const json_t *value = vka_json_get(object, key);
    char text[VKA_PRINTABLE_BYTES];

    if (!value)
        return VKA_OK;
    if (!json_is_boolean(value))
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected true or false", label, key,
                        vka_json_describe(value, text));
    *out = json_is_true(value);
    return VKA_OK;
}
