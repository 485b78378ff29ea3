/* Prefill, decoding and combining over head sizes, groups, pages, masks and splits. Every pair of head sizes is a
 * pipeline of its own, which software devices compile for a second or more: few of them, many cases each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention_case.h"
#include "kernels/gpu_tests.h"
#include "support/require.h"

/* Head sizes, and which variants run them: those of the floor or others, by cache type. */
enum { FLOOR_F16 = 1, FLOOR_F32 = 2, OTHER_F16 = 4, OTHER_F32 = 8, ALL = 15 };
static const struct {
    uint32_t qk_dim, v_dim;
    unsigned variants;
} sizes[] = {
    {1, 1, FLOOR_F16},
    {5, 3, ALL},
    {8, 8, FLOOR_F32},
    {64, 64, ALL},
    {80, 80, FLOOR_F16},
    {96, 96, FLOOR_F32},
    {128, 128, FLOOR_F16},
    {256, 256, FLOOR_F16},
    {192, 128, FLOOR_F32 | OTHER_F16},
    {576, 512, FLOOR_F16 | OTHER_F16},
};

static unsigned kind_of(const vka_variant *variant)
{
    bool half = variant->dtype == VKA_F16;
    return variant->needs == 0 ? (half ? FLOOR_F16 : FLOOR_F32) : (half ? OTHER_F16 : OTHER_F32);
}

/* Masks and layouts; head sizes are put in. */
static const attention_case prefills[] = {
    {.kv_heads = 2, .group = 3, .page_size = 16, .rows = 38, .keys = 135, .position = 97, .causal = true},
    {.kv_heads = 1, .group = 2, .page_size = 1, .rows = 9, .keys = 70, .position = 61, .causal = true, .window = 5},
};
static const attention_case decodings[] = {
    {.kv_heads = 2, .group = 7, .page_size = 48, .rows = 2, .keys = 300, .position = 298, .causal = true},
    {.kv_heads = 2, .group = 2, .page_size = 1, .rows = 3, .keys = 21, .position = 18, .causal = true, .window = 9},
};

