/* The page pool and the sequences of a KV cache: who owns which page, and how long each sequence is on each layer. Pure
 * bookkeeping, no device. Pages belong to slabs (page / pages_per_slab); a sequence prefers the slab of its last page,
 * since a key split never crosses a slab. */
#ifndef VKA_EXEC_PAGES_H
#define VKA_EXEC_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "vkattn/status.h"

typedef struct page_sequence {
    bool used;
    bool in_call;    /* of the batch that is running: a sequence may appear once */
    uint32_t past;   /* in a call: its length on the call's layer before it */
    uint32_t *pages; /* [count], in order of position */
    uint32_t count;
    uint32_t capacity;
    uint32_t *lengths;    /* [layers] */
    uint32_t *turned_for; /* [layers] length of the sequence after the call that appended last: RoPE may depend on it */
} page_sequence;

typedef struct page_pool {
    const vka_allocator *allocator;
    uint32_t page_size, pages, pages_per_slab, slabs, layers;
    uint32_t *free_list;  /* pages_per_slab entries per slab: a stack of free pages each */
    uint32_t *free_count; /* [slabs] */
    uint32_t total_free;
    page_sequence *sequences;
    uint32_t sequence_capacity;
} page_pool;

vka_status page_pool_create(page_pool *out, uint32_t page_size, uint32_t pages, uint32_t pages_per_slab,
                            uint32_t layers, const vka_allocator *allocator, vka_error *error);
void page_pool_destroy(page_pool *pool);

vka_status page_sequence_new(page_pool *pool, uint32_t *id, vka_error *error);
/* The sequence, or NULL with VKA_ERR_ARGUMENT in *error. */
page_sequence *page_sequence_get(const page_pool *pool, uint32_t id, vka_error *error);
void page_sequence_free(page_pool *pool, page_sequence *sequence);
void page_sequence_truncate(page_pool *pool, page_sequence *sequence, uint32_t length);

/* Makes the sequence own pages for `length` tokens. VKA_ERR_CACHE_FULL and VKA_ERR_HOST_MEMORY change nothing. */
vka_status page_sequence_grow(page_pool *pool, page_sequence *sequence, uint32_t length, vka_error *error);
/* Gives back the pages that no layer's length needs: undoes a grow whose call failed. */
void page_sequence_settle(page_pool *pool, page_sequence *sequence);

#endif
