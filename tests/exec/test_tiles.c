/* The tile plan: whatever the batch, every visible (row, key) pair is in one tile, and every row is written once. */
#include "exec/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "exec/exec_tests.h"
#include "support/heap.h"
#include "support/random.h"
#include "support/require.h"

enum { SOURCES = 6, MOST_ROWS = 70, MOST_KEYS = 700, PAGES = 800 };

/* A batch and how it is cut. */
typedef struct example {
    tile_config config;
    tile_source sources[SOURCES];
    uint32_t count;
    uint32_t pages[SOURCES][PAGES];
} example;

static bool sees(const tile_config *config, int64_t position, int64_t key)
{
    return position - key < config->keys.left && key - position < config->keys.right;
}

/* Causal in two of three, with and without windows. */
static key_limits random_limits(uint64_t *random)
{
    bool causal = random_below(random, 3) != 0;
    uint32_t window = random_below(random, 2) * random_below(random, 300);

    return key_limits_of(causal, window, random_below(random, 2) * random_below(random, 300));
}

static void fill_pages(uint32_t *pages, uint64_t *random, bool in_order)
{
    for (uint32_t i = 0; i < PAGES; i++)
        pages[i] = i;
    for (uint32_t i = PAGES - 1; i > 0 && !in_order; i--) {
        uint32_t j = random_below(random, i + 1), page = pages[i];
        pages[i] = pages[j];
        pages[j] = page;
    }
}

static void make_example(example *e, uint64_t *random)
{
    uint32_t row = 0;

    memset(e, 0, sizeof(*e));
    e->config = (tile_config){.page_size = 1 + random_below(random, 40),
                              .pages_per_slab = 1 + random_below(random, PAGES),
                              .keys = random_limits(random),
                              .prefill_rows = 1 + random_below(random, 32),
                              .decode_workgroups = 1 + random_below(random, 64),
                              .decode_records = 1 + random_below(random, 8),
                              .max_splits = 1 + random_below(random, 20)};
    e->count = 1 + random_below(random, SOURCES);
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t keys = random_below(random, 4) == 0 ? random_below(random, 3) : random_below(random, MOST_KEYS);
        uint32_t rows =
            random_below(random, 2) == 0 ? 1 + random_below(random, 3) : 1 + random_below(random, MOST_ROWS);
        fill_pages(e->pages[i], random, random_below(random, 2) == 0);
        e->sources[i] = (tile_source){.row = row,
                                      .rows = rows,
                                      .position = (int32_t)random_below(random, MOST_KEYS) - 50,
                                      .keys = keys,
                                      .pages = e->pages[i],
                                      .pages_offset = 1000 * i};
        row += rows;
    }
}

static const tile_source *source_of(const example *e, const attention_tile *tile)
{
    uint32_t i = 0;

    while (tile->row >= e->sources[i].row + e->sources[i].rows)
        i++;
    return &e->sources[i];
}

/* What one tile says of itself. */
static void check_tile(const example *e, const planned_tile *planned)
{
    const attention_tile *tile = &planned->tile;
    const tile_source *source = source_of(e, tile);
    bool decode = planned->key.kernel == VKA_KERNEL_DECODE;

    assert_true(decode || planned->key.kernel == VKA_KERNEL_PREFILL);
    assert_int_equal(decode, source->rows < TILE_PREFILL_MIN_ROWS);
    assert_in_range(tile->rows, 1, decode ? 1 : e->config.prefill_rows);
    assert_true(tile->row >= source->row && tile->row + tile->rows <= source->row + source->rows);
    assert_int_equal(tile->position, source->position + (int32_t)(tile->row - source->row));
    assert_int_equal(tile->pages, source->pages_offset);
    assert_true(tile->key_begin <= tile->key_end && tile->key_end <= source->keys);
    assert_int_equal(planned->key.partial, tile->slot_stride > 0);
    for (uint32_t key = tile->key_begin; key < tile->key_end; key++)
        require(source->pages[key / e->config.page_size] / e->config.pages_per_slab == planned->key.slab,
                "key %u is not in slab %u", key, planned->key.slab);
}

/* seen[row][key] += 1 for what the tile's rows see in it. */
static void count_pairs(const example *e, const attention_tile *tile, unsigned char (*seen)[MOST_KEYS])
{
    for (uint32_t r = 0; r < tile->rows; r++)
        for (uint32_t key = tile->key_begin; key < tile->key_end; key++)
            seen[tile->row + r][key] += sees(&e->config, (int64_t)tile->position + r, key);
}

static void check_pairs(const example *e, const tile_plan *plan)
{
    static unsigned char seen[SOURCES * MOST_ROWS][MOST_KEYS];

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < plan->tile_count; i++)
        count_pairs(e, &plan->tiles[i].tile, seen);
    for (uint32_t i = 0; i < e->count; i++) {
        const tile_source *source = &e->sources[i];
        for (uint32_t r = 0; r < source->rows; r++)
            for (uint32_t key = 0; key < source->keys; key++) {
                bool visible = sees(&e->config, (int64_t)source->position + r, key);
                require(seen[source->row + r][key] == visible, "row %u key %u is in %d tiles, visible: %d",
                        source->row + r, key, seen[source->row + r][key], visible);
            }
    }
}