/* More of the same at one head size. */
static const attention_case more[] = {
    /* no mask, positions play no part */
    {.kv_heads = 3, .group = 1, .page_size = 16, .rows = 5, .keys = 67, .causal = false, .position = 0},
    /* top left: fewer rows than keys, and the reverse */
    {.kv_heads = 1, .group = 4, .page_size = 48, .rows = 35, .keys = 90, .causal = true, .position = 0},
    {.kv_heads = 2, .group = 1, .page_size = 16, .rows = 70, .keys = 9, .causal = true, .position = 0},
    /* bottom right with more rows than keys: the first rows see nothing */
    {.kv_heads = 1, .group = 2, .page_size = 16, .rows = 40, .keys = 33, .causal = true, .position = -7},
    /* windows: of one key, over blocks, wider than everything */
    {.kv_heads = 1, .group = 1, .page_size = 16, .rows = 33, .keys = 65, .causal = true, .position = 32, .window = 1},
    {.kv_heads = 2,
     .group = 1,
     .page_size = 16,
     .rows = 36,
     .keys = 200,
     .causal = true,
     .position = 164,
     .window = 70},
    {.kv_heads = 1, .group = 1, .page_size = 1, .rows = 3, .keys = 80, .causal = true, .position = 77, .window = 999},
    /* windows to the right, to both sides, ending before the keys and beginning behind them */
    {.kv_heads = 2, .group = 2, .page_size = 16, .rows = 37, .keys = 150, .position = 20, .window_right = 5},
    {.kv_heads = 1,
     .group = 2,
     .page_size = 48,
     .rows = 40,
     .keys = 200,
     .position = 90,
     .window = 9,
     .window_right = 70},
    {.kv_heads = 1, .group = 1, .page_size = 16, .rows = 9, .keys = 70, .position = 64, .window = 4, .window_right = 3},
    {.kv_heads = 1, .group = 3, .page_size = 16, .rows = 35, .keys = 20, .position = -9, .window_right = 2},
    {.kv_heads = 1,
     .group = 3,
     .page_size = 16,
     .rows = 3,
     .keys = 90,
     .position = 40,
     .window_right = 30,
     .splits = 4},
    /* V a part of K */
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 35,
     .keys = 70,
     .position = 35,
     .causal = true,
     .v_in_k = true},
    {.kv_heads = 1, .group = 4, .page_size = 16, .rows = 2, .keys = 70, .position = 68, .causal = true, .v_in_k = true},
    /* large groups */
    {.kv_heads = 1, .group = 8, .page_size = 16, .rows = 2, .keys = 50, .causal = true, .position = 48},
    {.kv_heads = 2, .group = 12, .page_size = 16, .rows = 1, .keys = 18, .causal = true, .position = 17},
    /* splits; with a window and with negative positions some see nothing */
    {.kv_heads = 2, .group = 4, .page_size = 16, .rows = 4, .keys = 300, .causal = true, .position = 296, .splits = 2},
    {.kv_heads = 1, .group = 3, .page_size = 16, .rows = 35, .keys = 100, .causal = true, .position = 65, .splits = 5},
    {.kv_heads = 1,
     .group = 2,
     .page_size = 1,
     .rows = 5,
     .keys = 90,
     .causal = true,
     .position = 85,
     .window = 20,
     .splits = 3},
    {.kv_heads = 1, .group = 2, .page_size = 16, .rows = 6, .keys = 4, .causal = true, .position = -2, .splits = 2},
    /* scores beyond the range of F16, positive and negative */
    {.kv_heads = 2,
     .group = 2,
     .page_size = 16,
     .rows = 10,
     .keys = 70,
     .causal = true,
     .position = 60,
     .amplitude = 300},
    /* many equal keys */
    {.kv_heads = 1,
     .group = 1,
     .page_size = 48,
     .rows = 1,
     .keys = 5000,
     .causal = true,
     .position = 4999,
     .equal_keys = true},
    {.kv_heads = 1,
     .group = 2,
     .page_size = 16,
     .rows = 1,
     .keys = 2500,
     .causal = true,
     .position = 2499,
     .splits = 3,
     .equal_keys = true},
    /* a single key */
    {.kv_heads = 1, .group = 1, .page_size = 16, .rows = 1, .keys = 1, .causal = true, .position = 0},
};

/* Options: what is on makes a pipeline of its own, so there are three sets: all, softcap with sinks, and the rest.
 * Splits are such that some see nothing. */
static const attention_case options[] = {
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 37,
     .keys = 100,
     .position = 50,
     .window = 40,
     .window_right = 20,
     .softcap = 3,
     .alibi = true,
     .sinks = true,
     .mask = MASK_FULL,
     .gate = true},
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 6,
     .keys = 90,
     .position = 84,
     .causal = true,
     .softcap = 3,
     .alibi = true,
     .sinks = true,
     .mask = MASK_FULL,
     .gate = true,
     .splits = 3},
    /* in F32 only, from here on */
    {.kv_heads = 2,
     .group = 2,
     .page_size = 16,
     .rows = 35,
     .keys = 80,
     .position = 45,
     .causal = true,
     .softcap = 1.5f,
     .sinks = true},
    {.kv_heads = 1,
     .group = 3,
     .page_size = 16,
     .rows = 2,
     .keys = 80,
     .position = 78,
     .causal = true,
     .softcap = 8,
     .sinks = true},
    {.kv_heads = 2,
     .group = 5,
     .page_size = 16,
     .rows = 35,
     .keys = 80,
     .position = -5,
     .causal = true,
     .softcap = 8,
     .sinks = true,
     .splits = 3},
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 35,
     .keys = 80,
     .position = 45,
     .causal = true,
     .alibi = true,
     .gate = true,
     .mask = MASK_ROWS},
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 3,
     .keys = 80,
     .position = 30,
     .alibi = true,
     .gate = true,
     .mask = MASK_KEYS,
     .splits = 2},
    {.kv_heads = 1,
     .group = 3,
     .page_size = 16,
     .rows = 38,
     .keys = 80,
     .position = 45,
     .alibi = true,
     .gate = true,
     .mask = MASK_FULL},
    {.kv_heads = 2,
     .group = 3,
     .page_size = 16,
     .rows = 6,
     .keys = 90,
     .position = 45,
     .alibi = true,
     .gate = true,
     .mask = MASK_FULL,
     .splits = 4},
    {.kv_heads = 2,
     .group = 2,
     .page_size = 16,
     .rows = 11,
     .keys = 83,
     .position = 45,
     .alibi = true,
     .gate = true,
     .mask = MASK_KEYS},
    {.kv_heads = 2,
     .group = 2,
     .page_size = 16,
     .rows = 2,
     .keys = 93,
     .position = 91,
     .causal = true,
     .alibi = true,
     .gate = true,
     .mask = MASK_KEYS,
     .splits = 2},
    {.kv_heads = 2,
     .group = 2,
     .page_size = 16,
     .rows = 19,
     .keys = 83,
     .position = 64,
     .causal = true,
     .window = 30,
     .alibi = true,
     .gate = true,
     .mask = MASK_ROWS},
};
enum { OPTIONS = sizeof options / sizeof options[0], OPTIONS_F16 = 2 };

