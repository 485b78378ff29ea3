/* Reading a GGUF image from front to back, never past its end. */
#ifndef VKA_MODEL_GGUF_CURSOR_H
#define VKA_MODEL_GGUF_CURSOR_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "vkattn/status.h"

typedef struct gguf_cursor {
    const unsigned char *data;
    size_t size, at;
    const char *label;
    vka_error *error;
} gguf_cursor;

/* Text in the file, not terminated. */
typedef struct gguf_text {
    const char *data;
    size_t size;
} gguf_text;

static inline size_t gguf_left(const gguf_cursor *cursor)
{
    return cursor->size - cursor->at;
}

/* `what` names the thing in the message that the file ends before it. */
vka_status gguf_skip(gguf_cursor *cursor, uint64_t bytes, const char *what);
vka_status gguf_unsigned(gguf_cursor *cursor, unsigned bytes, uint64_t *out, const char *what);
vka_status gguf_read_text(gguf_cursor *cursor, gguf_text *out, const char *what);
/* Text without NUL, at most size - 1 bytes, into out. */
vka_status gguf_read_name(gguf_cursor *cursor, char *out, size_t size, const char *what);

/* Reads `count` keys and values into *out, an object that the caller owns (gguf_metadata.c). */
vka_status gguf_read_metadata(gguf_cursor *cursor, uint64_t count, json_t **out);

#endif
