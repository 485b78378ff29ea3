/* What contexts run that read a file with unusual choices: those, within the bounds of every stage; but not when a name
 * is forced, and not in reproducible layers. */
#include "layer/tune_tests.h"

#include <string.h>

#include "layer/tune_scene.h"

static const layer_case small_layer = {
    .name = "tuned",
    .desc = {.hidden_size = TUNE_HIDDEN, .heads = TUNE_HEADS, .kv_heads = TUNE_KV_HEADS, .head_dim = TUNE_DIM},
    .pages = 8};

/* Every stage of prefill and decoding against float64. */
static void tuned_variants_stay_within_bounds(void **state)
{
    vka_context *context = tune_open_other_choices();
    layer_rig rig;

    (void)state;
    assert_string_equal(tune_projection_variant(context, 1), tune_other_row(context, VKA_KERNEL_GEMV)->name);
    assert_string_equal(tune_projection_variant(context, TUNE_ROWS), tune_other_row(context, VKA_KERNEL_GEMM)->name);
    assert_string_equal(tune_attention_variant(context, 1), tune_other_row(context, VKA_KERNEL_DECODE)->name);
    assert_string_equal(tune_attention_variant(context, TUNE_ROWS), tune_other_row(context, VKA_KERNEL_PREFILL)->name);
    rig_open(&rig, context, &small_layer);
    uint32_t sequence = rig_sequence(&rig);
    rig_extend(&rig, sequence, 40, NULL);
    rig_extend(&rig, sequence, 1, NULL);
    rig_extend(&rig, sequence, 3, NULL);
    rig_close(&rig);
    vka_context_destroy(&context);
}

static void explanations_mention_tuning(void **state)
{
    vka_context *context = tune_open_other_choices();
    const vka_variant *standard = tune_standard_row(context, VKA_KERNEL_PREFILL);
    const vka_variant *other = tune_other_row(context, VKA_KERNEL_PREFILL);
    vka_error error;

    (void)state;
    for (uint32_t i = 0; i < vka_variant_count(); i++) {
        vka_variant_info info;
        require(vka_context_variant(context, 0, i, &info, &error) == VKA_OK, "%s", error.message);
        if (strcmp(info.name, standard->name) == 0)
            assert_true(!info.selected && strncmp(info.reason, "tuned: ", 7) == 0 && strstr(info.reason, other->name));
        if (strcmp(info.name, other->name) == 0)
            assert_true(info.selected && strncmp(info.reason, "tuned: faster than ", 19) == 0);
    }
    vka_context_destroy(&context);
}

static void forced_names_come_first(void **state)
{
    vka_context *context = tune_open_other_choices();
    const vka_variant *standard = tune_standard_row(context, VKA_KERNEL_DECODE);
    vka_context_params params = tune_context_params(tune_small_tensors);

    (void)state;
    vka_context_destroy(&context);
    params.variants = standard->name;
    context = tune_open_with(&params);
    assert_string_equal(tune_attention_variant(context, 1), standard->name);
    assert_string_equal(tune_projection_variant(context, 1), tune_other_row(context, VKA_KERNEL_GEMV)->name);
    vka_context_destroy(&context);
}

/* The same set of pipelines, and the same bits, as without tuning. */
static void reproducible_layers_are_not_tuned(void **state)
{
    static float tuned_result[40 * TUNE_HIDDEN], plain_result[40 * TUNE_HIDDEN];
    vka_context *tuned = tune_open_other_choices(), *plain;
    vka_context_params params = tune_context_params(tune_small_tensors);
    pipeline_shape shape = {.kernels = PIPELINES_LAYER,
                            .weight_dtype = VKA_F32,
                            .cache_dtype = VKA_F32,
                            .attention = {.qk_pad = TUNE_DIM, .v_pad = TUNE_DIM},
                            .reproducible = true};
    layer_case setup = small_layer;
    pipeline_set set;
    layer_rig rig;
    vka_error error;

    (void)state;
    require(pipelines_get(tuned, &tuned->devices[0], &shape, &set, &error) == VKA_OK, "%s", error.message);
    assert_ptr_equal(set.projection[TUNING_ROWS_1].variant, tune_standard_row(tuned, VKA_KERNEL_GEMV));
    assert_ptr_equal(set.projection[TUNING_ROWS_32].variant, tune_standard_row(tuned, VKA_KERNEL_GEMM));
    assert_ptr_equal(set.kernel[VKA_KERNEL_PREFILL].variant, tune_standard_row(tuned, VKA_KERNEL_PREFILL));
    assert_ptr_equal(set.kernel[VKA_KERNEL_DECODE].variant, tune_standard_row(tuned, VKA_KERNEL_DECODE));
    shape.reproducible = false;
    require(pipelines_get(tuned, &tuned->devices[0], &shape, &set, &error) == VKA_OK, "%s", error.message);
    assert_ptr_equal(set.kernel[VKA_KERNEL_PREFILL].variant, tune_other_row(tuned, VKA_KERNEL_PREFILL));

    params.no_tuning_cache = 1;
    plain = tune_open_with(&params);
    setup.reproducible = true;
    rig_open(&rig, tuned, &setup);
    rig_extend(&rig, rig_sequence(&rig), 40, tuned_result);
    rig_close(&rig);
    rig_open(&rig, plain, &setup);
    rig_extend(&rig, rig_sequence(&rig), 40, plain_result);
    rig_close(&rig);
    assert_memory_equal(tuned_result, plain_result, sizeof(plain_result));
    vka_context_destroy(&plain);
    vka_context_destroy(&tuned);
}

int run_tune_choices_tests(void)
{
    const struct CMUnitTest tests[] = {
        TUNE_TEST(tuned_variants_stay_within_bounds),
        TUNE_TEST(explanations_mention_tuning),
        TUNE_TEST(forced_names_come_first),
        TUNE_TEST(reproducible_layers_are_not_tuned),
    };

    return cmocka_run_group_tests_name("tune, choices", tests, NULL, NULL);
}
