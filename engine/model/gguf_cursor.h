/* Reading a GGUF file from front to back: every read is checked against what is left. */
#ifndef VKA_MODEL_GGUF_CURSOR_H
#define VKA_MODEL_GGUF_CURSOR_H

#include "model/gguf.h"

typedef struct vka_gguf_cursor {
    const unsigned char *data;
    uint64_t size, at;
    const char *label;
    vka_error *error;
} vka_gguf_cursor;

/* `what` is named when the file ends before it. */
vka_status vka_gguf_read(vka_gguf_cursor *cursor, void *out, size_t bytes, const char *what);
/* Steps over `count` elements of `bytes` bytes. */
vka_status vka_gguf_skip(vka_gguf_cursor *cursor, uint64_t count, uint64_t bytes, const char *what);
/* Text of 1 .. `most` bytes without control characters, copied to *next as a C string; *next moves on. */
vka_status vka_gguf_read_name(vka_gguf_cursor *cursor, char **next, uint64_t most, const char *what);
/* All of `value` but its key. */
vka_status vka_gguf_read_value(vka_gguf_cursor *cursor, vka_gguf_value *value);

#endif
