/* The page pool: random use against an oracle that knows only lengths, and running out of pages and of memory. */
#include "exec/pages.h"

#include <string.h>

#include "exec/exec_tests.h"
#include "support/heap.h"
#include "support/random.h"
#include "support/require.h"

enum { SEQUENCES = 12, LAYERS = 3, MOST_PAGES = 64 };

static uint32_t pages_for(uint32_t tokens, uint32_t page_size)
{
    return (tokens + page_size - 1) / page_size;
}

static uint32_t longest(const page_sequence *sequence, uint32_t layers)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < layers; i++)
        most = sequence->lengths[i] > most ? sequence->lengths[i] : most;
    return most;
}

/* Every page is with one sequence or free, once; counts agree; a sequence has just the pages that it needs. */
static void check_pool(const page_pool *pool)
{
    uint32_t held[MOST_PAGES] = {0}, free_pages = 0;

    for (uint32_t i = 0; i < pool->sequence_capacity; i++) {
        const page_sequence *sequence = &pool->sequences[i];
        if (!sequence->used) {
            assert_int_equal(sequence->count, 0);
            continue;
        }
        assert_int_equal(sequence->count, pages_for(longest(sequence, pool->layers), pool->page_size));
        for (uint32_t p = 0; p < sequence->count; p++) {
            assert_in_range(sequence->pages[p], 0, pool->pages - 1);
            held[sequence->pages[p]]++;
        }
    }
    for (uint32_t slab = 0; slab < pool->slabs; slab++) {
        free_pages += pool->free_count[slab];
        for (uint32_t i = 0; i < pool->free_count[slab]; i++) {
            uint32_t page = pool->free_list[slab * pool->pages_per_slab + i];
            assert_int_equal(page / pool->pages_per_slab, slab);
            assert_in_range(page, 0, pool->pages - 1);
            held[page]++;
        }
    }
    assert_int_equal(pool->total_free, free_pages);
    for (uint32_t page = 0; page < pool->pages; page++)
        require(held[page] == 1, "page %u is held %u times", page, held[page]);
}

/* ---- random use ---- */

typedef struct model {
    page_pool pool;
    uint64_t random;
    bool used[SEQUENCES];
    uint32_t lengths[SEQUENCES][LAYERS];
    uint32_t pages[SEQUENCES][MOST_PAGES]; /* as last seen: what is kept must not move */
    uint32_t refused, grown;
} model;

static void remember(model *m, uint32_t id)
{
    const page_sequence *sequence = &m->pool.sequences[id];

    if (sequence->count > 0)
        memcpy(m->pages[id], sequence->pages, sequence->count * sizeof(uint32_t));
}

/* A call: pages are taken, then the layer grows, or the call fails and the pages go back. */
static void grow(model *m, uint32_t id)
{
    page_sequence *sequence = &m->pool.sequences[id];
    uint32_t layer = random_below(&m->random, m->pool.layers), before = sequence->count,
             free_before = m->pool.total_free;
    uint32_t length = sequence->lengths[layer] + 1 + random_below(&m->random, 3 * m->pool.page_size);
    uint32_t needed = pages_for(length, m->pool.page_size), missing = needed > before ? needed - before : 0;
    vka_error error = {0};
    vka_status status = page_sequence_grow(&m->pool, sequence, length, &error);

    for (uint32_t p = 0; p < before; p++)
        assert_int_equal(sequence->pages[p], m->pages[id][p]);
    if (missing > free_before) {
        assert_int_equal(status, VKA_ERR_CACHE_FULL);
        assert_int_equal(error.status, VKA_ERR_CACHE_FULL);
        assert_int_equal(sequence->count, before);
        assert_int_equal(m->pool.total_free, free_before);
        m->refused++;
        return;
    }
    assert_int_equal(status, VKA_OK);
    assert_int_equal(sequence->count, before + missing);
    if (random_below(&m->random, 4) == 0) {
        page_sequence_settle(&m->pool, sequence);
        assert_int_equal(m->pool.total_free, free_before);
    } else {
        sequence->lengths[layer] = m->lengths[id][layer] = length;
        m->grown++;
    }
    remember(m, id);
}

