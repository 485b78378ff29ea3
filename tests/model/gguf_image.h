/* Builds images of GGUF files, right ones and wrong ones. */
#ifndef VKA_TESTS_GGUF_IMAGE_H
#define VKA_TESTS_GGUF_IMAGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_image {
    unsigned char bytes[8192];
    size_t size;
} gguf_image;

static inline void put(gguf_image *g, const void *data, size_t size)
{
    if (size > sizeof(g->bytes) - g->size)
        abort();
    memcpy(g->bytes + g->size, data, size);
    g->size += size;
}

static inline void put_u32(gguf_image *g, uint32_t value)
{
    put(g, &value, sizeof(value));
}

static inline void put_u64(gguf_image *g, uint64_t value)
{
    put(g, &value, sizeof(value));
}

static inline void put_text(gguf_image *g, const char *text)
{
    put_u64(g, strlen(text));
    put(g, text, strlen(text));
}

static inline void put_header(gguf_image *g, uint32_t version, uint64_t tensors, uint64_t values)
{
    g->size = 0;
    put(g, "GGUF", 4);
    put_u32(g, version);
    put_u64(g, tensors);
    put_u64(g, values);
}

static inline void put_key_u32(gguf_image *g, const char *key, uint32_t value)
{
    put_text(g, key);
    put_u32(g, 4);
    put_u32(g, value);
}

static inline void put_key_f32(gguf_image *g, const char *key, float value)
{
    put_text(g, key);
    put_u32(g, 6);
    put(g, &value, sizeof(value));
}

static inline void put_key_text(gguf_image *g, const char *key, const char *value)
{
    put_text(g, key);
    put_u32(g, 8);
    put_text(g, value);
}

/* `rows` 0: a vector */
static inline void put_tensor(gguf_image *g, const char *name, uint64_t cols, uint64_t rows, uint32_t type,
                              uint64_t offset)
{
    put_text(g, name);
    put_u32(g, rows > 0 ? 2 : 1);
    put_u64(g, cols);
    if (rows > 0)
        put_u64(g, rows);
    put_u32(g, type);
    put_u64(g, offset);
}

static inline void put_zeros(gguf_image *g, size_t count)
{
    static const unsigned char zeros[4096];

    put(g, zeros, count);
}

static inline void pad(gguf_image *g, size_t alignment)
{
    put_zeros(g, (alignment - g->size % alignment) % alignment);
}

#endif
