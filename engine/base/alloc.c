/* Host allocation. A request for zero bytes gets a real block, so NULL always means failure; the callback's "size 0
 * frees" is used only by vka_free(). */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool block_size(size_t count, size_t size, size_t *bytes)
{
    if (size != 0 && count > SIZE_MAX / size)
        return false;
    *bytes = count * size;
    if (*bytes == 0)
        *bytes = 1;
    return true;
}

void *vka_alloc(const vka_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    void *block;

    if (!block_size(count, size, &bytes))
        return NULL;
    if (!allocator || !allocator->realloc)
        return calloc(1, bytes);
    block = allocator->realloc(allocator->user, NULL, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void *vka_realloc(const vka_allocator *allocator, void *pointer, size_t count, size_t size)
{
    size_t bytes;

    if (!block_size(count, size, &bytes))
        return NULL;
    if (!allocator || !allocator->realloc)
        return realloc(pointer, bytes);
    return allocator->realloc(allocator->user, pointer, bytes);
}

char *vka_copy_text(const vka_allocator *allocator, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = vka_alloc(allocator, size, 1);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void vka_free(const vka_allocator *allocator, void *pointer)
{
    if (!pointer)
        return;
    if (!allocator || !allocator->realloc)
        free(pointer);
    else
        allocator->realloc(allocator->user, pointer, 0);
}
