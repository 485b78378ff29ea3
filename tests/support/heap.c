/* See heap.h. */
#include "support/heap.h"

#include <stdlib.h>

void *support_heap_realloc(void *heap, void *pointer, size_t size)
{
    support_heap *self = heap;
    void *block;

    if (size == 0) {
        atomic_fetch_sub(&self->live, pointer != NULL);
        free(pointer);
        return NULL;
    }
    if (atomic_fetch_add(&self->requests, 1) + 1 == atomic_load(&self->fail_at))
        return NULL;
    block = realloc(pointer, size);
    atomic_fetch_add(&self->live, pointer == NULL && block != NULL);
    return block;
}
