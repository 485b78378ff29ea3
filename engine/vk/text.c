/* Pieces of a text. Hand-written, because the C library's parsers follow the locale and skip what we must refuse. */
#include "vk/text.h"

#include <string.h>

gpu_text gpu_text_of(const char *text)
{
    return (gpu_text){text, strlen(text)};
}

bool gpu_text_next(gpu_text *rest, char separator, gpu_text *piece)
{
    const char *end;

    if (!rest->start)
        return false;
    end = memchr(rest->start, separator, rest->length);
    *piece = *rest;
    if (end) {
        piece->length = (size_t)(end - rest->start);
        rest->start = end + 1;
        rest->length -= piece->length + 1;
    } else {
        *rest = (gpu_text){0};
    }
    while (piece->length > 0 && piece->start[0] == ' ') {
        piece->start++;
        piece->length--;
    }
    while (piece->length > 0 && piece->start[piece->length - 1] == ' ')
        piece->length--;
    return true;
}

bool gpu_text_is(gpu_text piece, const char *word)
{
    return piece.length == strlen(word) && memcmp(piece.start, word, piece.length) == 0;
}

bool gpu_text_skip(gpu_text *piece, const char *prefix)
{
    size_t length = strlen(prefix);

    if (piece->length < length || memcmp(piece->start, prefix, length) != 0)
        return false;
    piece->start += length;
    piece->length -= length;
    return true;
}

static uint32_t digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (uint32_t)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (uint32_t)(c - 'A') + 10;
    return UINT32_MAX;
}

bool gpu_text_number(gpu_text piece, uint32_t base, uint64_t *value)
{
    uint64_t sum = 0;

    if (piece.length == 0)
        return false;
    for (size_t i = 0; i < piece.length; i++) {
        uint32_t digit = digit_value(piece.start[i]);

        if (digit >= base || sum > (UINT64_MAX - digit) / base)
            return false;
        sum = sum * base + digit;
    }
    *value = sum;
    return true;
}
