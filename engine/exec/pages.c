/* See pages.h. */
#include "exec/pages.h"

#include <string.h>

#include "base/error.h"

static uint32_t slab_pages(const page_pool *pool, uint32_t slab)
{
    uint32_t first = slab * pool->pages_per_slab;
    uint32_t left = pool->pages - first;

    return left < pool->pages_per_slab ? left : pool->pages_per_slab;
}

vka_status page_pool_create(page_pool *out, uint32_t page_size, uint32_t pages, uint32_t pages_per_slab,
                            uint32_t layers, const vka_allocator *allocator, vka_error *error)
{
    page_pool pool = {.allocator = allocator,
                      .page_size = page_size,
                      .pages = pages,
                      .pages_per_slab = pages_per_slab,
                      .slabs = (pages - 1) / pages_per_slab + 1,
                      .layers = layers,
                      .total_free = pages};

    pool.free_list = vka_alloc(allocator, (size_t)pool.slabs * pages_per_slab, sizeof(uint32_t));
    pool.free_count = vka_alloc(allocator, pool.slabs, sizeof(uint32_t));
    if (pool.free_list == NULL || pool.free_count == NULL) {
        page_pool_destroy(&pool);
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a page pool of %u pages", pages);
    }
    for (uint32_t slab = 0; slab < pool.slabs; slab++) {
        uint32_t count = slab_pages(&pool, slab);
        pool.free_count[slab] = count;
        for (uint32_t i = 0; i < count; i++) { /* the lowest page is taken first */
            pool.free_list[(size_t)slab * pages_per_slab + i] = slab * pages_per_slab + count - 1 - i;
        }
    }
    *out = pool;
    return VKA_OK;
}

void page_pool_destroy(page_pool *pool)
{
    for (uint32_t i = 0; i < pool->sequence_capacity; i++) {
        vka_free(pool->allocator, pool->sequences[i].pages);
        vka_free(pool->allocator, pool->sequences[i].lengths);
    }
    vka_free(pool->allocator, pool->sequences);
    vka_free(pool->allocator, pool->free_list);
    vka_free(pool->allocator, pool->free_count);
    memset(pool, 0, sizeof(*pool));
}

static vka_status grow_sequences(page_pool *pool, vka_error *error)
{
    uint32_t capacity = pool->sequence_capacity == 0 ? 8 : pool->sequence_capacity * 2;
    page_sequence *grown = vka_realloc(pool->allocator, pool->sequences, capacity, sizeof(*grown));

    if (grown == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u sequences", capacity);
    }
    memset(grown + pool->sequence_capacity, 0, (capacity - pool->sequence_capacity) * sizeof(*grown));
    pool->sequences = grown;
    pool->sequence_capacity = capacity;
    return VKA_OK;
}

vka_status page_sequence_new(page_pool *pool, uint32_t *id, vka_error *error)
{
    uint32_t i = 0;

    while (i < pool->sequence_capacity && pool->sequences[i].used) {
        i++;
    }
    if (i == pool->sequence_capacity) {
        vka_status status = grow_sequences(pool, error);
        if (status != VKA_OK) {
            return status;
        }
    }
    page_sequence *sequence = &pool->sequences[i];
    if (sequence->lengths == NULL) {
        sequence->lengths = vka_alloc(pool->allocator, 2 * (size_t)pool->layers, sizeof(uint32_t));
        if (sequence->lengths == NULL) {
            return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a sequence of %u layers", pool->layers);
        }
    }
    sequence->turned_for = sequence->lengths + pool->layers;
    memset(sequence->lengths, 0, 2 * (size_t)pool->layers * sizeof(uint32_t));
    sequence->used = true;
    *id = i;
    return VKA_OK;
}

page_sequence *page_sequence_get(const page_pool *pool, uint32_t id, vka_error *error)
{
    if (id >= pool->sequence_capacity || !pool->sequences[id].used) {
        vka_fail(error, VKA_ERR_ARGUMENT, "sequence %u is not in the cache: make it with vka_cache_sequence_new()", id);
        return NULL;
    }
    return &pool->sequences[id];
}

static void give_back(page_pool *pool, uint32_t page)
{
    uint32_t slab = page / pool->pages_per_slab;

    pool->free_list[(size_t)slab * pool->pages_per_slab + pool->free_count[slab]++] = page;
    pool->total_free++;
}

/* The slab to take a page from: that of the sequence's last page while it has any, else the fullest supply. */
static uint32_t choose_slab(const page_pool *pool, const page_sequence *sequence)
{
    uint32_t best = 0;

    if (sequence->count > 0) {
        uint32_t last = sequence->pages[sequence->count - 1] / pool->pages_per_slab;
        if (pool->free_count[last] > 0) {
            return last;
        }
    }
    for (uint32_t slab = 1; slab < pool->slabs; slab++) {
        if (pool->free_count[slab] > pool->free_count[best]) {
            best = slab;
        }
    }
    return best;
}

static uint32_t take_page(page_pool *pool, const page_sequence *sequence)
{
    uint32_t slab = choose_slab(pool, sequence);

    pool->total_free--;
    return pool->free_list[(size_t)slab * pool->pages_per_slab + --pool->free_count[slab]];
}

static void shrink(page_pool *pool, page_sequence *sequence, uint32_t count)
{
    while (sequence->count > count) {
        give_back(pool, sequence->pages[--sequence->count]);
    }
}

void page_sequence_free(page_pool *pool, page_sequence *sequence)
{
    shrink(pool, sequence, 0);
    sequence->used = false;
}

static uint32_t pages_for(const page_pool *pool, uint32_t length)
{
    return length == 0 ? 0 : (length - 1) / pool->page_size + 1;
}

void page_sequence_settle(page_pool *pool, page_sequence *sequence)
{
    uint32_t longest = 0;

    for (uint32_t layer = 0; layer < pool->layers; layer++) {
        longest = sequence->lengths[layer] > longest ? sequence->lengths[layer] : longest;
    }
    shrink(pool, sequence, pages_for(pool, longest));
}

void page_sequence_truncate(page_pool *pool, page_sequence *sequence, uint32_t length)
{
    for (uint32_t layer = 0; layer < pool->layers; layer++) {
        if (sequence->lengths[layer] > length) {
            sequence->lengths[layer] = length;
        }
    }
    page_sequence_settle(pool, sequence);
}

vka_status page_sequence_grow(page_pool *pool, page_sequence *sequence, uint32_t length, vka_error *error)
{
    uint32_t needed = pages_for(pool, length);

    if (needed <= sequence->count) {
        return VKA_OK;
    }
    if (needed - sequence->count > pool->total_free) {
        return vka_fail(error, VKA_ERR_CACHE_FULL,
                        "%u tokens need %u more pages of %u tokens, %u of %u are free: free or truncate a sequence, or "
                        "create the cache with more pages",
                        length, needed - sequence->count, pool->page_size, pool->total_free, pool->pages);
    }
    if (needed > sequence->capacity) {
        uint32_t capacity = needed < 16 ? 16 : needed + needed / 2;
        uint32_t *grown = vka_realloc(pool->allocator, sequence->pages, capacity, sizeof(uint32_t));
        if (grown == NULL) {
            return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a table of %u pages", capacity);
        }
        sequence->pages = grown;
        sequence->capacity = capacity;
    }
    while (sequence->count < needed) {
        sequence->pages[sequence->count] = take_page(pool, sequence);
        sequence->count++;
    }
    return VKA_OK;
}
