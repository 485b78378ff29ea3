/* Layers whose rows see later rows (full attention), or the keys of another sequence (cross attention): every stage of
 * every call, at several tp. Calls that are cut in chunks: test_chunks.c. */
#include "layer/layer_tests.h"

#include <string.h>

#include "layer/check.h"
#include "layer/script.h"

static const layer_case full[] = {
    {.name = "full", .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 4, .head_dim = 8}, .tp = 4, .qkv_bias = true},
    {.name = "full, windows, F16",
     .desc =
         {.hidden_size = 65, .heads = 8, .kv_heads = 2, .head_dim = 5, .rotary_dim = 4, .window = 7, .window_right = 4},
     .tp = 8,
     .place = "0,1,0,1,1,0,1,0",
     .cache = VKA_F16},
    {.name = "full, reproducible",
     .desc = {.hidden_size = 200, .heads = 6, .kv_heads = 6, .head_dim = 8, .rope_type = VKA_ROPE_NONE},
     .tp = 3,
     .o_bias = true,
     .reproducible = true},
};

static const layer_case cross[] = {
    {.name = "cross",
     .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 4, .head_dim = 8, .kv_hidden_size = 100},
     .tp = 4,
     .qkv_bias = true},
    {.name = "cross, F16, QK-norm",
     .desc = {.hidden_size = 200,
              .heads = 8,
              .kv_heads = 2,
              .head_dim = 8,
              .kv_hidden_size = 9,
              .scale = 1,
              .qk_norm = VKA_QK_NORM_PER_HEAD},
     .tp = 8,
     .place = "0,1,0,1,1,0,1,0",
     .weights = VKA_F16,
     .cache = VKA_F16},
    {.name = "cross, one rank, same width",
     .desc = {.hidden_size = 65, .heads = 3, .kv_heads = 3, .head_dim = 8},
     .place = "1",
     .o_bias = true},
    {.name = "cross, reproducible",
     .desc = {.hidden_size = 65, .heads = 6, .kv_heads = 6, .head_dim = 8, .kv_hidden_size = 130},
     .tp = 3,
     .reproducible = true},
};

static void full_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
        layer_case setup = full[i];
        setup.desc.attend = VKA_ATTEND_FULL;
        run_case(harness_context(), &setup);
    }
}

/* Queries and keys are counted apart; keys stay for calls that bring none, and more of them may follow. */
static void run_cross(const layer_case *setup)
{
    layer_rig rig;

    rig_open(&rig, harness_context(), setup);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    const vka_batch_entry first[2] = {{a, 5}, {b, 1}}, second[2] = {{b, 2}, {a, 1}};
    const uint32_t keys[2] = {3, 40}, more[2] = {0, 6};
    rig_forward(&rig, &(rig_call){.entries = first, .count = 2, .kv_tokens = keys});
    assert_int_equal(rig_length(&rig, a, 0), 3);
    assert_int_equal(rig_length(&rig, b, 0), 40);
    rig_forward(&rig, &(rig_call){.entries = second, .count = 2});
    rig_forward(&rig, &(rig_call){.entries = second, .count = 2, .kv_tokens = more, .input = VKA_F16, .input_gap = 3});
    assert_int_equal(rig_length(&rig, a, 0), 9);
    assert_int_equal(rig_length(&rig, b, 0), 40);
    rig_close(&rig);
}

static void cross_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cross) / sizeof(cross[0]); i++) {
        layer_case setup = cross[i];
        setup.desc.attend = VKA_ATTEND_CROSS;
        setup.desc.rope_type = VKA_ROPE_NONE;
        run_cross(&setup);
    }
}

static void refuse(layer_rig *rig, const vka_forward_params *params, const char *message)
{
    vka_error error;

    (void)rig;
    assert_int_equal(vka_forward(params, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, message) != NULL, "%s", error.message);
}

static void other_sequences_are_checked(void **state)
{
    layer_case setup = cross[0];
    float rows[300] = {0};
    const uint32_t two = 2;
    layer_rig rig;

    (void)state;
    setup.desc.attend = VKA_ATTEND_CROSS;
    setup.desc.rope_type = VKA_ROPE_NONE;
    rig_open(&rig, harness_context(), &setup);
    const vka_batch_entry entry = {rig_sequence(&rig), 1};
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = rig.layer,
                                 .cache = rig.cache,
                                 .batch = {&entry, 1},
                                 .input = {rows, VKA_F32, 1, 65, 0},
                                 .output = {rows + 200, VKA_F32, 1, 65, 0}};
    refuse(&rig, &params, "has no keys: the first call of a cross attention needs kv_input and kv_tokens");
    params.kv_tokens = &two;
    refuse(&rig, &params, "kv_tokens add up to 2, but kv_input is not");
    params.kv_input = (vka_tensor){rows, VKA_F32, 2, 99, 0};
    refuse(&rig, &params, "kv_input is [2, 99] with row stride 0, the batch needs [2, 100]");
    assert_int_equal(rig_length(&rig, entry.sequence, 0), 0);
    rig_close(&rig);
    rig_open(&rig, harness_context(), &full[0]); /* as it stands: causal */
    params.layer = rig.layer;
    params.cache = rig.cache;
    (void)rig_sequence(&rig);
    refuse(&rig, &params, "kv_input and kv_tokens are for cross attention");
    rig_close(&rig);
}

int run_attend_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_attention),
        cmocka_unit_test(cross_attention),
        cmocka_unit_test(other_sequences_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
