/* Tuning on a real device: what vka_tune() reports, keeps and writes; what contexts made later run; that results stay
 * within their bounds; and all the cases in which a file is not used or not written. Which variant is faster is not
 * asserted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/identity.h"
#include "exec/pipelines.h"
#include "layer/harness.h"

enum { HEADS = 4, KV_HEADS = 2, DIM = 16, HIDDEN = 64, ROWS = 8, KEYS = 32, MAX_RESULTS = 64 };

/* Every texel view fits under this, so that no device is left with one candidate only. */
static const char *const small_tensors = "max_range=1MiB";

static char folder[64], tuning_folder[80];
static uint32_t warnings;

static void count_warnings(void *user, int level, const char *message)
{
    (void)user;
    warnings += level == 1 && strstr(message, "tuning file") != NULL;
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/vka_tune_XXXXXX");
    snprintf(tuning_folder, sizeof(tuning_folder), "%s/tuning", mkdtemp(folder));
    warnings = 0;
    return 0;
}

/* A context on the first promised device, whose tuning files are in the test's folder. */
static vka_context_params tuned_params(const char *pretend)
{
    static char device[16];
    vka_context_params params = harness_params();

    snprintf(device, sizeof(device), "%u", harness_devices()->index[0]);
    params.devices = device;
    params.pretend = pretend;
    params.no_tuning_cache = 0;
    params.tuning_cache_dir = tuning_folder;
    params.log = count_warnings;
    return params;
}

static vka_context *open_with(const vka_context_params *params)
{
    vka_context *context = NULL;
    vka_error error;

    require(vka_context_create(&context, params, &error) == VKA_OK, "%s", error.message);
    return context;
}

static vka_context *open_tuned(const char *pretend)
{
    const vka_context_params params = tuned_params(pretend);

    return open_with(&params);
}

/* Fails when anything but the tuning file was left. */
static int remove_folder(void **state)
{
    vka_context *context = open_tuned(NULL);
    vka_error error;

    (void)state;
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
    rmdir(tuning_folder);
    return rmdir(folder);
}

typedef struct seen {
    vka_tune_result result[MAX_RESULTS];
    uint32_t count;
    uint32_t progress, total;
} seen;

static void take_result(void *user, const vka_tune_result *result)
{
    seen *all = user;

    assert_true(all->count < MAX_RESULTS);
    all->result[all->count++] = *result;
}

static void take_progress(void *user, uint32_t done, uint32_t total, const char *kernel, const char *shape)
{
    seen *all = user;

    assert_int_equal(done, all->progress++);
    assert_true(done < total && kernel[0] != '\0' && shape[0] != '\0');
    all->total = total;
}

static vka_tune_params small_shape(seen *all)
{
    return (vka_tune_params){.struct_size = sizeof(vka_tune_params),
                             .heads = HEADS,
                             .kv_heads = KV_HEADS,
                             .head_dim = DIM,
                             .hidden_size = HIDDEN,
                             .rows = ROWS,
                             .keys = KEYS,
                             .weight_dtype = VKA_F32,
                             .cache_dtype = VKA_F32,
                             .budget_ms = 1,
                             .progress = take_progress,
                             .progress_user = all};
}

static seen tune(vka_context *context)
{
    seen all = {.count = 0};
    const vka_tune_params params = small_shape(&all);
    vka_error error;

    require(vka_tune(context, &params, take_result, &all, &error) == VKA_OK, "%s", error.message);
    return all;
}

static uint32_t count_tuned(const vka_context *context)
{
    uint32_t count = UINT32_MAX;
    vka_error error;

    require(vka_tuned_list(context, 0, NULL, 0, &count, &error) == VKA_OK, "%s", error.message);
    return count;
}

/* What a projection of `rows` rows and attention of `rows` queries run. */
static const char *projection_variant(vka_context *context, uint32_t rows)
{
    static float w[HIDDEN * HIDDEN], x[ROWS * HIDDEN], y[ROWS * HIDDEN];
    const vka_tensor weights = {w, VKA_F32, HIDDEN, HIDDEN, 0};
    const char *variant = NULL;
    vka_matrix *matrix = NULL;
    vka_error error;

    require(vka_matrix_create(&matrix, context, 0, &weights, VKA_F32, &error) == VKA_OK, "%s", error.message);
    const vka_projection_params params = {.struct_size = sizeof(params),
                                          .rows = rows,
                                          .weights = matrix,
                                          .x = {x, VKA_F32, rows, HIDDEN, 0},
                                          .y = {y, VKA_F32, rows, HIDDEN, 0},
                                          .variant = &variant};
    require(vka_projection(context, &params, &error) == VKA_OK, "%s", error.message);
    vka_matrix_destroy(&matrix);
    return variant;
}