/* Every row is written by one final tile or by one combine row, which joins all slots of its tiles, each written once.
 */
static void check_outputs(const example *e, const tile_plan *plan)
{
    const tile_source *last = &e->sources[e->count - 1];
    uint32_t rows = last->row + last->rows;
    uint32_t *written = calloc(rows, sizeof(uint32_t)), *pieces = calloc(rows, sizeof(uint32_t));
    uint32_t *slot_row = calloc(plan->slots + 1, sizeof(uint32_t)); /* row + 1 that wrote the slot */

    for (uint32_t i = 0; i < plan->tile_count; i++) {
        const attention_tile *tile = &plan->tiles[i].tile;
        for (uint32_t r = 0; r < tile->rows; r++) {
            uint64_t slot = tile->slot + (uint64_t)r * tile->slot_stride;
            written[tile->row + r] += !plan->tiles[i].key.partial;
            pieces[tile->row + r] += plan->tiles[i].key.partial;
            if (!plan->tiles[i].key.partial)
                continue;
            require(slot < plan->slots, "slot %u of %u", (unsigned)slot, (unsigned)plan->slots);
            require(slot_row[slot] == 0, "slot %u is written twice", (unsigned)slot);
            slot_row[slot] = tile->row + r + 1;
        }
    }
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const combine_row *combined = &plan->rows[i];
        assert_int_equal(combined->slots, pieces[combined->row]);
        assert_true(combined->slots > 1);
        for (uint32_t s = 0; s < combined->slots; s++)
            assert_int_equal(slot_row[combined->slot + s], combined->row + 1);
        written[combined->row]++;
    }
    for (uint32_t row = 0; row < rows; row++)
        require(written[row] == 1, "row %u is written %u times", row, written[row]);
    free(written);
    free(pieces);
    free(slot_row);
}

static bool same_key(const tile_launch *a, const tile_launch *b)
{
    return a->kernel == b->kernel && a->slab == b->slab && a->partial == b->partial;
}

/* Launches hold all tiles, one after the other, alike within each, and no two could be one. */
static void check_launches(const tile_plan *plan)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < plan->launch_count; i++) {
        const tile_launch *launch = &plan->launches[i];
        assert_int_equal(launch->first, next);
        assert_in_range(launch->count, 1, TILE_LAUNCH_MAX);
        for (uint32_t t = 0; t < launch->count; t++)
            assert_true(same_key(launch, &plan->tiles[next + t].key));
        for (uint32_t j = 0; j < i; j++)
            assert_true(!same_key(launch, &plan->launches[j]) || plan->launches[j].count == TILE_LAUNCH_MAX);
        next += launch->count;
    }
    assert_int_equal(next, plan->tile_count);
}

static void check_plan(const example *e, const tile_plan *plan)
{
    for (uint32_t i = 0; i < plan->tile_count; i++)
        check_tile(e, &plan->tiles[i]);
    check_pairs(e, plan);
    check_outputs(e, plan);
    check_launches(plan);
}

static void random_plans(void **state)
{
    static example e;
    tile_plan plan = {0};
    uint64_t random = 31337;
    uint32_t split = 0, whole = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        make_example(&e, &random);
        assert_int_equal(tile_plan_build(&plan, &e.config, e.sources, e.count, NULL), VKA_OK);
        check_plan(&e, &plan);
        split += plan.row_count > 0;
        whole += plan.row_count == 0;
    }
    assert_true(split > 50 && whole > 50);
    tile_plan_destroy(&plan);
}

/* ---- single rules ---- */

static void build(tile_plan *plan, const tile_config *config, const tile_source *source)
{
    assert_int_equal(tile_plan_build(plan, config, source, 1, NULL), VKA_OK);
}

static const tile_config plain = {.page_size = 16,
                                  .pages_per_slab = PAGES,
                                  .keys = {ATTENTION_NO_LIMIT, 1},
                                  .prefill_rows = 32,
                                  .decode_workgroups = 16,
                                  .decode_records = 2,
                                  .max_splits = 64};

static void long_decoding_is_split(void **state)
{
    static uint32_t pages[PAGES];
    tile_source source = {.rows = 1, .position = 1023, .keys = 1024, .pages = pages};
    tile_config config = plain;
    tile_plan plan = {0};

    (void)state;
    build(&plan, &config, &source);
    assert_int_equal(plan.tile_count, 8); /* 16 workgroups, two head records a tile */
    assert_int_equal(plan.row_count, 1);
    config.max_splits = 3;
    build(&plan, &config, &source);
    assert_int_equal(plan.tile_count, 3);
    source.position = 2 * TILE_SPLIT_MIN_KEYS - 2; /* too short for two */
    build(&plan, &plain, &source);
    assert_int_equal(plan.tile_count, 1);
    assert_int_equal(plan.row_count, 0);
    assert_int_equal(plan.slots, 0);
    tile_plan_destroy(&plan);
}

