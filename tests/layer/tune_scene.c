/* See tune_scene.h. */
#include "layer/tune_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/identity.h"

const char *const tune_small_tensors = "max_range=1MiB";

static char folder[64], tuning_folder[80];
static uint32_t warnings;

static void count_warnings(void *user, int level, const char *message)
{
    (void)user;
    warnings += level == 1 && strstr(message, "tuning file") != NULL;
}

int tune_make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/vka_tune_XXXXXX");
    snprintf(tuning_folder, sizeof(tuning_folder), "%s/tuning", mkdtemp(folder));
    warnings = 0;
    return 0;
}

vka_context_params tune_context_params(const char *pretend)
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

vka_context *tune_open_with(const vka_context_params *params)
{
    vka_context *context = NULL;
    vka_error error;

    require(vka_context_create(&context, params, &error) == VKA_OK, "%s", error.message);
    return context;
}

vka_context *tune_open(const char *pretend)
{
    const vka_context_params params = tune_context_params(pretend);

    return tune_open_with(&params);
}

const char *tune_folder(void)
{
    return tuning_folder;
}

uint32_t tune_warnings(void)
{
    return warnings;
}

int tune_remove_folder(void **state)
{
    vka_context *context = tune_open(NULL);
    vka_error error;

    (void)state;
    require(vka_tune_forget(context, 0, &error) == VKA_OK, "%s", error.message);
    vka_context_destroy(&context);
    rmdir(tuning_folder);
    return rmdir(folder);
}

static void take_result(void *user, const vka_tune_result *result)
{
    tune_seen *all = user;

    assert_true(all->count < TUNE_MAX_RESULTS);
    all->result[all->count++] = *result;
}

static void take_progress(void *user, uint32_t done, uint32_t total, const char *kernel, const char *shape)
{
    tune_seen *all = user;

    assert_int_equal(done, all->progress++);
    assert_true(done < total && kernel[0] != '\0' && shape[0] != '\0');
    all->total = total;
}

vka_tune_params tune_small_shape(tune_seen *all)
{
    return (vka_tune_params){.struct_size = sizeof(vka_tune_params),
                             .heads = TUNE_HEADS,
                             .kv_heads = TUNE_KV_HEADS,
                             .head_dim = TUNE_DIM,
                             .hidden_size = TUNE_HIDDEN,
                             .rows = TUNE_ROWS,
                             .keys = TUNE_KEYS,
                             .weight_dtype = VKA_F32,
                             .cache_dtype = VKA_F32,
                             .budget_ms = 1,
                             .progress = take_progress,
                             .progress_user = all};
}

tune_seen tune_all(vka_context *context)
{
    tune_seen all = {.count = 0};
    const vka_tune_params params = tune_small_shape(&all);
    vka_error error;

    require(vka_tune(context, &params, take_result, &all, &error) == VKA_OK, "%s", error.message);
    return all;
}

uint32_t tune_count(const vka_context *context)
{
    uint32_t count = UINT32_MAX;
    vka_error error;

    require(vka_tuned_list(context, 0, NULL, 0, &count, &error) == VKA_OK, "%s", error.message);
    return count;
}

void tune_check_results(const tune_seen *all)
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

const char *tune_projection_variant(vka_context *context, uint32_t rows)
{
    static float w[TUNE_HIDDEN * TUNE_HIDDEN], x[TUNE_ROWS * TUNE_HIDDEN], y[TUNE_ROWS * TUNE_HIDDEN];
    const vka_tensor weights = {w, VKA_F32, TUNE_HIDDEN, TUNE_HIDDEN, 0};
    const char *variant = NULL;
    vka_matrix *matrix = NULL;
    vka_error error;

    require(vka_matrix_create(&matrix, context, 0, &weights, VKA_F32, &error) == VKA_OK, "%s", error.message);
    const vka_projection_params params = {.struct_size = sizeof(params),
                                          .rows = rows,
                                          .weights = matrix,
                                          .x = {x, VKA_F32, rows, TUNE_HIDDEN, 0},
                                          .y = {y, VKA_F32, rows, TUNE_HIDDEN, 0},
                                          .variant = &variant};
    require(vka_projection(context, &params, &error) == VKA_OK, "%s", error.message);
    vka_matrix_destroy(&matrix);
    return variant;
}

const char *tune_attention_variant(vka_context *context, uint32_t rows)
{
    static float q[TUNE_ROWS * TUNE_HEADS * TUNE_DIM], kv[TUNE_KEYS * TUNE_KV_HEADS * TUNE_DIM],
        o[TUNE_ROWS * TUNE_HEADS * TUNE_DIM];
    const char *variant = NULL;
    const vka_attention_params params = {.struct_size = sizeof(params),
                                         .batch = 1,
                                         .heads = TUNE_HEADS,
                                         .kv_heads = TUNE_KV_HEADS,
                                         .head_dim = TUNE_DIM,
                                         .q_len = rows,
                                         .kv_len = TUNE_KEYS,
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

static const vka_caps *device_caps(const vka_context *context)
{
    return gpu_device_caps(context->devices[0].gpu);
}

const vka_variant *tune_standard_row(const vka_context *context, vka_kernel kernel)
{
    const vka_variant *row = NULL;

    assert_int_equal(vka_variant_select(kernel, VKA_F32, device_caps(context), NULL, &row, NULL), VKA_OK);
    return row;
}

const vka_variant *tune_other_row(const vka_context *context, vka_kernel kernel)
{
    const vka_variant *standard = tune_standard_row(context, kernel);

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
                table.choice[kernel][VKA_F32][i] = tune_other_row(context, (vka_kernel)kernel);
    vka_device_identity(vka_context_device(context, 0), key);
    const vka_piece piece = {text, tuning_write(&table, key, text)};
    require(vka_make_directories(tuning_folder, &error) == VKA_OK, "%s", error.message);
    require(vka_write_file(vka_tuning_file(context, 0), &piece, 1, &error) == VKA_OK, "%s", error.message);
}

vka_context *tune_open_other_choices(void)
{
    vka_context *context = tune_open(tune_small_tensors);

    write_other_choices(context);
    vka_context_destroy(&context);
    return tune_open(tune_small_tensors);
}
