/* K and V between the cache and the caller: those of new tokens given back by a call, and tokens appended from host
 * memory. */
#include "layer/layer_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "layer/check.h"

enum { HEADS = 4, DIM = 5, V_DIM = 7, TOKENS = 21, K_COLS = HEADS * DIM, V_COLS = HEADS * V_DIM, GAP = 3 };

static const layer_case base = {
    .name = "K and V",
    .desc = {.hidden_size = 65, .heads = 8, .kv_heads = HEADS, .head_dim = DIM, .v_head_dim = V_DIM, .rotary_dim = 4},
    .qkv_bias = true,
    .page_size = 4,
};

static const struct {
    uint32_t tp;
    const char *place;
} grids[] = {{1, "0"}, {2, "0,1"}, {4, "1,0,1,0"}, {8, "0*3,1*5"}};

enum { GRIDS = sizeof(grids) / sizeof(grids[0]) };

static layer_case case_of(size_t grid, vka_dtype cache)
{
    layer_case setup = base;

    setup.tp = grids[grid].tp;
    setup.place = grids[grid].place;
    setup.cache = cache;
    return setup;
}

/* Rows of one of K and V, as the call wrote them, against the cache of a device that holds the head. */
static void check_head(layer_rig *rig, uint32_t sequence, uint32_t head, uint32_t first, uint32_t tokens,
                       const float *k, const float *v)
{
    float kept_k[TOKENS * DIM], kept_v[TOKENS * V_DIM];
    bool read = false;

    for (uint32_t d = 0; d < HARNESS_DEVICES && !read; d++)
        read = vka_cache_read(rig->cache, d, 0, sequence, head, first, tokens, kept_k, kept_v, NULL) == VKA_OK;
    assert_true(read);
    for (uint32_t t = 0; t < tokens; t++) {
        assert_memory_equal(k + t * K_COLS + head * DIM, kept_k + t * DIM, DIM * sizeof(float));
        assert_memory_equal(v + t * V_COLS + head * V_DIM, kept_v + t * V_DIM, V_DIM * sizeof(float));
    }
}

/* Two sequences in one call: rows of all KV heads in order, as the cache holds them. */
static void given_as_the_cache_holds_them(void **state)
{
    (void)state;
    for (size_t grid = 0; grid < GRIDS; grid++) {
        layer_case setup = case_of(grid, grid % 2 ? VKA_F16 : VKA_F32);
        float k[TOKENS * K_COLS], v[TOKENS * V_COLS];
        layer_rig rig;
        rig_open(&rig, harness_context(), &setup);
        uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
        const vka_batch_entry entries[2] = {{a, TOKENS - 6}, {b, 6}};
        rig_extend(&rig, b, 3, NULL);
        rig_forward(&rig, &(rig_call){.entries = entries,
                                      .count = 2,
                                      .k_output = {k, VKA_F32, TOKENS, K_COLS, 0},
                                      .v_output = {v, VKA_F32, TOKENS, V_COLS, 0}});
        for (uint32_t head = 0; head < HEADS; head++) {
            check_head(&rig, a, head, 0, TOKENS - 6, k, v);
            check_head(&rig, b, head, 3, 6, k + (TOKENS - 6) * K_COLS, v + (TOKENS - 6) * V_COLS);
        }
        rig_close(&rig);
    }
}

/* BF16, rows apart, only one of the two. */
static void in_any_type(void **state)
{
    layer_case setup = case_of(1, VKA_F16);
    uint16_t half[TOKENS * (V_COLS + GAP)];
    float v[TOKENS * V_COLS];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    const vka_batch_entry first = {rig_sequence(&rig), TOKENS}, second = {rig_sequence(&rig), TOKENS};
    rig.stream[second.sequence] = rig.stream[first.sequence];
    memset(half, 0xff, sizeof(half));
    rig_forward(&rig, &(rig_call){.entries = &first, .count = 1, .v_output = {v, VKA_F32, TOKENS, V_COLS, 0}});
    rig_forward(
        &rig, &(rig_call){.entries = &second, .count = 1, .v_output = {half, VKA_BF16, TOKENS, V_COLS, V_COLS + GAP}});
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < V_COLS + GAP; i++)
            assert_int_equal(half[t * (V_COLS + GAP) + i], i < V_COLS ? vka_f32_to_bf16(v[t * V_COLS + i]) : 0xffff);
    rig_close(&rig);
}