static const char *attention_variant(vka_context *context, uint32_t rows)
{
    static float q[ROWS * HEADS * DIM], kv[KEYS * KV_HEADS * DIM], o[ROWS * HEADS * DIM];
    const char *variant = NULL;
    const vka_attention_params params = {.struct_size = sizeof(params),
                                         .batch = 1,
                                         .heads = HEADS,
                                         .kv_heads = KV_HEADS,
                                         .head_dim = DIM,
                                         .q_len = rows,
                                         .kv_len = KEYS,
                                         .causal = VKA_CAUSAL_BOTTOM_RIGHT,
                                         .q = {.host = q},
                                         .k = {.host = kv},
                                         .v = {.host = kv},
                                         .o = {.host = o},
                                         .variant = &variant};
    vka_error error;

    require(vka_attention(context, &params, &error) == VKA_OK, "%s", error.message);
    return variant;
}

/* The variant that a context runs for a result's kernel and class. */
static const char *variant_in_use(vka_context *context, const vka_tune_result *result)
{
    bool projects = result->keys == 0;

    return projects ? projection_variant(context, result->rows) : attention_variant(context, result->rows);
}

static void nothing_is_written_unasked(void **state)
{
    vka_context *context = open_tuned(NULL);

    (void)state;
    assert_int_equal(count_tuned(context), 0);
    projection_variant(context, ROWS);
    attention_variant(context, 1);
    assert_true(strncmp(vka_tuning_file(context, 0), tuning_folder, strlen(tuning_folder)) == 0);
    vka_context_destroy(&context);
    assert_false(vka_is_directory(tuning_folder));
}

/* Each kernel and class has one default and one choice, and was measured unless there was nothing to choose. */
static void check_results(const seen *all)
{
    uint32_t chosen = 0, standard = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        const vka_tune_result *r = &all->result[i];
        uint32_t rivals = 0;

        for (uint32_t j = 0; j < all->count; j++)
            rivals += all->result[j].kernel == r->kernel && all->result[j].shape == r->shape;
        assert_int_equal(r->samples > 0, rivals > 1);
        assert_true(r->samples == 0 || (r->min_ms <= r->median_ms && r->median_ms <= r->max_ms && r->max_ms > 0));
        assert_string_equal(r->dtype, "F32");
        chosen += r->chosen;
        standard += r->standard;
    }
    assert_int_equal(all->total, 5); /* gemv for 1 and 4 rows, gemm for 8, prefill, decode */
    assert_int_equal(all->progress, 5);
    assert_int_equal(chosen, 5);
    assert_int_equal(standard, 5);
}

static void what_is_measured_is_kept(void **state)
{
    vka_context *context = open_tuned(NULL), *later;

    (void)state;
    const seen all = tune(context);
    check_results(&all);
    assert_true(vka_is_file(vka_tuning_file(context, 0)));
    later = open_tuned(NULL);
    assert_int_equal(count_tuned(later), 5);
    for (uint32_t i = 0; i < all.count; i++) {
        if (!all.result[i].chosen)
            continue;
        assert_string_equal(variant_in_use(context, &all.result[i]), all.result[i].variant);
        assert_string_equal(variant_in_use(later, &all.result[i]), all.result[i].variant);
    }
    assert_int_equal(warnings, 0);
    vka_context_destroy(&later);
    vka_context_destroy(&context);
}

/* ---- a file with choices that nobody would run untuned ---- */

static const vka_caps *device_caps(const vka_context *context)
{
    return gpu_device_caps(context->devices[0].gpu);
}

static const vka_variant *standard_row(const vka_context *context, vka_kernel kernel)
{
    const vka_variant *row = NULL;

    assert_int_equal(vka_variant_select(kernel, VKA_F32, device_caps(context), NULL, &row, NULL), VKA_OK);
    return row;
}

