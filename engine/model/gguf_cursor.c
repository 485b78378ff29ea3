/* See gguf_cursor.h. Arrays of arrays, which the format allows and nobody writes, are refused, so that nothing
 * recurses; arrays of text are walked, since only their lengths say where they end. */
#include "model/gguf_cursor.h"

#include <string.h>

#include "base/error.h"
#include "model/json.h"

vka_status vka_gguf_skip(vka_gguf_cursor *c, uint64_t count, uint64_t bytes, const char *what)
{
    if (count > (c->size - c->at) / bytes)
        return vka_fail(c->error, VKA_ERR_FORMAT,
                        "%s: %s at byte %llu needs %llu times %llu bytes, the file has %llu more (is it cut short?)",
                        c->label, what, (unsigned long long)c->at, (unsigned long long)count, (unsigned long long)bytes,
                        (unsigned long long)(c->size - c->at));
    c->at += count * bytes;
    return VKA_OK;
}

vka_status vka_gguf_read(vka_gguf_cursor *c, void *out, size_t bytes, const char *what)
{
    uint64_t at = c->at;
    vka_status status = vka_gguf_skip(c, 1, bytes, what);

    if (status == VKA_OK)
        memcpy(out, c->data + at, bytes);
    return status;
}

vka_status vka_gguf_read_name(vka_gguf_cursor *c, char **next, uint64_t most, const char *what)
{
    uint64_t length = 0, begin;
    vka_status status = vka_gguf_read(c, &length, sizeof(length), what);

    if (status != VKA_OK)
        return status;
    begin = c->at;
    if (length == 0 || length > most)
        return vka_fail(c->error, VKA_ERR_FORMAT, "%s: %s at byte %llu has %llu letters, expected 1 .. %llu", c->label,
                        what, (unsigned long long)begin, (unsigned long long)length, (unsigned long long)most);
    status = vka_gguf_skip(c, length, 1, what);
    for (uint64_t i = 0; i < length && status == VKA_OK; i++)
        if (c->data[begin + i] < ' ' || c->data[begin + i] == 127)
            status = vka_fail(c->error, VKA_ERR_FORMAT, "%s: %s at byte %llu has the control character %u", c->label,
                              what, (unsigned long long)begin, c->data[begin + i]);
    if (status != VKA_OK)
        return status;
    memcpy(*next, c->data + begin, (size_t)length);
    (*next)[length] = '\0';
    *next += length + 1;
    return VKA_OK;
}

/* 0: of no fixed size */
static uint32_t kind_bytes(uint32_t kind)
{
    static const uint8_t bytes[VKA_GGUF_KINDS] = {
        [VKA_GGUF_U8] = 1,   [VKA_GGUF_I8] = 1,  [VKA_GGUF_U16] = 2, [VKA_GGUF_I16] = 2,
        [VKA_GGUF_U32] = 4,  [VKA_GGUF_I32] = 4, [VKA_GGUF_F32] = 4, [VKA_GGUF_U64] = 8,
        [VKA_GGUF_BOOL] = 1, [VKA_GGUF_I64] = 8, [VKA_GGUF_F64] = 8,
    };

    return bytes[kind];
}

static vka_status skip_strings(vka_gguf_cursor *c, uint64_t count, const char *what)
{
    vka_status status = VKA_OK;

    for (uint64_t i = 0; i < count && status == VKA_OK; i++) {
        uint64_t length = 0;

        status = vka_gguf_read(c, &length, sizeof(length), what);
        if (status == VKA_OK)
            status = vka_gguf_skip(c, length, 1, what);
    }
    return status;
}

vka_status vka_gguf_read_value(vka_gguf_cursor *c, vka_gguf_value *value)
{
    char what[VKA_PRINTABLE_BYTES];
    uint32_t kind = 0;
    vka_status status;

    vka_printable(value->key, what);
    status = vka_gguf_read(c, &kind, sizeof(kind), what);
    value->count = 1;
    value->is_array = kind == VKA_GGUF_ARRAY;
    if (status == VKA_OK && value->is_array) {
        status = vka_gguf_read(c, &kind, sizeof(kind), what);
        if (status == VKA_OK)
            status = vka_gguf_read(c, &value->count, sizeof(value->count), what);
    }
    if (status != VKA_OK)
        return status;
    if (kind >= VKA_GGUF_KINDS || kind == VKA_GGUF_ARRAY)
        return vka_fail(c->error, VKA_ERR_FORMAT, "%s: the %s of '%s' is %u, expected 0 .. 12%s", c->label,
                        value->is_array ? "element type" : "type", what, kind,
                        value->is_array ? " and no array (9)" : "");
    value->kind = (vka_gguf_kind)kind;
    value->data = c->data + c->at;
    return kind == VKA_GGUF_STRING ? skip_strings(c, value->count, what)
                                   : vka_gguf_skip(c, value->count, kind_bytes(kind), what);
}
