/* A host allocator for tests, to be given as vka_context_params.realloc or in a vka_allocator: counts what is taken and
 * given back, and runs out on request. Several threads may use one heap. */
#ifndef VKA_SUPPORT_HEAP_H
#define VKA_SUPPORT_HEAP_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct support_heap {
    atomic_uint requests; /* calls that asked for memory */
    atomic_uint fail_at;  /* the request of this number (from 1) gets none; 0: all do */
    atomic_uint live;     /* blocks not yet freed */
} support_heap;

void *support_heap_realloc(void *heap, void *pointer, size_t size);

#endif
