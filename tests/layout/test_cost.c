/* What devices store and move, against numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"

static vka_rank ranks[VKA_MAX_RANKS];
static vka_device_cost costs[8];

static void cost(const vka_layer_desc *desc, vka_grid grid, uint32_t devices, const char *place, vka_dtype weights,
                 vka_dtype cache)
{
    uint32_t count = vka_grid_ranks(grid);

    memset(costs, 0x77, sizeof(costs));
    assert_int_equal(vka_partition(desc, grid, VKA_KV_REPLICATE, ranks, VKA_MAX_RANKS, NULL), VKA_OK);
    assert_int_equal(vka_place(ranks, count, devices, place, NULL), VKA_OK);
    assert_int_equal(vka_placement_cost(desc, ranks, count, devices, weights, cache, costs, NULL), VKA_OK);
}

static void sharded(void **state)
{
    vka_layer_desc desc = layer_of(32, 8);

    (void)state;
    desc.head_dim = 128;
    desc.hidden_size = 4096;
    cost(&desc, (vka_grid){.tp = 4}, 2, "0*3,1*1", VKA_F16, VKA_F16);
    assert_int_equal(costs[0].device, 0);
    assert_int_equal(costs[0].ranks, 3);
    assert_int_equal(costs[0].q_heads, 24);
    assert_int_equal(costs[0].kv_heads, 6);
    assert_int_equal(costs[0].weight_bytes, 4096 * (24 * 256 + 6 * 256) * 2); /* q and o, k and v */
    assert_int_equal(costs[0].cache_bytes_per_token, 6 * 256 * 2);
    assert_int_equal(costs[0].upload_bytes_per_token, 16384);
    assert_int_equal(costs[0].download_bytes_per_token, 16384);
    assert_int_equal(costs[1].device, 1);
    assert_int_equal(costs[1].ranks, 1);
    assert_int_equal(costs[1].weight_bytes, 4096 * (8 * 256 + 2 * 256) * 2);
    assert_int_equal(costs[1].cache_bytes_per_token, 2 * 256 * 2);
    assert_int_equal(costs[2].device, 0x77777777); /* no more than asked for */
}

/* DeepSeek-V3 on two of three devices: the latent is whole on each, heads are shared out. */
static void latent(void **state)
{
    vka_layer_desc desc = layer_of(128, 128);

    (void)state;
    desc.head_dim = 192;
    desc.v_head_dim = 128;
    desc.hidden_size = 7168;
    desc.rotary_dim = 64;
    desc.rotary_offset = 128;
    desc.kv_lora_rank = 512;
    desc.q_lora_rank = 1530; /* stored as 1536 */
    cost(&desc, (vka_grid){.tp = 8}, 3, "0*2,2*6", VKA_F16, VKA_F32);
    for (uint32_t d = 0; d < 3; d += 2) {
        uint64_t heads = d == 0 ? 32 : 96;
        uint64_t whole = (uint64_t)7168 * (1536 + 512 + 64), own = 192 * 1536 + 512 * (128 + 128) + 128 * 7168;
        assert_int_equal(costs[d].q_heads, heads);
        assert_int_equal(costs[d].kv_heads, 1);
        assert_int_equal(costs[d].weight_bytes, (whole + heads * own) * 2);
        assert_int_equal(costs[d].cache_bytes_per_token, 576 * 4);
    }
    assert_int_equal(costs[1].kv_heads, 0);
    assert_int_equal(costs[1].weight_bytes + costs[1].cache_bytes_per_token, 0);
    desc.q_lora_rank = 0;
    cost(&desc, (vka_grid){.tp = 1}, 1, NULL, VKA_F32, VKA_F16);
    assert_int_equal(costs[0].weight_bytes, ((uint64_t)7168 * (128 * 192 + 576 + 128 * 128) + 128 * 512 * 256) * 4);
}

/* Sums of squares of the heads of a device, and two factors. */
static void norms_over_the_full_width(void **state)
{
    vka_layer_desc desc = layer_of(32, 8);

    (void)state;
    cost(&desc, (vka_grid){.tp = 4}, 3, "0*3,1*1", VKA_F16, VKA_F16);
    assert_true(costs[0].exchanges == 1 && costs[1].exchanges == 1 && costs[2].exchanges == 0);
    assert_int_equal(costs[0].norm_bytes_per_token, 0);
    desc.qk_norm = VKA_QK_NORM_FULL_WIDTH;
    cost(&desc, (vka_grid){.tp = 4}, 3, "0*3,1*1", VKA_F16, VKA_F16);
    assert_true(costs[0].exchanges == 2 && costs[1].exchanges == 2 && costs[2].exchanges == 0);
    assert_int_equal(costs[0].norm_bytes_per_token, (24 + 6 + 2) * 4);
    assert_int_equal(costs[1].norm_bytes_per_token, (8 + 2 + 2) * 4);
    assert_int_equal(costs[2].norm_bytes_per_token, 0);
}

