/* The attention step alone: every element and log-sum-exp against float64; host tensors and device tensors give the
 * same bits. */
#include "layer/layer_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/attention_scene.h"

static const attention_case cases[] = {
    {"no mask", {2, 8, 2, 8, 8, 21, 33}, .causal = VKA_CAUSAL_NONE},
    {"bottom right", {2, 8, 2, 8, 8, 21, 33}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
    {"top left", {2, 8, 2, 8, 8, 21, 33}, .causal = VKA_CAUSAL_TOP_LEFT},
    {"more queries than keys", {2, 6, 3, 5, 7, 40, 17}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
    {"more queries than keys, top left", {1, 6, 3, 5, 7, 40, 17}, .causal = VKA_CAUSAL_TOP_LEFT},
    {"window", {1, 8, 1, 8, 8, 50, 90}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .window = 13},
    {"window that ends before the keys", {1, 2, 2, 8, 8, 60, 20}, .causal = VKA_CAUSAL_TOP_LEFT, .window = 5},
    {"windows on both sides, bottom right", {2, 4, 2, 8, 8, 21, 60}, .window = 7, .window_right = 4},
    {"windows on both sides, top left",
     {1, 4, 2, 8, 8, 40, 60},
     .window = 7,
     .window_right = 4,
     .align = VKA_ALIGN_TOP_LEFT},
    {"window to the right, more queries than keys", {1, 2, 1, 8, 8, 30, 20}, .window_right = 3},
    {"window to the right, decoding, split",
     {1, 2, 1, 8, 8, 1, 1500},
     .window_right = 300,
     .align = VKA_ALIGN_TOP_LEFT},
    {"softcap and sinks", {2, 4, 2, 8, 8, 21, 33}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .softcap = 2, .sinks = true},
    {"softcap and sinks, decoding, split", {1, 4, 2, 8, 8, 1, 1500}, .softcap = 2, .sinks = true},
    {"sinks, more queries than keys",
     {1, 4, 2, 8, 8, 40, 17},
     .causal = VKA_CAUSAL_BOTTOM_RIGHT,
     .softcap = 2,
     .sinks = true},
    {"ALiBi", {2, 6, 3, 8, 8, 21, 33}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .alibi = true},
    {"ALiBi, both directions", {2, 6, 3, 8, 8, 21, 21}, .alibi = true},
    {"mask of rank 1", {2, 3, 3, 8, 8, 9, 33}, .mask_rank = 1, .mask_shape = {33}},
    {"mask of rank 1, short, boolean",
     {2, 3, 3, 8, 8, 9, 33},
     .causal = VKA_CAUSAL_BOTTOM_RIGHT,
     .window = 9,
     .mask_rank = 1,
     .mask_shape = {30},
     .keep = true},
    {"mask of rank 2", {2, 3, 3, 8, 8, 9, 33}, .causal = VKA_CAUSAL_TOP_LEFT, .mask_rank = 2, .mask_shape = {9, 33}},
    {"mask of rank 3, by head", {2, 6, 3, 8, 8, 9, 33}, .mask_rank = 3, .mask_shape = {6, 9, 33}},
    {"mask of rank 3, a row for all", {2, 6, 3, 8, 8, 9, 33}, .mask_rank = 3, .mask_shape = {6, 1, 20}},
    {"mask of rank 4, by batch entry", {3, 6, 3, 8, 8, 9, 33}, .mask_rank = 4, .mask_shape = {3, 1, 9, 33}},
    {"mask of rank 4, by row", {3, 6, 3, 8, 8, 9, 33}, .mask_rank = 4, .mask_shape = {1, 6, 9, 1}},
    {"mask of rank 4, whole, boolean",
     {2, 4, 2, 8, 8, 5, 33},
     .mask_rank = 4,
     .mask_shape = {2, 4, 5, 33},
     .keep = true},
    {"mask, decoding, split", {2, 4, 2, 8, 8, 1, 1500}, .mask_rank = 4, .mask_shape = {2, 1, 1, 1400}},
    {"mask in F16", {2, 3, 3, 8, 8, 9, 33}, .host = VKA_F16, .mask_rank = 2, .mask_shape = {1, 33}},
    {"everything",
     {2, 6, 3, 8, 8, 9, 33},
     .causal = VKA_CAUSAL_BOTTOM_RIGHT,
     .window = 20,
     .softcap = 2,
     .sinks = true,
     .alibi = true,
     .mask_rank = 4,
     .mask_shape = {2, 1, 9, 30}},
    {"no keys", {3, 4, 2, 8, 8, 5, 0}, .causal = VKA_CAUSAL_NONE},
    {"no keys, one query", {3, 4, 2, 8, 8, 1, 0}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
    {"decoding", {7, 8, 2, 8, 8, 1, 45}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
    {"decoding, split", {1, 8, 2, 8, 8, 1, 1500}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
    {"three rows, split, window", {1, 4, 4, 8, 8, 3, 1500}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .window = 700},
    {"F16", {2, 8, 4, 8, 3, 9, 30}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .scale = 0.7, .host = VKA_F16, .cache = VKA_F16},
    {"BF16", {2, 8, 4, 8, 3, 9, 30}, .scale = 0.7, .host = VKA_BF16},
    {"F32 in, F16 kept", {2, 3, 3, 8, 8, 2, 30}, .scale = 1.5, .cache = VKA_F16},
    {"many entries", {70, 2, 1, 1, 1, 4, 5}, .causal = VKA_CAUSAL_TOP_LEFT},
    {"one of everything", {1, 1, 1, 1, 1, 1, 1}, .causal = VKA_CAUSAL_NONE},
};

static void every_case(void **state)
{
    (void)state;
    for (uint32_t device = 0; device < 2; device++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            attention_scene s;
            attention_open(&s, harness_context(), &cases[i]);
            attention_check(&s, device);
            attention_close(&s);
        }
    }
}

static void planted_bugs_are_found(void **state)
{
    static const verify_mutant mutants[] = {VERIFY_WRONG_SCALE, VERIFY_DROPPED_KEY, VERIFY_MASK_OFF_BY_ONE,
                                            VERIFY_WRONG_KV_HEAD};
    attention_scene s;

    (void)state;
    attention_open(&s, harness_context(), &cases[1]);
    attention_run(&s, 0);
    for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
        verify_result output = {0}, lse = {0};
        attention_judge(&s, mutants[i], &output, &lse);
        require(!verify_passed(&output), "%s passed", verify_mutant_name(mutants[i]));
    }
    attention_close(&s);
}

/* ---- device tensors ---- */

static void device_tensors_give_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].host != VKA_DTYPE_DEFAULT)
            continue;
        attention_scene s;
        attention_open(&s, harness_context(), &cases[i]);
        attention_run(&s, 0);
        for (unsigned on_device = 1; on_device < 1u << TENSORS; on_device += 11) { /* 1, 12, 23, 34, 45, 56 */
            float *o = calloc(s.count[TENSOR_O] + 1, sizeof(float)),
                  *lse = calloc(s.count[TENSOR_LSE] + 1, sizeof(float));
            attention_run_on_device(&s, 0, on_device, o, lse);
            assert_memory_equal(o, s.value[TENSOR_O], s.count[TENSOR_O] * sizeof(float));
            assert_memory_equal(lse, s.value[TENSOR_LSE], s.count[TENSOR_LSE] * sizeof(float));
            free(o);
            free(lse);
        }
        attention_close(&s);
    }
}

