/* Many layers: every tp from 1 to 8 of many head layouts with random placements and options, and a list of head sizes.
 * Every stage of every call is checked. */
#include <stdio.h>

#include "layer/script.h"
#include "support/random.h"

/* ---- head layouts ---- */

static const uint32_t layouts[][2] = {{8, 2},  {16, 1},  {24, 8}, {12, 2}, {14, 2}, {28, 4}, {36, 4}, {15, 5},
                                      {16, 8}, {12, 12}, {5, 1},  {10, 1}, {11, 1}, {12, 1}, {24, 3}, {9, 9}};

enum { MOST_TP = 8 };

/* Any device for any rank; a device may be idle. */
static void random_place(char *place, uint32_t tp, uint64_t *random)
{
    for (uint32_t t = 0; t < tp; t++)
        place += sprintf(place, "%s%u", t > 0 ? "," : "", random_below(random, 2));
}

static const uint32_t hidden_sizes[] = {1, 7, 65, 200}, page_sizes[] = {1, 7, 16, 64};

/* One kind of kernels only: head sizes up to 8, all F32. */
static layer_case random_case(uint32_t heads, uint32_t kv_heads, uint64_t *random)
{
    layer_case made = {.name = "random",
                       .desc = {.hidden_size = hidden_sizes[random_below(random, 4)],
                                .heads = heads,
                                .kv_heads = kv_heads,
                                .head_dim = 1 + random_below(random, 8),
                                .v_head_dim = 1 + random_below(random, 8),
                                .window = random_below(random, 2) * (1 + random_below(random, 20)),
                                .scale = random_below(random, 2) * 0.9,
                                .qk_norm = random_below(random, 2) ? VKA_QK_NORM_PER_HEAD : VKA_QK_NORM_NONE},
                       .page_size = page_sizes[random_below(random, 4)],
                       .pages = 80,
                       .qkv_bias = random_below(random, 2) != 0,
                       .o_bias = random_below(random, 2) != 0,
                       .reproducible = random_below(random, 3) == 0};
    uint32_t pairs = made.desc.head_dim / 2;

    made.desc.rotary_dim = 2 * (pairs > 0 ? 1 + random_below(random, pairs) : 0);
    made.desc.rope_type = pairs == 0 || random_below(random, 4) == 0 ? VKA_ROPE_NONE : VKA_ROPE_DEFAULT;
    return made;
}

static void run_random(layer_case *setup, uint32_t tp, uint64_t *random)
{
    const script_tensors tensors = {(vka_dtype)(VKA_F32 + random_below(random, 3)),
                                    (vka_dtype)(VKA_F32 + random_below(random, 3)), random_below(random, 3),
                                    random_below(random, 3)};
    char place[32], name[96];
    layer_rig rig;

    random_place(place, tp, random);
    snprintf(name, sizeof(name), "%u/%u heads of %u and %u, hidden %u, on %s", setup->desc.heads, setup->desc.kv_heads,
             setup->desc.head_dim, setup->desc.v_head_dim, setup->desc.hidden_size, place);
    setup->name = name;
    setup->tp = tp;
    setup->place = place;
    rig_open(&rig, harness_context(), setup);
    run_script(&rig, &tensors);
    rig_close(&rig);
}

static void every_tp_of_many_layouts(void **state)
{
    uint64_t random = 1789;
    uint32_t runs = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const vka_layer_desc desc = {.struct_size = sizeof(desc),
                                     .hidden_size = 8,
                                     .heads = layouts[i][0],
                                     .kv_heads = layouts[i][1],
                                     .head_dim = 8};
        vka_layer_desc resolved = desc;
        vka_verdict verdict;
        assert_int_equal(vka_layer_desc_resolve(&resolved, NULL), VKA_OK);
        assert_int_equal(vka_layout_judge(&resolved, (vka_grid){0}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
        for (uint32_t v = 0; v < verdict.valid_replicate_count && verdict.valid_replicate[v] <= MOST_TP; v++) {
            layer_case setup = random_case(layouts[i][0], layouts[i][1], &random);
            run_random(&setup, verdict.valid_replicate[v], &random);
            runs++;
        }
    }
    assert_true(runs > 40);
}

/* ---- head sizes and types ---- */

/* Two devices only where both are there; each combination is compiled for every device that runs it. */
static const layer_case sizes[] = {
    {.name = "64", .desc = {.head_dim = 64}, .weights = VKA_F16},
    {.name = "80, F16 cache", .desc = {.head_dim = 80}, .cache = VKA_F16},
    {.name = "96", .desc = {.head_dim = 96, .rotary_dim = 24}},
    {.name = "128, F16 cache", .desc = {.head_dim = 128}, .weights = VKA_BF16, .cache = VKA_F16},
    {.name = "192 and 128", .desc = {.head_dim = 192, .v_head_dim = 128}},
    {.name = "128 and 192", .desc = {.head_dim = 128, .v_head_dim = 192}},
    {.name = "576 and 512", .desc = {.head_dim = 576, .v_head_dim = 512, .rotary_dim = 64}},
    {.name = "513 and 9, F16 cache", .desc = {.head_dim = 513, .v_head_dim = 9, .rotary_dim = 2}, .cache = VKA_F16},
};

static void run_size(const layer_case *size)
{
    layer_case setup = *size;

    setup.desc.hidden_size = 72;
    setup.desc.heads = 6;
    setup.desc.kv_heads = 2;
    setup.desc.qk_norm = VKA_QK_NORM_PER_HEAD;
    setup.tp = 2;
    setup.place = harness_devices()->count > 1 ? "1,0" : "0*2";
    setup.qkv_bias = true;
    run_case(harness_context(), &setup);
}

static void every_head_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        run_size(&sizes[i]);
}

/* A wide layer in the types of real ones; weights are stored in another type than they come in. */
static void wide_layers(void **state)
{
    static const layer_case wide[] = {
        {.name = "hidden 1000, F16 as BF16",
         .desc = {.hidden_size = 1000, .heads = 8, .kv_heads = 2, .head_dim = 8},
         .tp = 4,
         .place = "0,1,0,1",
         .weights = VKA_F16,
         .stored = VKA_BF16},
        {.name = "hidden 1000, F32 as F16",
         .desc = {.hidden_size = 1000, .heads = 8, .kv_heads = 2, .head_dim = 8},
         .tp = 8,
         .place = "1*4,0*4",
         .stored = VKA_F16},
        {.name = "hidden 1000, BF16 as F32",
         .desc = {.hidden_size = 1000, .heads = 8, .kv_heads = 2, .head_dim = 8},
         .tp = 2,
         .place = "0,1",
         .weights = VKA_BF16,
         .stored = VKA_F32},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        run_case(harness_context(), &wide[i]);
}

/* More columns of the output projection than 65,535 workgroups of the narrowest kernel compute, so panels are cut. */
static void more_columns_than_workgroups(void **state)
{
    static const layer_case wide = {.name = "hidden 2,200,000",
                                    .desc = {.hidden_size = 2200000, .heads = 1, .kv_heads = 1, .head_dim = 2},
                                    .place = "0",
                                    .weights = VKA_F16};
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &wide);
    uint32_t sequence = rig_sequence(&rig);
    rig_extend(&rig, sequence, 1, NULL);
    rig_extend(&rig, sequence, 9, NULL);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tp_of_many_layouts),
        cmocka_unit_test(every_head_size),
        cmocka_unit_test(wide_layers),
        cmocka_unit_test(more_columns_than_workgroups),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    harness_close();
    return failed;
}