static void types_and_padding(void **state)
{
    vka_layer_desc desc = layer_of(6, 3);

    (void)state;
    desc.head_dim = 10;  /* stored as 16 */
    desc.v_head_dim = 7; /* stored as 8 */
    desc.hidden_size = 11;
    cost(&desc, (vka_grid){.tp = 1}, 1, NULL, VKA_F32, VKA_F32);
    assert_int_equal(costs[0].weight_bytes, 11 * (6 * 24 + 3 * 24) * 4);
    assert_int_equal(costs[0].cache_bytes_per_token, 3 * 24 * 4);
    assert_int_equal(costs[0].upload_bytes_per_token, 44);
    cost(&desc, (vka_grid){.tp = 1}, 1, NULL, VKA_DTYPE_DEFAULT, VKA_DTYPE_DEFAULT);
    assert_int_equal(costs[0].weight_bytes, 11 * (6 * 24 + 3 * 24) * 2);
    assert_int_equal(costs[0].cache_bytes_per_token, 3 * 24 * 2);
}

/* Eight ranks on one device cost what one rank costs, replicas or not. */
static void ranks_of_one_device_share(void **state)
{
    static const uint32_t kv_heads[] = {1, 2, 8, 16};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        vka_layer_desc desc = layer_of(16, kv_heads[i]);
        vka_device_cost alone;

        cost(&desc, (vka_grid){.tp = 1}, 1, NULL, VKA_F16, VKA_F16);
        alone = costs[0];
        cost(&desc, (vka_grid){.tp = 8}, 1, NULL, VKA_F16, VKA_F16);
        assert_int_equal(costs[0].ranks, 8);
        costs[0].ranks = 1;
        assert_memory_equal(&costs[0], &alone, sizeof(alone));
    }
}

static void replicas_on_two_devices_are_stored_twice(void **state)
{
    vka_layer_desc desc = layer_of(8, 1);

    (void)state;
    cost(&desc, (vka_grid){.tp = 8}, 2, NULL, VKA_F16, VKA_F16);
    for (size_t device = 0; device < 2; device++) {
        assert_int_equal(costs[device].q_heads, 4);
        assert_int_equal(costs[device].kv_heads, 1);
    }
}

static void an_idle_device_costs_nothing(void **state)
{
    const vka_device_cost idle = {.device = 2};
    vka_layer_desc desc = layer_of(8, 8);

    (void)state;
    cost(&desc, (vka_grid){.tp = 2}, 3, NULL, VKA_F16, VKA_F16);
    assert_memory_equal(&costs[2], &idle, sizeof(idle));
}

/* The ranks of other KV-sequence or batch shards hold the same heads: stored once per device. */
static void slices_share_too(void **state)
{
    vka_layer_desc desc = layer_of(8, 4);

    (void)state;
    cost(&desc, (vka_grid){2, 2, 2}, 2, "0*4,1*4", VKA_F16, VKA_F16);
    assert_int_equal(costs[0].ranks, 4);
    assert_int_equal(costs[0].q_heads, 8);
    assert_int_equal(costs[1].kv_heads, 4);
}

/* The largest numbers a description allows do not wrap. */
static void the_largest_layer(void **state)
{
    vka_layer_desc desc = layer_of(VKA_MAX_HEADS, VKA_MAX_HEADS);

    (void)state;
    desc.head_dim = VKA_MAX_HEAD_DIM;
    desc.hidden_size = 0x7FFFFFFF;
    cost(&desc, (vka_grid){.tp = VKA_MAX_RANKS}, 1, NULL, VKA_F32, VKA_F32);
    assert_int_equal(costs[0].q_heads, VKA_MAX_HEADS);
    assert_int_equal(costs[0].weight_bytes, 2147483647ull * (4 * 4096ull * 576) * 4);
}

static void bad_arguments_are_named(void **state)
{
    vka_layer_desc desc = layer_of(8, 4), larger = layer_of(16, 4);
    vka_error error = {0};

    (void)state;
    cost(&desc, (vka_grid){.tp = 4}, 2, NULL, VKA_F16, VKA_F16);
    memset(costs, 0x77, sizeof(costs));
    assert_int_equal(vka_placement_cost(&desc, ranks, 4, 2, (vka_dtype)9, VKA_F16, costs, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "weight type is 9"));
    assert_int_equal(vka_placement_cost(&desc, ranks, 4, 2, VKA_F16, (vka_dtype)8, costs, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "cache type is 8"));
    assert_int_equal(vka_placement_cost(&desc, ranks, 4, 1, VKA_F16, VKA_F16, costs, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "rank 2 is on device 1; there are 1 devices"));
    assert_int_equal(vka_placement_cost(NULL, ranks, 4, 2, VKA_F16, VKA_F16, costs, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_placement_cost(&desc, NULL, 4, 2, VKA_F16, VKA_F16, costs, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_placement_cost(&desc, ranks, 4, 2, VKA_F16, VKA_F16, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_partition(&larger, (vka_grid){.tp = 4}, VKA_KV_STRICT, ranks, 4, NULL), VKA_OK);
    assert_int_equal(vka_placement_cost(&desc, ranks, 4, 2, VKA_F16, VKA_F16, costs, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "rank 2 owns heads that a layer of 8 query heads and 4 KV heads has not"));
    assert_int_equal(costs[0].device, 0x77777777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded),
        cmocka_unit_test(latent),
        cmocka_unit_test(norms_over_the_full_width),
        cmocka_unit_test(types_and_padding),
        cmocka_unit_test(ranks_of_one_device_share),
        cmocka_unit_test(replicas_on_two_devices_are_stored_twice),
        cmocka_unit_test(an_idle_device_costs_nothing),
        cmocka_unit_test(slices_share_too),
        cmocka_unit_test(the_largest_layer),
        cmocka_unit_test(bad_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
