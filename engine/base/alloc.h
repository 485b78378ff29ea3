/* Host allocation through the context's callback, with overflow-checked sizes. */
#ifndef VKA_BASE_ALLOC_H
#define VKA_BASE_ALLOC_H

#include <stddef.h>

#include "vkattn/context.h"

typedef struct vka_allocator {
    vka_realloc_fn realloc; /* NULL: the C library */
    void *user;
} vka_allocator;

/* Zeroed count*size bytes; NULL on overflow or exhaustion. allocator NULL: the C library. */
void *vka_alloc(const vka_allocator *allocator, size_t count, size_t size);
/* Grows or shrinks; new bytes are not zeroed; the old block stays valid on failure. */
void *vka_realloc(const vka_allocator *allocator, void *pointer, size_t count, size_t size);
/* A copy of `text`, or NULL on exhaustion. */
char *vka_copy_text(const vka_allocator *allocator, const char *text);
void vka_free(const vka_allocator *allocator, void *pointer);

#endif