/* With a norm of its own K is what a layer whose keys have that norm would cache; the cache holds the other. */
static void another_norm(void **state)
{
    (void)state;
    for (size_t grid = 0; grid < GRIDS; grid++) {
        layer_case own = case_of(grid, VKA_F32);
        float k[TOKENS * K_COLS], plain[TOKENS * K_COLS], v[TOKENS * V_COLS];
        layer_rig rig, keys;
        own.desc.qk_norm = VKA_QK_NORM_PER_HEAD;
        own.desc.norm_unit_offset = grid % 2;
        layer_case other = own;
        own.desc.k_out_norm = 1;
        rig_open(&rig, harness_context(), &own);
        rig_open(&keys, harness_context(), &other);
        vka_layer_weights weights = rig.weights;
        weights.k_norm = rig.weights.k_out_norm;
        weights.k_out_norm = (vka_tensor){0};
        vka_layer_destroy(&keys.layer);
        const vka_layer_params params = {.struct_size = sizeof(params),
                                         .desc = &other.desc,
                                         .weights = &weights,
                                         .grid = {.tp = other.tp},
                                         .place = other.place};
        keys.setup.desc.struct_size = other.desc.struct_size = sizeof(vka_layer_desc);
        assert_int_equal(vka_layer_create(&keys.layer, harness_context(), &params, NULL), VKA_OK);
        const vka_batch_entry entry = {rig_sequence(&rig), TOKENS}, same = {rig_sequence(&keys), TOKENS};
        rig_forward(&rig, &(rig_call){.entries = &entry,
                                      .count = 1,
                                      .k_output = {k, VKA_F32, TOKENS, K_COLS, 0},
                                      .v_output = {v, VKA_F32, TOKENS, V_COLS, 0}});
        rig_forward(&keys, &(rig_call){.entries = &same,
                                       .count = 1,
                                       .unchecked = true,
                                       .k_output = {plain, VKA_F32, TOKENS, K_COLS, 0}});
        assert_memory_equal(k, plain, sizeof(k));
        for (uint32_t head = 0; head < HEADS; head++)
            check_head(&keys, same.sequence, head, 0, TOKENS, k, v);
        rig_close(&keys);
        rig_close(&rig);
    }
}

/* A sequence whose first tokens were appended from host memory goes on as the one that they come from. */
static void appended_tokens_are_tokens(void **state)
{
    (void)state;
    for (size_t grid = 0; grid < GRIDS; grid++) {
        layer_case setup = case_of(grid, grid % 2 ? VKA_F32 : VKA_F16);
        float k[TOKENS * K_COLS], v[TOKENS * V_COLS], expected[65], got[65];
        layer_rig rig;
        rig_open(&rig, harness_context(), &setup);
        uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
        const vka_batch_entry entry = {a, TOKENS};
        rig.stream[b] = rig.stream[a];
        rig_forward(&rig, &(rig_call){.entries = &entry,
                                      .count = 1,
                                      .k_output = {k, VKA_F32, TOKENS, K_COLS, 0},
                                      .v_output = {v, VKA_F32, TOKENS, V_COLS, 0}});
        const uint32_t cuts[] = {0, 6, 7, TOKENS}; /* a page and a half, one slot, three pages and a half */
        for (int i = 0; i < 3; i++) {
            uint32_t rows = cuts[i + 1] - cuts[i];
            const vka_tensor part_k = {k + cuts[i] * K_COLS, VKA_F32, rows, K_COLS, 0};
            const vka_tensor part_v = {v + cuts[i] * V_COLS, VKA_F32, rows, V_COLS, 0};
            assert_int_equal(vka_cache_append(rig.cache, 0, b, &part_k, &part_v, NULL), VKA_OK);
            assert_int_equal(rig_length(&rig, b, 0), cuts[i + 1]);
        }
        for (uint32_t head = 0; head < HEADS; head++)
            check_head(&rig, b, head, 0, TOKENS, k, v);
        rig_extend(&rig, a, 1, expected);
        rig_extend(&rig, b, 1, got);
        assert_memory_equal(expected, got, sizeof(got));
        rig_close(&rig);
    }
}

