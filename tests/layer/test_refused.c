/* A layout is refused before anything is allocated: the loader counts no call. */
#include "layer/calls_tests.h"

#include <string.h>

#include "layer/calls.h"

typedef struct refused {
    uint32_t heads, kv_heads, tp;
    vka_kv_policy policy;
    const char *valid; /* part of the message */
} refused;

static const refused layouts[] = {
    {14, 2, 7, VKA_KV_REPLICATE, "1, 2"},        {24, 8, 3, VKA_KV_REPLICATE, "1, 2, 4, 8, 24"},
    {24, 8, 6, VKA_KV_REPLICATE, "1, 2, 4, 8"},  {24, 8, 12, VKA_KV_REPLICATE, "1, 2, 4, 8"},
    {15, 5, 3, VKA_KV_REPLICATE, "1, 5"},        {36, 4, 3, VKA_KV_REPLICATE, "1, 2, 4, 12"},
    {36, 4, 6, VKA_KV_REPLICATE, "12"},          {40, 8, 5, VKA_KV_REPLICATE, "1, 2, 4, 8"},
    {40, 8, 20, VKA_KV_REPLICATE, "1, 2, 4, 8"}, {3, 3, 8, VKA_KV_REPLICATE, "1, 3"},
    {12, 8, 1, VKA_KV_REPLICATE, "12"},          {8, 2, 4, VKA_KV_STRICT, "1, 2"},
};

static vka_layer_desc desc_of(const refused *r)
{
    return (vka_layer_desc){.struct_size = sizeof(vka_layer_desc),
                            .hidden_size = 64,
                            .heads = r->heads,
                            .kv_heads = r->kv_heads,
                            .head_dim = 8};
}

/* Layout is arithmetic: with no context at all. */
static void arithmetic_calls_nothing(void **state)
{
    static vka_rank ranks[VKA_MAX_RANKS];
    vka_verdict verdict;
    vka_error error;

    (void)state;
    (void)calls_params();
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        vka_layer_desc desc = desc_of(&layouts[i]);
        vka_grid grid = {.tp = layouts[i].tp};
        assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
        assert_int_equal(vka_layout_judge(&desc, grid, layouts[i].policy, &verdict, NULL), VKA_OK);
        assert_int_not_equal(verdict.rule, VKA_RULE_NONE);
        assert_int_equal(vka_partition(&desc, grid, layouts[i].policy, ranks, VKA_MAX_RANKS, &error), VKA_ERR_LAYOUT);
        assert_non_null(strstr(error.message, layouts[i].valid));
    }
    assert_int_equal(shim_total(), 0);
}

/* Neither does the creation of a layer, in a context that is there already. */
static void a_layer_is_refused_first(void **state)
{
    vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    const vka_layer_weights no_weights = {.struct_size = sizeof(no_weights)}; /* not even looked at */
    uint32_t before = shim_total();

    (void)state;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        vka_layer_desc desc = desc_of(&layouts[i]);
        vka_layer *layer = NULL;
        vka_error error;
        const vka_layer_params layer_params = {.struct_size = sizeof(layer_params),
                                               .desc = &desc,
                                               .weights = &no_weights,
                                               .grid = {.tp = layouts[i].tp},
                                               .kv_policy = layouts[i].policy};
        assert_int_equal(vka_layer_create(&layer, context, &layer_params, &error), VKA_ERR_LAYOUT);
        assert_non_null(strstr(error.message, layouts[i].valid));
        assert_null(layer);
    }
    assert_int_equal(shim_total(), before);
    calls_close(&context);
}

/* A layer whose tensors pass a limit, or whose weights have other shapes: refused without a call too. */
static void tensors_are_checked_first(void **state)
{
    vka_context_params params = calls_params();
    layer_case wide = {
        .name = "wide",
        .desc = {.hidden_size = 300000, .heads = 2, .kv_heads = 1, .head_dim = 1, .rope_type = VKA_ROPE_NONE}};
    layer_rig rig;
    vka_error error;

    (void)state;
    params.pretend = "max_alloc=1MiB";
    vka_context *context = calls_context(&params);
    uint32_t before = shim_total();
    assert_int_equal(rig_try_open(&rig, context, &wide, &error), VKA_ERR_LIMIT);
    assert_non_null(strstr(
        error.message, "a group of eight rows of the QKV weights needs 9600000 bytes in one piece, device 0 allows"));
    assert_int_equal(shim_total(), before);
    calls_close(&context);
}

int run_refused_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_calls_nothing),
        cmocka_unit_test(a_layer_is_refused_first),
        cmocka_unit_test(tensors_are_checked_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
