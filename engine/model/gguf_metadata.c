/* Keys and values of a GGUF file, as a JSON object, so that they are read with the same checks as a configuration. What
 * is about a tokenizer, or only describes the file, is stepped over: a stray byte in a licence is no reason to refuse a
 * model. */
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "model/gguf_cursor.h"
#include "model/json.h"

enum { KEY_BYTES = 256, MAX_ARRAY = 65536, LEAST_ENTRY = 8 + 1 + 4 + 1 };

enum value_type { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64, TYPES };

static const unsigned char type_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static json_t *number_of(uint64_t type, uint64_t bits)
{
    float single;
    double value;
    uint32_t low = (uint32_t)bits;

    switch (type) {
    case I8:
        return json_integer((int8_t)bits);
    case I16:
        return json_integer((int16_t)bits);
    case I32:
        return json_integer((int32_t)bits);
    case I64:
        return json_integer((int64_t)bits);
    case F32:
        memcpy(&single, &low, sizeof(single));
        return json_real((double)single); /* NULL when not finite */
    case F64:
        memcpy(&value, &bits, sizeof(value));
        return json_real(value);
    default:
        return bits > INT64_MAX ? json_real((double)bits) : json_integer((json_int_t)bits);
    }
}

static vka_status bad_value(const gguf_cursor *cursor, const char *key, const char *what)
{
    char text[VKA_PRINTABLE_BYTES];

    return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: the value of '%s' %s", cursor->label, vka_printable(key, text),
                    what);
}

static vka_status read_scalar(gguf_cursor *cursor, const char *key, uint64_t type, json_t **out)
{
    gguf_text text;
    uint64_t bits;
    vka_status status;

    if (type == TEXT) {
        status = gguf_read_text(cursor, &text, key);
        if (status == VKA_OK && !memchr(text.data, 0, text.size)) /* a NUL would hide what follows it */
            *out = json_stringn(text.data, text.size);
        return status != VKA_OK || *out ? status : bad_value(cursor, key, "is no UTF-8 text without NUL");
    }
    status = gguf_unsigned(cursor, type_bytes[type], &bits, key);
    if (status != VKA_OK)
        return status;
    if (type == BOOL && bits > 1)
        return bad_value(cursor, key, "is neither true nor false");
    *out = type == BOOL ? json_boolean(bits) : number_of(type, bits);
    return *out ? VKA_OK : bad_value(cursor, key, "is no finite number");
}

static vka_status skip_texts(gguf_cursor *cursor, const char *key, uint64_t count)
{
    vka_status status = VKA_OK;
    gguf_text text;

    if (count > gguf_left(cursor) / 8)
        return bad_value(cursor, key, "is an array that is longer than the file");
    for (uint64_t i = 0; i < count && status == VKA_OK; i++)
        status = gguf_read_text(cursor, &text, key);
    return status;
}

/* The type and the number of the elements; those are in the file. */
static vka_status read_array_head(gguf_cursor *cursor, const char *key, uint64_t *type, uint64_t *count)
{
    vka_status status = gguf_unsigned(cursor, 4, type, key);

    if (status == VKA_OK)
        status = gguf_unsigned(cursor, 8, count, key);
    if (status != VKA_OK)
        return status;
    if (*type >= TYPES || *type == ARRAY)
        return bad_value(cursor, key, "is an array of a type that is not known, or of arrays");
    if (*type != TEXT && *count > gguf_left(cursor) / type_bytes[*type])
        return bad_value(cursor, key, "is an array that is longer than the file");
    return VKA_OK;
}

/* Steps over a value of any type. */
static vka_status skip_value(gguf_cursor *cursor, const char *key, uint64_t type)
{
    uint64_t count = 1;
    vka_status status = type == ARRAY ? read_array_head(cursor, key, &type, &count) : VKA_OK;

    if (status != VKA_OK)
        return status;
    return type == TEXT ? skip_texts(cursor, key, count) : gguf_skip(cursor, count * type_bytes[type], key);
}

static vka_status read_array(gguf_cursor *cursor, const char *key, json_t **out)
{
    uint64_t type, count = 0;
    vka_status status = read_array_head(cursor, key, &type, &count);

    if (status != VKA_OK)
        return status;
    if (type == TEXT)
        return skip_texts(cursor, key, count);
    if (count > MAX_ARRAY)
        return gguf_skip(cursor, count * type_bytes[type], key);
    *out = json_array();
    for (uint64_t i = 0; i < count && status == VKA_OK; i++) {
        json_t *value = NULL;

        status = read_scalar(cursor, key, type, &value);
        if (status == VKA_OK && json_array_append_new(*out, value) != 0)
            status = vka_fail(cursor->error, VKA_ERR_HOST_MEMORY, "%s: no memory for metadata", cursor->label);
    }
    return status;
}

static bool is_of_no_use(const char *key)
{
    if (strcmp(key, "general.architecture") == 0 || strcmp(key, "general.alignment") == 0)
        return false;
    return strncmp(key, "tokenizer.", strlen("tokenizer.")) == 0 || strncmp(key, "general.", strlen("general.")) == 0;
}

static vka_status read_entry(gguf_cursor *cursor, json_t *object)
{
    char key[KEY_BYTES];
    json_t *value = NULL;
    uint64_t type = 0;
    vka_status status = gguf_read_name(cursor, key, sizeof(key), "a key");

    if (status == VKA_OK)
        status = gguf_unsigned(cursor, 4, &type, key);
    if (status != VKA_OK)
        return status;
    if (type >= TYPES)
        return bad_value(cursor, key, "has a type that is not known");
    if (json_object_get(object, key))
        return bad_value(cursor, key, "is there twice");
    if (is_of_no_use(key))
        return skip_value(cursor, key, type);
    status = type == ARRAY ? read_array(cursor, key, &value) : read_scalar(cursor, key, type, &value);
    if (status != VKA_OK || !value) {
        json_decref(value);
        return status;
    }
    if (json_object_set_new(object, key, value) != 0) /* fails when the key is no UTF-8 */
        return bad_value(cursor, key, "has a key that is no UTF-8 text");
    return VKA_OK;
}

vka_status gguf_read_metadata(gguf_cursor *cursor, uint64_t count, json_t **out)
{
    vka_status status = VKA_OK;

    if (count > gguf_left(cursor) / LEAST_ENTRY)
        return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: %llu keys cannot be in the %zu bytes that follow",
                        cursor->label, (unsigned long long)count, gguf_left(cursor));
    *out = json_object();
    if (!*out)
        return vka_fail(cursor->error, VKA_ERR_HOST_MEMORY, "%s: no memory for metadata", cursor->label);
    for (uint64_t i = 0; i < count && status == VKA_OK; i++)
        status = read_entry(cursor, *out);
    return status;
}