static const vka_variant *other_row(const vka_context *context, vka_kernel kernel)
{
    const vka_variant *standard = standard_row(context, kernel);

    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (row != standard && vka_variant_runs(row, kernel, VKA_F32, device_caps(context)))
            return row;
    }
    fail_msg("only one row of kernel %s can run", vka_kernel_name(kernel));
    return NULL;
}

/* Writes a file in which every kernel and class of type F32 has another row than the standard one. */
static void write_other_choices(const vka_context *context)
{
    char key[VKA_IDENTITY_BYTES], text[TUNING_FILE_BYTES];
    tuning_table table = {0};
    vka_error error;

    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++)
        for (int i = 0; i < TUNING_CLASSES; i++)
            if (tuning_has_class((vka_kernel)kernel, (tuning_class)i))
                table.choice[kernel][VKA_F32][i] = other_row(context, (vka_kernel)kernel);
    vka_device_identity(vka_context_device(context, 0), key);
    const vka_piece piece = {text, tuning_write(&table, key, text)};
    require(vka_make_directories(tuning_folder, &error) == VKA_OK, "%s", error.message);
    require(vka_write_file(vka_tuning_file(context, 0), &piece, 1, &error) == VKA_OK, "%s", error.message);
}

/* A context that runs those choices. */
static vka_context *open_other_choices(void)
{
    vka_context *context = open_tuned(small_tensors);

    write_other_choices(context);
    vka_context_destroy(&context);
    return open_tuned(small_tensors);
}

static const layer_case small_layer = {
    .name = "tuned",
    .desc = {.hidden_size = HIDDEN, .heads = HEADS, .kv_heads = KV_HEADS, .head_dim = DIM},
    .pages = 8};

/* Every stage of prefill and decoding against float64. */
static void tuned_variants_stay_within_bounds(void **state)
{
    vka_context *context = open_other_choices();
    layer_rig rig;

    (void)state;
    assert_string_equal(projection_variant(context, 1), other_row(context, VKA_KERNEL_GEMV)->name);
    assert_string_equal(projection_variant(context, ROWS), other_row(context, VKA_KERNEL_GEMM)->name);
    assert_string_equal(attention_variant(context, 1), other_row(context, VKA_KERNEL_DECODE)->name);
    assert_string_equal(attention_variant(context, ROWS), other_row(context, VKA_KERNEL_PREFILL)->name);
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
    vka_context *context = open_other_choices();
    const vka_variant *standard = standard_row(context, VKA_KERNEL_PREFILL);
    const vka_variant *other = other_row(context, VKA_KERNEL_PREFILL);
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
    vka_context *context = open_other_choices();
    const vka_variant *standard = standard_row(context, VKA_KERNEL_DECODE);
    vka_context_params params = tuned_params(small_tensors);

    (void)state;
    vka_context_destroy(&context);
    params.variants = standard->name;
    context = open_with(&params);
    assert_string_equal(attention_variant(context, 1), standard->name);
    assert_string_equal(projection_variant(context, 1), other_row(context, VKA_KERNEL_GEMV)->name);
    vka_context_destroy(&context);
}

