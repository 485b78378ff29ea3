/* Every stage of every call against float64: a representative list of layers, placements, types and cache geometries.
 * Head sizes are few, since each costs a compilation. */
#include "layer/layer_tests.h"

#include "layer/script.h"

/* Devices 0 and 2 are of one kind. */
static const layer_case cases[] = {
    {.name = "one rank", .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8}, .place = "0"},
    {.name = "ranks of one device",
     .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8},
     .tp = 4,
     .place = "0*4"},
    {.name = "balanced",
     .desc = {.hidden_size = 65, .heads = 12, .kv_heads = 12, .head_dim = 8},
     .tp = 6,
     .page_size = 1},
    {.name = "interleaved, replicated KV, window",
     .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 2, .head_dim = 5, .rotary_dim = 4, .window = 7},
     .tp = 8,
     .place = "0,1,0,1,1,0,1,0",
     .page_size = 7},
    {.name = "one KV head, F16",
     .desc = {.hidden_size = 7, .heads = 16, .kv_heads = 1, .head_dim = 8, .v_head_dim = 3},
     .tp = 8,
     .place = "0*3,1*5",
     .weights = VKA_F16,
     .cache = VKA_F16,
     .o_bias = true},
    {.name = "QK-norm, biases, partial RoPE, BF16",
     .desc = {.hidden_size = 1000,
              .heads = 8,
              .kv_heads = 4,
              .head_dim = 8,
              .rotary_dim = 6,
              .rope_theta = 1e6,
              .qk_norm = VKA_QK_NORM_PER_HEAD,
              .norm_eps = 1e-5},
     .tp = 2,
     .place = "1,0",
     .weights = VKA_BF16,
     .cache = VKA_F16,
     .qkv_bias = true,
     .o_bias = true,
     .page_size = 64},
    {.name = "an idle device, no RoPE, head size 1",
     .desc = {.hidden_size = 1, .heads = 6, .kv_heads = 3, .head_dim = 1, .rope_type = VKA_ROPE_NONE, .scale = 2.5},
     .tp = 3,
     .place = "1*3"},
    {.name = "reproducible",
     .desc = {.hidden_size = 65, .heads = 9, .kv_heads = 3, .head_dim = 8},
     .tp = 3,
     .qkv_bias = true,
     .o_bias = true,
     .reproducible = true},
    {.name = "head size 64",
     .desc = {.hidden_size = 128, .heads = 4, .kv_heads = 2, .head_dim = 64},
     .tp = 2,
     .place = "0,1"},
};

static void every_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_case(harness_context(), &cases[i]);
}

/* Hidden states of every type on either side, rows apart from each other. */
static void hidden_states_of_every_type(void **state)
{
    static const vka_dtype types[3] = {VKA_F32, VKA_F16, VKA_BF16};

    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        const script_tensors tensors = {types[i / 3], types[i % 3], i % 4, (i + 1) % 3};
        layer_rig rig;
        rig_open(&rig, harness_context(), &cases[i % 2 == 0 ? 2 : 7]);
        run_script(&rig, &tensors);
        rig_close(&rig);
    }
}

/* So many keys that a decoding row is split over workgroups. */
static void long_decoding(void **state)
{
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &cases[3]);
    rig_close(&rig);
    layer_case setup = cases[3];
    setup.desc.window = 0;
    setup.pages = 200;
    rig_open(&rig, harness_context(), &setup);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    rig_extend(&rig, a, 700, NULL);
    rig_extend(&rig, b, 300, NULL);
    rig_extend(&rig, a, 1, NULL);
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{b, 2}, {a, 3}}, .count = 2});
    rig_close(&rig);
}

int run_stages_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(hidden_states_of_every_type),
        cmocka_unit_test(long_decoding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
