/* See gguf_cursor.h. */
#include "model/gguf_cursor.h"

#include <string.h>

#include "base/error.h"
#include "model/json.h"

vka_status gguf_skip(gguf_cursor *cursor, uint64_t bytes, const char *what)
{
    if (bytes > gguf_left(cursor))
        return vka_fail(cursor->error, VKA_ERR_FORMAT,
                        "%s: %s at byte %zu needs %llu bytes, %zu are left (is the file cut short?)", cursor->label,
                        what, cursor->at, (unsigned long long)bytes, gguf_left(cursor));
    cursor->at += (size_t)bytes;
    return VKA_OK;
}

vka_status gguf_unsigned(gguf_cursor *cursor, unsigned bytes, uint64_t *out, const char *what)
{
    const unsigned char *from = cursor->data + cursor->at;
    vka_status status = gguf_skip(cursor, bytes, what);
    uint64_t value = 0;

    for (unsigned i = bytes; i > 0 && status == VKA_OK; i--)
        value = value << 8 | from[i - 1];
    *out = value;
    return status;
}

vka_status gguf_read_text(gguf_cursor *cursor, gguf_text *out, const char *what)
{
    uint64_t size;
    vka_status status = gguf_unsigned(cursor, 8, &size, what);

    if (status != VKA_OK)
        return status;
    *out = (gguf_text){(const char *)cursor->data + cursor->at, (size_t)size};
    return gguf_skip(cursor, size, what);
}

vka_status gguf_read_name(gguf_cursor *cursor, char *out, size_t size, const char *what)
{
    gguf_text text;
    vka_status status = gguf_read_text(cursor, &text, what);

    if (status != VKA_OK)
        return status;
    if (text.size == 0 || text.size >= size || memchr(text.data, 0, text.size))
        return vka_fail(cursor->error, VKA_ERR_FORMAT,
                        "%s: %s of %zu bytes before byte %zu, expected 1 to %zu bytes without NUL", cursor->label, what,
                        text.size, cursor->at, size - 1);
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return VKA_OK;
}
