/* Typed reads of GGUF metadata: any integer type serves where a count is wanted, since writers differ. */
#include "model/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/json.h"

enum { WORD_BYTES = 48 };

#define TAKE(kind, type)                                                                                               \
    case kind: {                                                                                                       \
        type x;                                                                                                        \
        memcpy(&x, value->data + index * sizeof(x), sizeof(x));                                                        \
        *out = x;                                                                                                      \
        return true;                                                                                                   \
    }

/* False for what is no integer that fits. */
static bool take_integer(const vka_gguf_value *value, uint64_t index, int64_t *out)
{
    switch (value->kind) {
        TAKE(VKA_GGUF_U8, uint8_t)
        TAKE(VKA_GGUF_I8, int8_t)
        TAKE(VKA_GGUF_U16, uint16_t)
        TAKE(VKA_GGUF_I16, int16_t)
        TAKE(VKA_GGUF_U32, uint32_t)
        TAKE(VKA_GGUF_I32, int32_t)
        TAKE(VKA_GGUF_I64, int64_t)
    case VKA_GGUF_U64: {
        uint64_t x;

        memcpy(&x, value->data + index * sizeof(x), sizeof(x));
        *out = (int64_t)(x & INT64_MAX);
        return x <= INT64_MAX;
    }
    default:
        return false;
    }
}

static bool take_real(const vka_gguf_value *value, uint64_t index, double *out)
{
    switch (value->kind) {
        TAKE(VKA_GGUF_F32, float)
        TAKE(VKA_GGUF_F64, double)
    default:
        return false;
    }
}

/* Element `index` of an array, or the scalar. */
static uint64_t element(const vka_gguf_value *value, uint64_t index)
{
    return value->is_array ? index : 0;
}

static const char *describe(const vka_gguf_value *value, uint64_t index, char out[WORD_BYTES])
{
    static const char *const kinds[VKA_GGUF_KINDS] = {
        [VKA_GGUF_BOOL] = "true or false", [VKA_GGUF_STRING] = "text", [VKA_GGUF_U64] = "a huge integer"};
    int64_t integer;
    double real;

    if (element(value, index) >= value->count)
        snprintf(out, WORD_BYTES, "an array of %llu elements", (unsigned long long)value->count);
    else if (take_integer(value, element(value, index), &integer))
        snprintf(out, WORD_BYTES, "%lld", (long long)integer);
    else if (take_real(value, element(value, index), &real))
        snprintf(out, WORD_BYTES, "%g", real);
    else
        snprintf(out, WORD_BYTES, "%s", kinds[value->kind]);
    return out;
}

vka_status vka_gguf_count(const vka_gguf *file, const char *key, uint64_t index, uint32_t least, uint32_t most,
                          uint32_t *out, vka_error *error)
{
    const vka_gguf_value *value = vka_gguf_find(file, key);
    char text[WORD_BYTES];
    int64_t found;

    if (!value)
        return VKA_OK;
    if (element(value, index) >= value->count || !take_integer(value, element(value, index), &found) ||
        found < (int64_t)least || found > (int64_t)most)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected an integer %u .. %u", vka_gguf_label(file), key,
                        describe(value, index, text), least, most);
    *out = (uint32_t)found;
    return VKA_OK;
}

vka_status vka_gguf_number(const vka_gguf *file, const char *key, double *out, vka_error *error)
{
    const vka_gguf_value *value = vka_gguf_find(file, key);
    char text[WORD_BYTES];
    double found = 0;
    int64_t integer;
    bool is_number;

    if (!value)
        return VKA_OK;
    is_number = !value->is_array && take_real(value, 0, &found);
    if (!is_number && !value->is_array && take_integer(value, 0, &integer)) {
        found = (double)integer;
        is_number = true;
    }
    if (!is_number || !isfinite(found))
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected a finite number", vka_gguf_label(file), key,
                        describe(value, value->is_array ? value->count : 0, text));
    *out = found;
    return VKA_OK;
}

vka_status vka_gguf_flag(const vka_gguf *file, const char *key, uint64_t index, bool *out, vka_error *error)
{
    const vka_gguf_value *value = vka_gguf_find(file, key);
    char text[WORD_BYTES];

    if (!value)
        return VKA_OK;
    if (value->kind != VKA_GGUF_BOOL || element(value, index) >= value->count || value->data[element(value, index)] > 1)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected true or false (1 or 0)", vka_gguf_label(file),
                        key, describe(value, index, text));
    *out = value->data[element(value, index)] != 0;
    return VKA_OK;
}

vka_status vka_gguf_text(const vka_gguf *file, const char *key, const char **text, size_t *length, vka_error *error)
{
    const vka_gguf_value *value = vka_gguf_find(file, key);
    char word[WORD_BYTES];
    uint64_t size;

    if (!value)
        return VKA_OK;
    if (value->is_array || value->kind != VKA_GGUF_STRING)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: %s is %s, expected text", vka_gguf_label(file), key,
                        describe(value, value->is_array ? value->count : 0, word));
    memcpy(&size, value->data, sizeof(size));
    *text = (const char *)value->data + sizeof(size);
    *length = (size_t)size;
    return VKA_OK;
}