/* A cached prefix of text, then a block that sees it and all of itself, truncated away afterwards. */
static void a_prefix_for_full_attention(void **state)
{
    layer_case setup = case_of(2, VKA_F16);
    float k[TOKENS * K_COLS], v[TOKENS * V_COLS], first[6 * 65], second[6 * 65];
    layer_rig rig;

    (void)state;
    setup.desc.attend = VKA_ATTEND_FULL;
    setup.desc.kv_policy = VKA_KV_STRICT;
    rig_open(&rig, harness_context(), &setup);
    vka_random_fill(k, TOKENS * K_COLS, 1, 5, 1, 0);
    vka_random_fill(v, TOKENS * V_COLS, 1, 5, 2, 0);
    uint32_t sequence = rig_sequence(&rig);
    const vka_tensor text_k = {k, VKA_F32, TOKENS, K_COLS, 0}, text_v = {v, VKA_F32, TOKENS, V_COLS, 0};
    assert_int_equal(vka_cache_append(rig.cache, 0, sequence, &text_k, &text_v, NULL), VKA_OK);
    rig_extend(&rig, sequence, 6, first);
    assert_int_equal(vka_cache_sequence_truncate(rig.cache, sequence, TOKENS, NULL), VKA_OK);
    rig_extend(&rig, sequence, 6, second);
    assert_memory_equal(first, second, sizeof(first));
    rig_close(&rig);
}

static void bad_tokens_are_refused(void **state)
{
    layer_case setup = case_of(1, VKA_F32);
    static float zeros[300 * V_COLS];
    layer_rig rig;
    vka_error error;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    uint32_t sequence = rig_sequence(&rig);
    vka_tensor k = {zeros, VKA_F32, 300, K_COLS, 0}, v = {zeros, VKA_F32, 300, V_COLS, 0};
    assert_int_equal(vka_cache_append(rig.cache, 0, sequence, &k, &v, &error), VKA_ERR_CACHE_FULL);
    assert_int_equal(rig_length(&rig, sequence, 0), 0);
    assert_int_equal(vka_cache_free_pages(rig.cache), 64);
    k.rows = 2;
    assert_int_equal(vka_cache_append(rig.cache, 0, sequence, &k, &v, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "v is [300, 28] with row stride 0, expected [2, 28]"));
    assert_int_equal(vka_cache_append(rig.cache, 1, sequence, &k, &v, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "cache_layer is 1"));
    k.rows = 0;
    assert_int_equal(vka_cache_append(rig.cache, 0, sequence, &k, &v, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_append(rig.cache, 0, sequence, NULL, &v, &error), VKA_ERR_ARGUMENT);
    const vka_batch_entry entry = {sequence, 2};
    const rig_call call = {
        .entries = &entry, .count = 1, .unchecked = true, .k_output = {zeros, VKA_F32, 2, K_COLS + 1, 0}};
    assert_int_equal(rig_try_forward(&rig, &call, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "k_output is [2, 21] with row stride 0, the batch needs [2, 20]"));
    rig_close(&rig);
}

int run_kv_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_as_the_cache_holds_them),
        cmocka_unit_test(in_any_type),
        cmocka_unit_test(another_norm),
        cmocka_unit_test(appended_tokens_are_tokens),
        cmocka_unit_test(a_prefix_for_full_attention),
        cmocka_unit_test(bad_tokens_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
