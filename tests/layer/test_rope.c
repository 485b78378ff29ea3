/* RoPE of every type on the devices, positions given by the caller, and sequences that would cross the length past
 * which their type turns in another way. */
#include "layer/layer_tests.h"

#include <string.h>

#include "layer/check.h"
#include "layer/script.h"

#define HEADS .hidden_size = 65, .heads = 8, .kv_heads = 4, .head_dim = 16

static const layer_case types[] = {
    {.name = "linear", .desc = {HEADS, .rope_type = VKA_ROPE_LINEAR, .rope_scaling = {.factor = 4}}},
    {.name = "ntk",
     .desc = {HEADS, .rope_type = VKA_ROPE_NTK, .rope_scaling = {.factor = 4}, .rotary_dim = 10, .rotary_offset = 5}},
    {.name = "yarn",
     .desc = {HEADS, .rope_type = VKA_ROPE_YARN, .rope_scaling = {.factor = 4, .original_context = 512},
              .rope_pairing = VKA_ROPE_INTERLEAVED}},
    {.name = "llama3",
     .desc = {HEADS, .rope_type = VKA_ROPE_LLAMA3,
              .rope_scaling = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 64}}},
};

static void every_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        layer_case setup = types[i];
        setup.tp = 4;
        setup.place = "0,1,1,0";
        run_case(harness_context(), &setup);
    }
}

/* A layer that turns sequences of more than 8 tokens in another way. */
static layer_case length_case(vka_rope_type type)
{
    layer_case setup = {.name = "length", .desc = {HEADS, .rope_type = type}, .tp = 2};
    vka_rope_scaling *scaling = &setup.desc.rope_scaling;

    if (type == VKA_ROPE_DYNAMIC) {
        scaling->factor = 3;
        scaling->context = 8;
        return setup;
    }
    scaling->original_context = 8;
    scaling->context = 32;
    for (uint32_t i = 0; i < 8; i++) {
        scaling->short_factor[i] = 1;
        scaling->long_factor[i] = 2 + (float)i;
    }
    return setup;
}

static void check_length_type(vka_rope_type type)
{
    layer_case setup = length_case(type);
    layer_rig rig;
    vka_error error;

    rig_open(&rig, harness_context(), &setup);
    uint32_t shorter = rig_sequence(&rig), longer = rig_sequence(&rig);
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{shorter, 5}, {longer, 9}}, .count = 2});
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{longer, 2}, {shorter, 3}}, .count = 2});
    const vka_batch_entry one = {shorter, 1};
    const rig_call crossing = {.entries = &one, .count = 1, .unchecked = true};
    assert_int_equal(rig_try_forward(&rig, &crossing, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "past 8 tokens; truncate the sequence to 0 and prefill it again"));
    assert_int_equal(rig_length(&rig, shorter, 0), 8);
    assert_int_equal(vka_cache_sequence_truncate(rig.cache, longer, 4, NULL), VKA_OK); /* turned as long ones are */
    const vka_batch_entry two = {longer, 2};
    assert_int_equal(rig_try_forward(&rig, &(rig_call){.entries = &two, .count = 1, .unchecked = true}, &error),
                     VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_sequence_truncate(rig.cache, shorter, 0, NULL), VKA_OK);
    rig_extend(&rig, shorter, 12, NULL);
    rig_extend(&rig, shorter, 1, NULL);
    rig_close(&rig);
}

static void lengths_decide(void **state)
{
    (void)state;
    check_length_type(VKA_ROPE_DYNAMIC);
    check_length_type(VKA_ROPE_LONGROPE);
}

enum { ROWS = 11 };

static void run_axes(const layer_case *setup, const int32_t *positions, uint32_t axes)
{
    layer_rig rig;

    rig_open(&rig, harness_context(), setup);
    const vka_batch_entry entries[2] = {{rig_sequence(&rig), 4}, {rig_sequence(&rig), ROWS - 4}};
    rig_forward(&rig, &(rig_call){.entries = entries, .count = 2, .positions = positions, .position_rows = axes});
    rig_forward(&rig, &(rig_call){.entries = entries, .count = 2});
    rig_close(&rig);
}

static void positions_of_the_caller(void **state)
{
    layer_case setup = {.name = "axes", .desc = {HEADS, .mrope_section = {2, 3, 3}}, .tp = 2, .place = "1,0"};
    int32_t positions[3 * ROWS];

    (void)state;
    for (int32_t i = 0; i < 3 * ROWS; i++)
        positions[i] = 7 * i % 30 - 3;
    run_axes(&setup, positions, 3);
    run_axes(&setup, positions, 1);
    setup.desc.mrope_interleaved = 1;
    run_axes(&setup, positions, 3);
    setup.desc.mrope_interleaved = 0;
    memset(setup.desc.mrope_section, 0, sizeof(setup.desc.mrope_section));
    run_axes(&setup, positions, 1);
}

static void positions_are_checked(void **state)
{
    const layer_case setup = {.name = "positions", .desc = {HEADS}};
    const int32_t positions[3] = {1, 2, 3};
    layer_rig rig;
    vka_error error;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    const vka_batch_entry entry = {rig_sequence(&rig), 1};
    rig_call call = {.entries = &entry, .count = 1, .unchecked = true, .positions = positions, .position_rows = 3};
    assert_int_equal(rig_try_forward(&rig, &call, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "the layer has no mrope_section"));
    call.position_rows = 2;
    assert_int_equal(rig_try_forward(&rig, &call, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "position_rows is 2, expected 1 or 3"));
    call.positions = NULL;
    assert_int_equal(rig_try_forward(&rig, &call, &error), VKA_ERR_ARGUMENT);
    rig_close(&rig);
}

int run_rope_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(lengths_decide),
        cmocka_unit_test(positions_of_the_caller),
        cmocka_unit_test(positions_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
