/* What vka_tune() measures, reports and keeps; and that it changes nothing when it fails. Which variant is faster is
 * not asserted. */
#include "layer/tune_tests.h"

#include <string.h>

#include "base/files.h"
#include "layer/tune_scene.h"

/* The variant that a context runs for a result's kernel and class. */
static const char *variant_in_use(vka_context *context, const vka_tune_result *result)
{
    bool projects = result->keys == 0;

    return projects ? tune_projection_variant(context, result->rows) : tune_attention_variant(context, result->rows);
}

static void what_is_measured_is_kept(void **state)
{
    vka_context *context = tune_open(NULL), *later;

    (void)state;
    const tune_seen all = tune_all(context);
    tune_check_results(&all);
    assert_true(vka_is_file(vka_tuning_file(context, 0)));
    later = tune_open(NULL);
    assert_int_equal(tune_count(later), 5);
    for (uint32_t i = 0; i < all.count; i++) {
        if (!all.result[i].chosen)
            continue;
        assert_string_equal(variant_in_use(context, &all.result[i]), all.result[i].variant);
        assert_string_equal(variant_in_use(later, &all.result[i]), all.result[i].variant);
    }
    assert_int_equal(tune_warnings(), 0);
    vka_context_destroy(&later);
    vka_context_destroy(&context);
}

static void refuse(vka_context *context, vka_tune_params params, vka_status status, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_tune(context, &params, NULL, NULL, &error), status);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
    assert_int_equal(tune_count(context), 0);
}

static void failures_change_nothing(void **state)
{
    static const vka_piece piece = {"x", 1};
    vka_context *context = tune_open(NULL);
    vka_tune_params good = tune_small_shape(NULL), bad;
    vka_error error;

    (void)state;
    good.progress = NULL;
    bad = good;
    bad.device = 1;
    refuse(context, bad, VKA_ERR_ARGUMENT, "device is 1, the context has 1");
    bad = good;
    bad.head_dim = 0;
    refuse(context, bad, VKA_ERR_ARGUMENT, "head_dim is 0");
    bad = good;
    bad.rows = 1u << 21;
    refuse(context, bad, VKA_ERR_ARGUMENT, "rows is 2097152");
    bad = good;
    bad.weight_dtype = (vka_dtype)9;
    refuse(context, bad, VKA_ERR_ARGUMENT, "weight_dtype is 9");
    bad = good;
    bad.cache_dtype = VKA_BF16;
    refuse(context, bad, VKA_ERR_UNSUPPORTED, "BF16");
    assert_int_equal(vka_tune(NULL, &good, NULL, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_tune(context, NULL, NULL, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_tune_forget(context, 7, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_tuned_list(context, 0, NULL, 0, NULL, &error), VKA_ERR_ARGUMENT);
    /* where the folder should be is a file */
    require(vka_write_file(tune_folder(), &piece, 1, &error) == VKA_OK, "%s", error.message);
    refuse(context, good, VKA_ERR_IO, "tuning");
    require(vka_remove_file(tune_folder(), &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
}

int run_tune_results_tests(void)
{
    const struct CMUnitTest tests[] = {
        TUNE_TEST(what_is_measured_is_kept),
        TUNE_TEST(failures_change_nothing),
    };

    return cmocka_run_group_tests_name("tune, results", tests, NULL, NULL);
}