static attention_case sized(const attention_case *c, uint32_t qk_dim, uint32_t v_dim)
{
    attention_case copy = *c;
    copy.qk_dim = qk_dim;
    copy.v_dim = v_dim;
    copy.splits = c->splits > 0 ? c->splits : 1;
    return copy;
}

static void check_sizes(test_rig *rig, const vka_variant *variant, const attention_case *cases, size_t count)
{
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        if (!(sizes[s].variants & kind_of(variant)))
            continue;
        for (size_t i = 0; i < count; i++) {
            attention_case c = sized(&cases[i], sizes[s].qk_dim, sizes[s].v_dim);
            check_attention(rig, variant, &c);
        }
    }
    for (int i = 0; i < (variant->dtype == VKA_F16 ? OPTIONS_F16 : OPTIONS); i++) {
        attention_case c = sized(&options[i], 24, 20);
        check_attention(rig, variant, &c);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        attention_case c = sized(&more[i], 64, more[i].v_in_k ? 32 : 64);
        check_attention(rig, variant, &c);
    }
}

static void check_prefill(test_rig *rig, const vka_variant *variant)
{
    check_sizes(rig, variant, prefills, sizeof prefills / sizeof prefills[0]);
}

static void check_decoding(test_rig *rig, const vka_variant *variant)
{
    check_sizes(rig, variant, decodings, sizeof decodings / sizeof decodings[0]);
}

void prefill_is_right(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_PREFILL, check_prefill);
}

void decoding_is_right(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_DECODE, check_decoding);
}

/* Rows computed in a tile of their own must have the bits that they have among others. */
static void check_tiles(test_rig *rig, const vka_variant *variant)
{
    attention_case c = sized(&prefills[0], 64, 64);
    c.window = 75;
    size_t width = (size_t)c.kv_heads * c.group * c.v_dim;
    float *all = run_attention(rig, variant, &c, 0, c.rows, true);
    for (uint32_t first = 0; first + 2 <= c.rows; first += 9) {
        float *some = run_attention(rig, variant, &c, first, 2, true);
        assert_memory_equal(some, all + first * width, 2 * width * sizeof *some);
        free(some);
    }
    free(all);
}

void rows_do_not_depend_on_their_tile(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_PREFILL, check_tiles);
    rig_each_variant(*state, VKA_KERNEL_DECODE, check_tiles);
}

/* A value that is not a number must not reach the rows that do not see it, and must reach those that do. */
static void check_bad_value(test_rig *rig, const vka_variant *variant)
{
    attention_case c = sized(&prefills[0], 64, 64);
    size_t width = (size_t)c.kv_heads * c.group * c.v_dim;
    float *clean = run_attention(rig, variant, &c, 0, c.rows, false);
    c.bad_key = 121;
    size_t before = c.bad_key - (size_t)c.position;
    float *got = run_attention(rig, variant, &c, 0, c.rows, false);
    assert_memory_equal(got, clean, before * width * sizeof *got);
    for (size_t i = before * width; i < c.rows * width; i++)
        assert_true(isnan(got[i]));
    free(clean);
    free(got);
}

void unseen_values_do_not_matter(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_PREFILL, check_bad_value);
    rig_each_variant(*state, VKA_KERNEL_DECODE, check_bad_value);
}