static void truncate_sequence(model *m, uint32_t id)
{
    page_sequence *sequence = &m->pool.sequences[id];
    uint32_t length = random_below(&m->random, longest(sequence, m->pool.layers) + 2);

    page_sequence_truncate(&m->pool, sequence, length);
    for (uint32_t i = 0; i < m->pool.layers; i++)
        m->lengths[id][i] = m->lengths[id][i] < length ? m->lengths[id][i] : length;
    for (uint32_t p = 0; p < sequence->count; p++)
        assert_int_equal(sequence->pages[p], m->pages[id][p]);
}

static void new_sequence(model *m)
{
    uint32_t lowest = 0, id = UINT32_MAX, used = 0;

    for (uint32_t i = 0; i < SEQUENCES; i++)
        used += m->used[i];
    if (used == SEQUENCES)
        return;
    while (m->used[lowest])
        lowest++;
    assert_int_equal(page_sequence_new(&m->pool, &id, NULL), VKA_OK);
    assert_int_equal(id, lowest); /* small integers */
    m->used[id] = true;
    memset(m->lengths[id], 0, sizeof(m->lengths[id]));
    assert_int_equal(m->pool.sequences[id].count, 0);
}

static void random_action(model *m)
{
    uint32_t id = random_below(&m->random, SEQUENCES);

    if (!m->used[id]) {
        assert_null(page_sequence_get(&m->pool, id, NULL));
        new_sequence(m);
        return;
    }
    assert_ptr_equal(page_sequence_get(&m->pool, id, NULL), &m->pool.sequences[id]);
    switch (random_below(&m->random, 8)) {
    case 0:
        page_sequence_free(&m->pool, &m->pool.sequences[id]);
        m->used[id] = false;
        break;
    case 1:
        truncate_sequence(m, id);
        break;
    default:
        grow(m, id);
    }
}

static void random_use(void **state)
{
    static model m;
    support_heap heap = {0};
    const vka_allocator allocator = {support_heap_realloc, &heap};

    (void)state;
    memset(&m, 0, sizeof(m));
    m.random = 7;
    for (int round = 0; round < 40; round++) {
        uint32_t page_size = 1 + random_below(&m.random, 17), pages = 1 + random_below(&m.random, MOST_PAGES);
        uint32_t per_slab = 1 + random_below(&m.random, pages), layers = 1 + random_below(&m.random, LAYERS);
        assert_int_equal(page_pool_create(&m.pool, page_size, pages, per_slab, layers, &allocator, NULL), VKA_OK);
        memset(m.used, 0, sizeof(m.used));
        for (int i = 0; i < 1000; i++) {
            random_action(&m);
            check_pool(&m.pool);
            for (uint32_t s = 0; s < SEQUENCES; s++)
                for (uint32_t layer = 0; m.used[s] && layer < layers; layer++)
                    assert_int_equal(m.pool.sequences[s].lengths[layer], m.lengths[s][layer]);
        }
        page_pool_destroy(&m.pool);
        assert_int_equal(heap.live, 0);
    }
    assert_true(m.refused > 1000 && m.grown > 1000);
}

/* ---- single rules ---- */

static void make(page_pool *pool, uint32_t page_size, uint32_t pages, uint32_t per_slab, uint32_t layers)
{
    assert_int_equal(page_pool_create(pool, page_size, pages, per_slab, layers, NULL, NULL), VKA_OK);
}

static page_sequence *add(page_pool *pool)
{
    uint32_t id;

    assert_int_equal(page_sequence_new(pool, &id, NULL), VKA_OK);
    return &pool->sequences[id];
}