/* A row that sees nothing still has a tile, which writes its zeros. */
static void rows_that_see_nothing(void **state)
{
    static uint32_t pages[PAGES];
    const tile_source sources[3] = {{.row = 0, .rows = 1, .position = -1, .keys = 10, .pages = pages},
                                    {.row = 1, .rows = 1, .position = 5, .keys = 0, .pages = pages},
                                    {.row = 2, .rows = 8, .position = -100, .keys = 10, .pages = pages}};
    tile_plan plan = {0};

    (void)state;
    assert_int_equal(tile_plan_build(&plan, &plain, sources, 3, NULL), VKA_OK);
    assert_int_equal(plan.tile_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(plan.tiles[i].tile.key_begin, plan.tiles[i].tile.key_end);
        assert_false(plan.tiles[i].key.partial);
    }
    tile_plan_destroy(&plan);
}

/* Far more tiles than one dispatch may have workgroups. */
static void launches_are_limited(void **state)
{
    enum { MANY = 150000 };
    tile_source *sources = calloc(MANY, sizeof(*sources));
    static uint32_t pages[PAGES];
    tile_plan plan = {0};

    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        sources[i] = (tile_source){.row = i, .rows = 1, .position = 3, .keys = 4, .pages = pages};
    assert_int_equal(tile_plan_build(&plan, &plain, sources, MANY, NULL), VKA_OK);
    assert_int_equal(plan.tile_count, MANY);
    assert_int_equal(plan.launch_count, 3);
    check_launches(&plan);
    tile_plan_destroy(&plan);
    free(sources);
}

/* The order of tiles, and with it every bit of the result, follows from the batch alone. */
static void plans_repeat(void **state)
{
    static example e;
    tile_plan one = {0}, two = {0};
    uint64_t random = 17;

    (void)state;
    for (int i = 0; i < 20; i++) {
        make_example(&e, &random);
        assert_int_equal(tile_plan_build(&one, &e.config, e.sources, e.count, NULL), VKA_OK);
        assert_int_equal(tile_plan_build(&two, &e.config, e.sources, e.count, NULL), VKA_OK);
        assert_int_equal(one.tile_count, two.tile_count);
        for (uint32_t t = 0; t < one.tile_count; t++)
            assert_memory_equal(&one.tiles[t].tile, &two.tiles[t].tile, sizeof(attention_tile));
        tile_plan_destroy(&two);
    }
    tile_plan_destroy(&one);
}

static void running_out_of_memory(void **state)
{
    static example e;
    uint64_t random = 3;

    (void)state;
    for (make_example(&e, &random); e.config.page_size > 4 || e.count < 3;)
        make_example(&e, &random);
    e.config.pages_per_slab = e.config.prefill_rows = 1; /* many tiles */
    for (uint32_t n = 1;; n++) {
        support_heap heap = {.fail_at = n};
        const vka_allocator allocator = {support_heap_realloc, &heap};
        tile_plan plan = {.allocator = &allocator};
        vka_error error = {0};
        vka_status status = tile_plan_build(&plan, &e.config, e.sources, e.count, &error);

        assert_int_equal(error.status, status);
        if (status == VKA_OK) {
            assert_true(n > 4);
            check_plan(&e, &plan);
        } else {
            assert_int_equal(status, VKA_ERR_HOST_MEMORY);
        }
        tile_plan_destroy(&plan);
        assert_int_equal(heap.live, 0);
        if (status == VKA_OK)
            return;
    }
}

/* ---- head records ---- */

static void head_records(void **state)
{
    uint64_t random = 8;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint32_t kv_heads = 1 + random_below(&random, 9), pack = 1 + random_below(&random, 8);
        uint32_t begin[10] = {0}, wanted = 0, next = 0;
        attention_heads records[200];

        for (uint32_t kv = 0; kv < kv_heads; kv++) {
            uint32_t group = 1 + random_below(&random, 16);
            begin[kv + 1] = begin[kv] + group;
            wanted += (group + pack - 1) / pack;
        }
        assert_int_equal(tile_head_records(kv_heads, begin, pack, NULL), wanted);
        assert_int_equal(tile_head_records(kv_heads, begin, pack, records), wanted);
        for (uint32_t r = 0; r < wanted; r++) {
            uint32_t kv = records[r].kv_head;
            assert_int_equal(records[r].q_begin, next);
            assert_in_range(records[r].q_count, 1, pack);
            assert_true(kv < kv_heads && records[r].q_begin >= begin[kv]);
            next += records[r].q_count;
            assert_true(next <= begin[kv + 1]);
        }
        assert_int_equal(next, begin[kv_heads]);
    }
}

int run_tiles_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans),          cmocka_unit_test(long_decoding_is_split),
        cmocka_unit_test(rows_that_see_nothing), cmocka_unit_test(launches_are_limited),
        cmocka_unit_test(plans_repeat),          cmocka_unit_test(running_out_of_memory),
        cmocka_unit_test(head_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