/* ---- misuse ---- */

static void refuse(const vka_attention_params *params, vka_status status, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_attention(harness_context(), params, &error), status);
    assert_int_equal(error.status, status);
    require(strstr(error.message, text) != NULL, "'%s' is not in: %s", text, error.message);
}

static void bad_parameters(void **state)
{
    attention_scene s;

    (void)state;
    attention_open(&s, harness_context(), &cases[1]);
    const vka_attention_params good = attention_params(&s, 0);
    vka_buffer *buffer = NULL;
    assert_int_equal(vka_buffer_create(&buffer, harness_context(), 1, 64, NULL), VKA_OK);
#define REFUSE(field, value, status, text)                                                                             \
    do {                                                                                                               \
        vka_attention_params bad = good;                                                                               \
        bad.field = (value);                                                                                           \
        refuse(&bad, status, text);                                                                                    \
    } while (0)
    REFUSE(device, 3, VKA_ERR_ARGUMENT, "device is 3, the context has 3");
    REFUSE(batch, 0, VKA_ERR_ARGUMENT, "batch 0");
    REFUSE(q_len, 0, VKA_ERR_ARGUMENT, "q_len 0");
    REFUSE(heads, 7, VKA_ERR_ARGUMENT, "heads a multiple of kv_heads");
    REFUSE(kv_heads, 0, VKA_ERR_ARGUMENT, "kv_heads 0");
    REFUSE(head_dim, 577, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(head_dim, 0, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(v_head_dim, 577, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(kv_len, UINT32_MAX, VKA_ERR_ARGUMENT, "limited to 2^31 - 1");
    REFUSE(batch, UINT32_MAX, VKA_ERR_ARGUMENT, "limited to 2^31 - 1");
    REFUSE(scale, (double)NAN, VKA_ERR_ARGUMENT, "expected a finite number");
    REFUSE(causal, (vka_causal)3, VKA_ERR_ARGUMENT, "causal is 3");
    REFUSE(align, (vka_align)2, VKA_ERR_ARGUMENT, "align is 2");
    REFUSE(softcap, -1.0, VKA_ERR_ARGUMENT, "softcap is -1");
    REFUSE(cache_dtype, VKA_BF16, VKA_ERR_ARGUMENT, "cache_dtype is BF16");
    REFUSE(q.host, NULL, VKA_ERR_ARGUMENT, "q has neither host memory nor a buffer");
    REFUSE(o.host, NULL, VKA_ERR_ARGUMENT, "o has neither");
    REFUSE(k.host, NULL, VKA_ERR_ARGUMENT, "k has neither");
    REFUSE(v.buffer, buffer, VKA_ERR_ARGUMENT, "v has both");
    REFUSE(v.dtype, (vka_dtype)12, VKA_ERR_ARGUMENT, "v has dtype unknown");
    float added[33] = {0};
    vka_attention_params bad = good;
    bad.mask = (vka_attention_mask){.rank = 5};
    refuse(&bad, VKA_ERR_ARGUMENT, "rank 5");
    bad.mask = (vka_attention_mask){.added.host = added};
    refuse(&bad, VKA_ERR_ARGUMENT, "a mask of rank 0");
    bad.mask = (vka_attention_mask){.rank = 1, .shape = {33}};
    refuse(&bad, VKA_ERR_ARGUMENT, "mask has neither");
    bad.mask = (vka_attention_mask){.rank = 1, .shape = {34}, .added.host = added};
    refuse(&bad, VKA_ERR_ARGUMENT, "size 34 for kv_len, expected 1 or up to 33");
    bad.mask = (vka_attention_mask){.rank = 2, .shape = {20, 33}, .added.host = added};
    refuse(&bad, VKA_ERR_ARGUMENT, "size 20 for q_len, expected 1 or 21");
    bad.mask = (vka_attention_mask){.rank = 1, .shape = {33}, .added.host = added, .keep = (const uint8_t *)added};
    refuse(&bad, VKA_ERR_ARGUMENT, "both boolean");
    bad = good;
    bad.q = (vka_attention_tensor){.buffer = buffer};
    refuse(&bad, VKA_ERR_ARGUMENT, "q is on device 1");
    bad.device = 1;
    refuse(&bad, VKA_ERR_ARGUMENT, "q needs 2688 F32 values from byte 0");
    bad.q.offset = UINT64_MAX - 3;
    refuse(&bad, VKA_ERR_ARGUMENT, "from byte 18446744073709551612");
    bad.q.offset = 2;
    refuse(&bad, VKA_ERR_ARGUMENT, "a multiple of 4");
    vka_buffer_destroy(&buffer);
    assert_int_equal(vka_attention(NULL, &good, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_attention(harness_context(), NULL, NULL), VKA_ERR_ARGUMENT);
    attention_close(&s);
}

int run_attention_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(planted_bugs_are_found),
        cmocka_unit_test(device_tensors_give_the_same_bits),
        cmocka_unit_test(bad_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
