/* Device shards: the union of the ranks of a device, each head once, every query head with its own KV head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"
#include "layout/shard.h"

enum { MOST_HEADS = 160, DEVICES = 4 };

static vka_rank ranks[VKA_MAX_RANKS];

static void partition(const vka_layer_desc *desc, uint32_t tp, uint32_t devices, const char *place)
{
    assert_int_equal(vka_partition(desc, (vka_grid){.tp = tp}, VKA_KV_REPLICATE, ranks, VKA_MAX_RANKS, NULL), VKA_OK);
    assert_int_equal(vka_place(ranks, tp, devices, place, NULL), VKA_OK);
}

/* 8 query heads, 2 KV heads, 4 ranks; ranks 0 and 3 on device 1, so its heads are 0, 1 and 6, 7. */
static void ranks_that_are_apart(void **state)
{
    vka_layer_desc desc = layer_of(8, 2);
    vka_shard shard = {0};

    (void)state;
    partition(&desc, 4, 2, "1,0*2,1");
    assert_int_equal(vka_shard_create(&shard, &desc, ranks, 4, 1, NULL, NULL), VKA_OK);
    assert_int_equal(shard.device, 1);
    assert_int_equal(shard.ranks, 2);
    assert_memory_equal(shard.rank, ((uint32_t[]){0, 3}), 8);
    assert_memory_equal(shard.rank_q_begin, ((uint32_t[]){0, 2}), 8);
    assert_memory_equal(shard.rank_q_count, ((uint32_t[]){2, 2}), 8);
    assert_int_equal(shard.q_heads, 4);
    assert_memory_equal(shard.q_head, ((uint32_t[]){0, 1, 6, 7}), 16);
    assert_memory_equal(shard.q_kv, ((uint32_t[]){0, 0, 1, 1}), 16);
    assert_int_equal(shard.kv_heads, 2);
    assert_memory_equal(shard.kv_head, ((uint32_t[]){0, 1}), 8);
    assert_memory_equal(shard.kv_q_begin, ((uint32_t[]){0, 2, 4}), 12);
    vka_shard_destroy(&shard, NULL);
    assert_null(shard.storage);
    vka_shard_destroy(&shard, NULL);
    vka_shard_destroy(NULL, NULL);
}

/* Every rank of this device holds KV head 1 of 2; it is stored once, as local head 0. */
static void replicas_are_stored_once(void **state)
{
    vka_layer_desc desc = layer_of(16, 2);
    vka_shard shard;

    (void)state;
    partition(&desc, 8, 2, "0*4,1*4");
    assert_int_equal(vka_shard_create(&shard, &desc, ranks, 8, 1, NULL, NULL), VKA_OK);
    assert_int_equal(shard.ranks, 4);
    assert_int_equal(shard.q_heads, 8);
    assert_int_equal(shard.kv_heads, 1);
    assert_int_equal(shard.kv_head[0], 1);
    assert_int_equal(shard.kv_q_begin[1], 8);
    vka_shard_destroy(&shard, NULL);
}

static void an_idle_device(void **state)
{
    vka_layer_desc desc = layer_of(8, 2);
    vka_shard shard;

    (void)state;
    partition(&desc, 2, 3, NULL);
    assert_int_equal(vka_shard_create(&shard, &desc, ranks, 2, 2, NULL, NULL), VKA_OK);
    assert_int_equal(shard.ranks, 0);
    assert_int_equal(shard.q_heads, 0);
    assert_int_equal(shard.kv_heads, 0);
    assert_int_equal(shard.kv_q_begin[0], 0);
    vka_shard_destroy(&shard, NULL);
}

static void check_heads(const vka_shard *shard, const vka_layer_desc *desc)
{
    uint32_t group = desc->heads / desc->kv_heads;

    for (uint32_t i = 0; i < shard->q_heads; i++) {
        assert_true(i == 0 || shard->q_head[i] > shard->q_head[i - 1]);
        assert_true(shard->q_kv[i] < shard->kv_heads);
        assert_int_equal(shard->kv_head[shard->q_kv[i]], shard->q_head[i] / group);
    }
    assert_int_equal(shard->kv_q_begin[0], 0);
    assert_int_equal(shard->kv_q_begin[shard->kv_heads], shard->q_heads);
    for (uint32_t kv = 0; kv < shard->kv_heads; kv++) {
        assert_true(kv == 0 || shard->kv_head[kv] > shard->kv_head[kv - 1]);
        assert_true(shard->kv_q_begin[kv] < shard->kv_q_begin[kv + 1]);
        for (uint32_t i = shard->kv_q_begin[kv]; i < shard->kv_q_begin[kv + 1]; i++)
            assert_int_equal(shard->q_kv[i], kv);
    }
}