/* The same set of pipelines, and the same bits, as without tuning. */
static void reproducible_layers_are_not_tuned(void **state)
{
    static float tuned_result[40 * HIDDEN], plain_result[40 * HIDDEN];
    vka_context *tuned = open_other_choices(), *plain;
    vka_context_params params = tuned_params(small_tensors);
    pipeline_shape shape = {.kernels = PIPELINES_LAYER,
                            .weight_dtype = VKA_F32,
                            .cache_dtype = VKA_F32,
                            .qk_pad = DIM,
                            .v_pad = DIM,
                            .reproducible = true};
    layer_case setup = small_layer;
    pipeline_set set;
    layer_rig rig;
    vka_error error;

    (void)state;
    require(pipelines_get(tuned, &tuned->devices[0], &shape, &set, &error) == VKA_OK, "%s", error.message);
    assert_ptr_equal(set.projection[TUNING_ROWS_1].variant, standard_row(tuned, VKA_KERNEL_GEMV));
    assert_ptr_equal(set.projection[TUNING_ROWS_32].variant, standard_row(tuned, VKA_KERNEL_GEMM));
    assert_ptr_equal(set.kernel[VKA_KERNEL_PREFILL].variant, standard_row(tuned, VKA_KERNEL_PREFILL));
    assert_ptr_equal(set.kernel[VKA_KERNEL_DECODE].variant, standard_row(tuned, VKA_KERNEL_DECODE));
    shape.reproducible = false;
    require(pipelines_get(tuned, &tuned->devices[0], &shape, &set, &error) == VKA_OK, "%s", error.message);
    assert_ptr_equal(set.kernel[VKA_KERNEL_PREFILL].variant, other_row(tuned, VKA_KERNEL_PREFILL));

    params.no_tuning_cache = 1;
    plain = open_with(&params);
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

/* ---- files that are not used, or not written ---- */

static void a_corrupt_file_is_passed_over(void **state)
{
    vka_context *context = open_other_choices();
    vka_mapping file = {0};
    char text[TUNING_FILE_BYTES];
    vka_error error;

    (void)state;
    assert_true(count_tuned(context) > 0);
    require(vka_map_file(&file, vka_tuning_file(context, 0), &error) == VKA_OK, "%s", error.message);
    memcpy(text, file.data, file.size);
    text[file.size / 2] ^= 1;
    const vka_piece piece = {text, file.size};
    require(vka_write_file(vka_tuning_file(context, 0), &piece, 1, &error) == VKA_OK, "%s", error.message);
    vka_unmap_file(&file);
    vka_context_destroy(&context);
    assert_int_equal(warnings, 0);
    context = open_tuned(small_tensors);
    assert_int_equal(warnings, 1);
    assert_int_equal(count_tuned(context), 0);
    assert_string_equal(attention_variant(context, 1), standard_row(context, VKA_KERNEL_DECODE)->name);
    vka_context_destroy(&context);
}

static void without_a_cache_nothing_is_read_or_written(void **state)
{
    vka_context *context = open_other_choices();
    vka_context_params params = tuned_params(NULL);
    vka_error error;

    (void)state;
    vka_context_destroy(&context);
    params.no_tuning_cache = 1;
    context = open_with(&params);
    assert_int_equal(count_tuned(context), 0);
    assert_null(vka_tuning_file(context, 0));
    tune(context);
    assert_int_equal(count_tuned(context), 5); /* for itself */
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    assert_int_equal(count_tuned(context), 0);
    vka_context_destroy(&context);
    context = open_tuned(NULL);
    assert_true(count_tuned(context) > 5); /* the file is as it was */
    vka_context_destroy(&context);
}

static void pretending_contexts_write_nothing(void **state)
{
    vka_context *context = open_tuned("floor");

    (void)state;
    const seen all = tune(context);
    check_results(&all);
    assert_int_equal(count_tuned(context), 5);
    vka_context_destroy(&context);
    assert_false(vka_is_directory(tuning_folder));
}

static void forgetting_removes_the_file(void **state)
{
    vka_context *context = open_other_choices();
    vka_error error;

    (void)state;
    vka_context_destroy(&context);
    context = open_tuned(NULL);
    assert_true(count_tuned(context) > 0);
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    assert_int_equal(count_tuned(context), 0);
    assert_false(vka_is_file(vka_tuning_file(context, 0)));
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
}

static void refuse(vka_context *context, vka_tune_params params, vka_status status, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_tune(context, &params, NULL, NULL, &error), status);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
    assert_int_equal(count_tuned(context), 0);
}

static void failures_change_nothing(void **state)
{
    static const vka_piece piece = {"x", 1};
    vka_context *context = open_tuned(NULL);
    vka_tune_params good = small_shape(NULL), bad;
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
    require(vka_write_file(tuning_folder, &piece, 1, &error) == VKA_OK, "%s", error.message);
    refuse(context, good, VKA_ERR_IO, "tuning");
    require(vka_remove_file(tuning_folder, &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
}

#define TUNE_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TUNE_TEST(nothing_is_written_unasked),        TUNE_TEST(what_is_measured_is_kept),
        TUNE_TEST(tuned_variants_stay_within_bounds), TUNE_TEST(explanations_mention_tuning),
        TUNE_TEST(forced_names_come_first),           TUNE_TEST(reproducible_layers_are_not_tuned),
        TUNE_TEST(a_corrupt_file_is_passed_over),     TUNE_TEST(without_a_cache_nothing_is_read_or_written),
        TUNE_TEST(pretending_contexts_write_nothing), TUNE_TEST(forgetting_removes_the_file),
        TUNE_TEST(failures_change_nothing),
    };
    int failed = cmocka_run_group_tests_name("tune", tests, NULL, NULL);

    harness_close();
    return failed;
}
