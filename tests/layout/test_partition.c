/* The rank table: known edges, and properties of random layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"

enum { MOST_HEADS = 160 };

static vka_rank ranks[VKA_MAX_RANKS];

static void assert_rank(uint32_t index, uint32_t q_begin, uint32_t q_count, uint32_t kv_begin, uint32_t kv_count,
                        uint32_t replica, uint32_t replicas)
{
    assert_int_equal(ranks[index].q_begin, q_begin);
    assert_int_equal(ranks[index].q_count, q_count);
    assert_int_equal(ranks[index].kv_begin, kv_begin);
    assert_int_equal(ranks[index].kv_count, kv_count);
    assert_int_equal(ranks[index].replica, replica);
    assert_int_equal(ranks[index].replicas, replicas);
}

static void partition(uint32_t heads, uint32_t kv_heads, vka_grid grid)
{
    vka_layer_desc desc = layer_of(heads, kv_heads);

    memset(ranks, 0x77, sizeof(ranks));
    assert_int_equal(vka_partition(&desc, grid, VKA_KV_REPLICATE, ranks, VKA_MAX_RANKS, NULL), VKA_OK);
}

static void sharded(void **state)
{
    (void)state;
    partition(32, 8, (vka_grid){.tp = 4});
    assert_rank(0, 0, 8, 0, 2, 0, 1);
    assert_rank(3, 24, 8, 6, 2, 0, 1);
    partition(32, 8, (vka_grid){0});
    assert_rank(0, 0, 32, 0, 8, 0, 1);
}

/* Blocked replicas: ranks 0 to 2 share KV head 0. Dealing KV heads out in turn would give rank 1 head 1. */
static void replicated(void **state)
{
    (void)state;
    partition(24, 8, (vka_grid){.tp = 24});
    assert_rank(0, 0, 1, 0, 1, 0, 3);
    assert_rank(1, 1, 1, 0, 1, 1, 3);
    assert_rank(3, 3, 1, 1, 1, 0, 3);
    assert_rank(23, 23, 1, 7, 1, 2, 3);
    partition(36, 4, (vka_grid){.tp = 12});
    assert_rank(2, 6, 3, 0, 1, 2, 3);
    assert_rank(3, 9, 3, 1, 1, 0, 3);
    partition(16, 1, (vka_grid){.tp = 16});
    assert_rank(15, 15, 1, 0, 1, 15, 16);
}

static void grid_order(void **state)
{
    (void)state;
    partition(8, 4, (vka_grid){2, 3, 2});
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(ranks[i].rank, i);
        assert_int_equal((ranks[i].d * 3 + ranks[i].c) * 2 + ranks[i].t, i);
        assert_true(ranks[i].t < 2 && ranks[i].c < 3 && ranks[i].d < 2);
        assert_int_equal(ranks[i].device, 0);
        assert_rank(i, ranks[i].t * 4, 4, ranks[i].t * 2, 2, 0, 1);
    }
    assert_int_equal(ranks[12].rank, 0x77777777); /* no more than asked for */
}

static void capacity_is_checked(void **state)
{
    vka_layer_desc desc = layer_of(8, 4);
    vka_error error = {0};

    (void)state;
    memset(ranks, 0x77, sizeof(ranks));
    assert_int_equal(vka_partition(&desc, (vka_grid){4, 2, 1}, VKA_KV_STRICT, ranks, 7, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "room for 7 ranks; the grid has 8"));
    assert_int_equal(ranks[0].rank, 0x77777777);
    assert_int_equal(vka_partition(&desc, (vka_grid){4, 2, 1}, VKA_KV_STRICT, NULL, 8, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_partition(NULL, (vka_grid){0}, VKA_KV_STRICT, ranks, 8, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_partition(&desc, (vka_grid){4, 2, 1}, VKA_KV_STRICT, ranks, 8, &error), VKA_OK);
}

/* Checks the ranks of one (c, d) slice against what a partition has to be, not against how it is computed. */
static void check_slice(const vka_rank *slice, uint32_t tp, uint32_t heads, uint32_t kv_heads)
{
    uint32_t group = heads / kv_heads;
    uint32_t q_owners[MOST_HEADS] = {0};
    uint32_t kv_owners[MOST_HEADS] = {0};

    for (uint32_t t = 0; t < tp; t++) {
        const vka_rank *rank = &slice[t];

        assert_int_equal(rank->q_count, heads / tp);
        assert_in_range(rank->kv_count, 1, kv_heads);
        for (uint32_t q = rank->q_begin; q < rank->q_begin + rank->q_count; q++) {
            q_owners[q]++;
            /* the KV head of every query head is on the rank */
            assert_in_range(q / group, rank->kv_begin, rank->kv_begin + rank->kv_count - 1);
        }
        for (uint32_t kv = rank->kv_begin; kv < rank->kv_begin + rank->kv_count; kv++) {
            /* holders of a head are neighbours, and number its copies in order */
            if (kv_owners[kv] > 0)
                assert_int_equal(slice[t - 1].kv_begin, rank->kv_begin);
            assert_int_equal(rank->replica, kv_owners[kv]);
            kv_owners[kv]++;
        }
        if (rank->replicas == 1)
            assert_int_equal(rank->q_count, rank->kv_count * group); /* whole groups */
        else
            assert_int_equal(rank->kv_count, 1);
    }
    for (uint32_t q = 0; q < heads; q++)
        assert_int_equal(q_owners[q], 1);
    for (uint32_t kv = 0; kv < kv_heads; kv++)
        assert_int_equal(kv_owners[kv], slice[0].replicas);
}

/* A layout is possible iff blocks of heads / tp query heads either hold whole groups or fit into one. */
static bool possible(uint32_t heads, uint32_t kv_heads, uint32_t tp, vka_kv_policy policy)
{
    uint32_t block, group;

    if (heads % kv_heads != 0 || heads % tp != 0)
        return false;
    block = heads / tp;
    group = heads / kv_heads;
    return block % group == 0 || (policy == VKA_KV_REPLICATE && group % block == 0);
}

static void random_layouts(void **state)
{
    uint64_t random = 20260101;
    uint32_t accepted = 0, refused = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint32_t kv_heads = 1 + random_below(&random, 16);
        uint32_t heads = kv_heads * (1 + random_below(&random, 10)); /* whole groups, but for a few */
        uint32_t tp = 1 + random_below(&random, 3) * random_below(&random, 12);
        vka_grid grid = {tp, random_below(&random, 3), random_below(&random, 4)};
        vka_kv_policy policy = random_below(&random, 2) ? VKA_KV_STRICT : VKA_KV_REPLICATE;
        vka_layer_desc desc;
        vka_status status;

        heads += random_below(&random, 20) == 0;
        desc = layer_of(heads, kv_heads);
        status = vka_partition(&desc, grid, policy, ranks, VKA_MAX_RANKS, NULL);
        assert_int_equal(status, possible(heads, kv_heads, tp, policy) ? VKA_OK : VKA_ERR_LAYOUT);
        accepted += status == VKA_OK;
        refused += status != VKA_OK;
        if (status != VKA_OK)
            continue;
        for (uint32_t first = 0; first < vka_grid_ranks(grid); first += tp) {
            check_slice(&ranks[first], tp, heads, kv_heads);
            for (uint32_t t = 0; t < tp; t++)
                assert_int_equal(ranks[first + t].t, t);
        }
    }
    assert_true(accepted > 4000); /* the draw reaches both sides */
    assert_true(refused > 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded),    cmocka_unit_test(replicated),          cmocka_unit_test(random_layouts),
        cmocka_unit_test(grid_order), cmocka_unit_test(capacity_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