/* A key split never crosses a slab, so a sequence stays in its slab while that has pages. */
static void a_sequence_stays_in_its_slab(void **state)
{
    page_pool pool;

    (void)state;
    make(&pool, 4, 12, 4, 1);
    assert_int_equal(pool.slabs, 3);
    page_sequence *first = add(&pool);
    assert_int_equal(page_sequence_grow(&pool, first, 16, NULL), VKA_OK);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(first->pages[i] / 4, first->pages[0] / 4);
    assert_int_equal(page_sequence_grow(&pool, first, 17, NULL), VKA_OK);
    assert_int_not_equal(first->pages[4] / 4, first->pages[0] / 4);
    page_pool_destroy(&pool);
}

static void the_last_slab_may_be_short(void **state)
{
    page_pool pool;

    (void)state;
    make(&pool, 16, 10, 4, 1);
    assert_int_equal(pool.slabs, 3);
    assert_int_equal(pool.free_count[2], 2);
    page_sequence *all = add(&pool);
    assert_int_equal(page_sequence_grow(&pool, all, 160, NULL), VKA_OK);
    assert_int_equal(pool.total_free, 0);
    all->lengths[0] = 160;
    check_pool(&pool);
    page_pool_destroy(&pool);
}

/* The message says what is missing; nothing has changed. */
static void running_out_of_pages(void **state)
{
    page_pool pool;
    vka_error error;

    (void)state;
    make(&pool, 16, 5, 5, 2);
    page_sequence *sequence = add(&pool);
    assert_int_equal(page_sequence_grow(&pool, sequence, 40, NULL), VKA_OK);
    sequence->lengths[1] = 40;
    assert_int_equal(page_sequence_grow(&pool, sequence, 97, &error), VKA_ERR_CACHE_FULL);
    assert_non_null(strstr(error.message, "97 tokens need 4 more pages of 16 tokens, 2 of 5 are free"));
    check_pool(&pool);
    assert_int_equal(page_sequence_grow(&pool, sequence, 80, NULL), VKA_OK);
    page_sequence_settle(&pool, sequence);
    check_pool(&pool);
    page_pool_destroy(&pool);
}

static void running_out_of_memory(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 8; n++) {
        support_heap heap = {.fail_at = n};
        const vka_allocator allocator = {support_heap_realloc, &heap};
        page_pool pool = {0};
        uint32_t id = 99;
        vka_error error = {0};
        vka_status status = page_pool_create(&pool, 16, 40, 40, 2, &allocator, &error);

        if (status == VKA_OK) {
            status = page_sequence_new(&pool, &id, &error);
            assert_true(status == VKA_OK || id == 99);
        }
        if (status == VKA_OK)
            status = page_sequence_grow(&pool, &pool.sequences[id], 600, &error);
        assert_int_equal(status, n <= 5 ? VKA_ERR_HOST_MEMORY : VKA_OK);
        assert_int_equal(error.status, status);
        if (pool.pages > 0 && status != VKA_OK)
            check_pool(&pool);
        page_pool_destroy(&pool);
        assert_int_equal(heap.live, 0);
    }
}

static void unknown_sequences(void **state)
{
    page_pool pool;
    vka_error error;

    (void)state;
    make(&pool, 1, 1, 1, 1);
    assert_null(page_sequence_get(&pool, 0, &error));
    assert_int_equal(error.status, VKA_ERR_ARGUMENT);
    page_sequence *sequence = add(&pool);
    assert_non_null(page_sequence_get(&pool, 0, NULL));
    assert_null(page_sequence_get(&pool, UINT32_MAX, NULL));
    page_sequence_free(&pool, sequence);
    assert_null(page_sequence_get(&pool, 0, NULL));
    page_pool_destroy(&pool);
}

int run_pages_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_use),
        cmocka_unit_test(a_sequence_stays_in_its_slab),
        cmocka_unit_test(the_last_slab_may_be_short),
        cmocka_unit_test(running_out_of_pages),
        cmocka_unit_test(running_out_of_memory),
        cmocka_unit_test(unknown_sequences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
