/* When a tuning file is not used, not written, or removed. */
#include "layer/tune_tests.h"

#include <string.h>

#include "base/files.h"
#include "layer/tune_scene.h"

static void nothing_is_written_unasked(void **state)
{
    vka_context *context = tune_open(NULL);

    (void)state;
    assert_int_equal(tune_count(context), 0);
    tune_projection_variant(context, TUNE_ROWS);
    tune_attention_variant(context, 1);
    assert_true(strncmp(vka_tuning_file(context, 0), tune_folder(), strlen(tune_folder())) == 0);
    vka_context_destroy(&context);
    assert_false(vka_is_directory(tune_folder()));
}

static void a_corrupt_file_is_passed_over(void **state)
{
    vka_context *context = tune_open_other_choices();
    vka_mapping file = {0};
    char text[TUNING_FILE_BYTES];
    vka_error error;

    (void)state;
    assert_true(tune_count(context) > 0);
    require(vka_map_file(&file, vka_tuning_file(context, 0), &error) == VKA_OK, "%s", error.message);
    memcpy(text, file.data, file.size);
    text[file.size / 2] ^= 1;
    const vka_piece piece = {text, file.size};
    require(vka_write_file(vka_tuning_file(context, 0), &piece, 1, &error) == VKA_OK, "%s", error.message);
    vka_unmap_file(&file);
    vka_context_destroy(&context);
    assert_int_equal(tune_warnings(), 0);
    context = tune_open(tune_small_tensors);
    assert_int_equal(tune_warnings(), 1);
    assert_int_equal(tune_count(context), 0);
    assert_string_equal(tune_attention_variant(context, 1), tune_standard_row(context, VKA_KERNEL_DECODE)->name);
    vka_context_destroy(&context);
}

static void without_a_cache_nothing_is_read_or_written(void **state)
{
    vka_context *context = tune_open_other_choices();
    vka_context_params params = tune_context_params(NULL);
    vka_error error;

    (void)state;
    vka_context_destroy(&context);
    params.no_tuning_cache = 1;
    context = tune_open_with(&params);
    assert_int_equal(tune_count(context), 0);
    assert_null(vka_tuning_file(context, 0));
    tune_all(context);
    assert_int_equal(tune_count(context), 5); /* for itself */
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    assert_int_equal(tune_count(context), 0);
    vka_context_destroy(&context);
    context = tune_open(NULL);
    assert_true(tune_count(context) > 5); /* the file is as it was */
    vka_context_destroy(&context);
}

static void pretending_contexts_write_nothing(void **state)
{
    vka_context *context = tune_open("floor");

    (void)state;
    const tune_seen all = tune_all(context);
    tune_check_results(&all);
    assert_int_equal(tune_count(context), 5);
    vka_context_destroy(&context);
    assert_false(vka_is_directory(tune_folder()));
}

static void forgetting_removes_the_file(void **state)
{
    vka_context *context = tune_open_other_choices();
    vka_error error;

    (void)state;
    vka_context_destroy(&context);
    context = tune_open(NULL);
    assert_true(tune_count(context) > 0);
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    assert_int_equal(tune_count(context), 0);
    assert_false(vka_is_file(vka_tuning_file(context, 0)));
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
}

int run_tune_files_tests(void)
{
    const struct CMUnitTest tests[] = {
        TUNE_TEST(nothing_is_written_unasked),
        TUNE_TEST(a_corrupt_file_is_passed_over),
        TUNE_TEST(without_a_cache_nothing_is_read_or_written),
        TUNE_TEST(pretending_contexts_write_nothing),
        TUNE_TEST(forgetting_removes_the_file),
    };

    return cmocka_run_group_tests_name("tune, files", tests, NULL, NULL);
}