/* `owned` counts, over all devices, how often each query head is stored. */
static void check_ranks(const vka_shard *shard, uint32_t owned[MOST_HEADS])
{
    uint32_t heads = 0;

    for (uint32_t i = 0; i < shard->ranks; i++) {
        const vka_rank *rank = &ranks[shard->rank[i]];

        assert_true(i == 0 || shard->rank[i] > shard->rank[i - 1]);
        assert_int_equal(rank->device, shard->device);
        assert_int_equal(shard->rank_q_count[i], rank->q_count);
        for (uint32_t j = 0; j < rank->q_count; j++)
            assert_int_equal(shard->q_head[shard->rank_q_begin[i] + j], rank->q_begin + j);
        heads += rank->q_count;
    }
    assert_int_equal(shard->q_heads, heads); /* query heads are never shared */
    for (uint32_t i = 0; i < shard->q_heads; i++)
        owned[shard->q_head[i]]++;
}

/* KV heads of the shard are those of its ranks and no others. */
static void check_kv_union(const vka_shard *shard, uint32_t tp)
{
    bool wanted[MOST_HEADS] = {false};
    uint32_t count = 0;

    for (uint32_t t = 0; t < tp; t++)
        for (uint32_t kv = 0; ranks[t].device == shard->device && kv < ranks[t].kv_count; kv++)
            wanted[ranks[t].kv_begin + kv] = true;
    for (uint32_t kv = 0; kv < MOST_HEADS; kv++)
        count += wanted[kv];
    assert_int_equal(shard->kv_heads, count);
    for (uint32_t i = 0; i < shard->kv_heads; i++)
        assert_true(wanted[shard->kv_head[i]]);
}

static void random_placements(void **state)
{
    uint64_t random = 4711;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint32_t kv_heads = 1 + random_below(&random, 16);
        vka_layer_desc desc = layer_of(kv_heads * (1 + random_below(&random, 10)), kv_heads);
        uint32_t owned[MOST_HEADS] = {0};
        vka_verdict verdict;
        uint32_t tp;

        assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
        tp = verdict.valid_replicate[random_below(&random, verdict.valid_replicate_count)];
        partition(&desc, tp, 1, NULL);
        for (uint32_t t = 0; t < tp; t++)
            ranks[t].device = random_below(&random, DEVICES);
        for (uint32_t device = 0; device < DEVICES; device++) {
            vka_shard shard;

            assert_int_equal(vka_shard_create(&shard, &desc, ranks, tp, device, NULL, NULL), VKA_OK);
            check_heads(&shard, &desc);
            check_ranks(&shard, owned);
            check_kv_union(&shard, tp);
            vka_shard_destroy(&shard, NULL);
        }
        for (uint32_t head = 0; head < desc.heads; head++)
            assert_int_equal(owned[head], 1);
    }
}

/* tp = 8 on one device gives the same tables as tp = 1. */
static void ranks_do_not_show(void **state)
{
    vka_layer_desc desc = layer_of(32, 4);
    vka_shard one, eight;

    (void)state;
    partition(&desc, 1, 1, NULL);
    assert_int_equal(vka_shard_create(&one, &desc, ranks, 1, 0, NULL, NULL), VKA_OK);
    partition(&desc, 8, 1, NULL);
    assert_int_equal(vka_shard_create(&eight, &desc, ranks, 8, 0, NULL, NULL), VKA_OK);
    assert_int_equal(eight.q_heads, one.q_heads);
    assert_int_equal(eight.kv_heads, one.kv_heads);
    assert_memory_equal(eight.q_head, one.q_head, 32 * sizeof(uint32_t));
    assert_memory_equal(eight.q_kv, one.q_kv, 32 * sizeof(uint32_t));
    assert_memory_equal(eight.kv_head, one.kv_head, 4 * sizeof(uint32_t));
    assert_memory_equal(eight.kv_q_begin, one.kv_q_begin, 5 * sizeof(uint32_t));
    vka_shard_destroy(&one, NULL);
    vka_shard_destroy(&eight, NULL);
}

static void *no_memory(void *user, void *pointer, size_t size)
{
    (void)user;
    (void)pointer;
    (void)size;
    return NULL;
}

static void exhaustion(void **state)
{
    const vka_allocator allocator = {no_memory, NULL};
    vka_layer_desc desc = layer_of(8, 2);
    vka_shard shard = {.device = 99};
    vka_error error = {0};

    (void)state;
    partition(&desc, 2, 1, NULL);
    assert_int_equal(vka_shard_create(&shard, &desc, ranks, 2, 0, &allocator, &error), VKA_ERR_HOST_MEMORY);
    assert_int_equal(error.status, VKA_ERR_HOST_MEMORY);
    assert_int_equal(shard.device, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_are_apart), cmocka_unit_test(replicas_are_stored_once),
        cmocka_unit_test(an_idle_device),       cmocka_unit_test(random_placements),
        cmocka_unit_test(ranks_do_not_show),    cmocka_unit_test(exhaustion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
