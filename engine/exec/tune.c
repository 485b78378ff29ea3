/* See tune.h. Kernels and classes are measured one after the other, each with its share of the budget that is left.
 * Within one, the candidates take turns, so that what disturbs the machine disturbs all of them, and medians are
 * compared. A candidate that is far behind from the start is not run again. */
#include "exec/tune.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/median.h"
#include "exec/tune_work.h"
#include "exec/tuned.h"
#include "layout/shard.h"
#include "vkattn/layer_desc.h"

#define MAX_SHAPES     (TUNING_ROW_CLASSES + 2u) /* rows of projections, prefill, decode */
#define MAX_SAMPLES    25u
#define SAMPLE_MS      10.0 /* a sample repeats a short run until it takes about that long */
#define MAX_REPEAT     100.0
#define FAR_BEHIND     3.0 /* times the fastest */
#define DEFAULT_ROWS   256u
#define DEFAULT_KEYS   1024u
#define DEFAULT_BUDGET 5000u
#define MOST_TOKENS    (1u << 20)

typedef struct candidate {
    const vka_variant *row;
    double once_ms; /* of a single run */
    uint32_t repeat;
    bool far_behind;
    double ms[MAX_SAMPLES];
    uint32_t samples;
} candidate;

typedef struct tune_run {
    vka_context *context;
    vka_tune_params params; /* resolved */
    vka_tune_result_fn results;
    void *results_user;
    double deadline_ms;
    tune_work work;
    tune_shape shapes[MAX_SHAPES];
    uint32_t shape_count;
    tuning_table found;

    /* the shape at hand */
    const tune_shape *shape;
    candidate *candidates; /* [count], room for every row of the variant table */
    uint32_t count, standard, chosen;
    bool gpu_clock;
} tune_run;

/* ---- what there is to measure ---- */

static vka_status resolve(vka_tune_params *p, vka_error *error)
{
    vka_layer_desc desc = {.struct_size = sizeof(desc),
                           .hidden_size = p->hidden_size > 0 ? p->hidden_size : 1,
                           .heads = p->heads,
                           .kv_heads = p->kv_heads,
                           .head_dim = p->head_dim,
                           .v_head_dim = p->v_head_dim,
                           .rope_type = VKA_ROPE_NONE};

    if (p->head_dim == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "head_dim is 0, expected 1 .. %u", VKA_MAX_HEAD_DIM);
    }
    vka_status status = vka_layer_desc_resolve(&desc, error);
    if (status != VKA_OK) {
        return status;
    }
    p->v_head_dim = desc.v_head_dim;
    p->rows = p->rows > 0 ? p->rows : DEFAULT_ROWS;
    p->keys = p->keys > 0 ? p->keys : DEFAULT_KEYS;
    p->budget_ms = p->budget_ms > 0 ? p->budget_ms : DEFAULT_BUDGET;
    p->weight_dtype = p->weight_dtype != VKA_DTYPE_DEFAULT ? p->weight_dtype : VKA_F16;
    p->cache_dtype = p->cache_dtype != VKA_DTYPE_DEFAULT ? p->cache_dtype : VKA_F16;
    if (p->rows > MOST_TOKENS || p->keys > MOST_TOKENS) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "rows is %u and keys %u, expected at most %u", p->rows, p->keys,
                        MOST_TOKENS);
    }
    if (vka_dtype_size(p->weight_dtype) == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "weight_dtype is %d, expected F32, F16 or BF16", (int)p->weight_dtype);
    }
    return VKA_OK;
}

static void add_shape(tune_run *run, vka_kernel kernel, vka_dtype dtype, tuning_class sizes, uint32_t rows,
                      uint32_t keys)
{
    run->shapes[run->shape_count++] = (tune_shape){kernel, dtype, sizes, rows, keys};
}

/* Calls of a layer have 1 to params.rows rows, so they use every class up to that; each is measured at its largest. */
static void list_shapes(tune_run *run)
{
    const vka_tune_params *p = &run->params;
    tuning_class heads = tuning_head_class(vka_pad8(p->head_dim), vka_pad8(p->v_head_dim));

    for (int i = 0; i < TUNING_ROW_CLASSES && p->hidden_size > 0; i++) {
        tuning_class sizes = (tuning_class)i;
        uint32_t most = tuning_class_most(sizes);
        if (p->rows >= tuning_class_least(sizes)) {
            add_shape(run, tuning_has_class(VKA_KERNEL_GEMV, sizes) ? VKA_KERNEL_GEMV : VKA_KERNEL_GEMM,
                      p->weight_dtype, sizes, most < p->rows ? most : p->rows, 0);
        }
    }
    if (p->rows >= TILE_PREFILL_MIN_ROWS) {
        add_shape(run, VKA_KERNEL_PREFILL, p->cache_dtype, heads, p->rows, p->rows);
    }
    add_shape(run, VKA_KERNEL_DECODE, p->cache_dtype, heads, 1, p->keys);
}

static vka_status list_candidates(tune_run *run, vka_error *error)
{
    const vka_caps *caps = gpu_device_caps(run->context->devices[run->params.device].gpu);
    const tune_shape *shape = run->shape;
    const vka_variant *standard = NULL;
    vka_status status = vka_variant_select(shape->kernel, shape->dtype, caps, NULL, &standard, error);

    run->count = 0;
    run->gpu_clock = true;
    for (uint32_t i = 0; status == VKA_OK && i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (vka_variant_runs(row, shape->kernel, shape->dtype, caps)) {
            run->standard = row == standard ? run->count : run->standard;
            run->candidates[run->count++] = (candidate){.row = row, .repeat = 1};
        }
    }
    return status;
}

/* ---- measuring one shape ---- */

static vka_status run_candidate(tune_run *run, candidate *one, double *ms, vka_error *error)
{
    tune_time time = {0};
    vka_status status = tune_work_run(&run->work, run->shape, one->row, one->repeat, &time, error);

    run->gpu_clock = run->gpu_clock && time.gpu_clock;
    *ms = time.ms;
    return status;
}

/* Two runs of every candidate, the first of which may be where its driver compiles: who is far behind, and how often
 * the others repeat a run in a sample. */
static vka_status run_twice(tune_run *run, double share_ms, vka_error *error)
{
    double best = 0, sample_ms = share_ms / (run->count * MAX_SAMPLES);
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < run->count; i++) {
        candidate *one = &run->candidates[i];
        status = run_candidate(run, one, &one->once_ms, error);
        if (status == VKA_OK) {
            status = run_candidate(run, one, &one->once_ms, error);
        }
        best = i == 0 || one->once_ms < best ? one->once_ms : best;
    }
    sample_ms = sample_ms < SAMPLE_MS ? sample_ms : SAMPLE_MS;
    for (uint32_t i = 0; status == VKA_OK && i < run->count; i++) {
        candidate *one = &run->candidates[i];
        double repeat = one->once_ms > sample_ms / MAX_REPEAT ? sample_ms / one->once_ms : MAX_REPEAT;
        one->repeat = repeat > 1 ? (uint32_t)repeat : 1;
        one->far_behind = one->once_ms > FAR_BEHIND * best;
        if (one->far_behind) {
            one->ms[one->samples++] = one->once_ms;
        }
    }
    return status;
}

/* One sample of every candidate that is not far behind; *count is how many those are. */
static vka_status sample_all(tune_run *run, uint32_t *count, vka_error *error)
{
    vka_status status = VKA_OK;

    *count = 0;
    for (uint32_t i = 0; status == VKA_OK && i < run->count; i++) {
        candidate *one = &run->candidates[i];
        if (!one->far_behind) {
            status = run_candidate(run, one, &one->ms[one->samples++], error);
            (*count)++;
        }
    }
    return status;
}

static vka_status measure(tune_run *run, double share_ms, vka_error *error)
{
    double since = vka_clock_ms(), round_ms = 0;
    uint32_t active = 0;
    vka_status status = tune_work_begin(&run->work, run->shape, error);

    if (status == VKA_OK) {
        status = run_twice(run, share_ms, error);
    }
    for (uint32_t round = 0; status == VKA_OK && round < MAX_SAMPLES; round++) {
        double begin = vka_clock_ms();
        if (round > 0 && (active < 2 || begin - since + round_ms > share_ms)) {
            break;
        }
        status = sample_all(run, &active, error);
        round_ms = vka_clock_ms() - begin;
    }
    return status;
}

/* Sorts the samples. */
static void choose(tune_run *run, double *medians)
{
    for (uint32_t i = 0; i < run->count; i++) {
        candidate *one = &run->candidates[i];
        medians[i] = one->samples > 0 ? vka_median(one->ms, one->samples) : 0;
    }
    run->chosen = tuning_decide(medians, run->count, run->standard);
    run->found.choice[run->shape->kernel][run->shape->dtype][run->shape->sizes] = run->candidates[run->chosen].row;
}

static void report(const tune_run *run, const double *medians)
{
    for (uint32_t i = 0; run->results != NULL && i < run->count; i++) {
        const candidate *one = &run->candidates[i];
        const vka_tune_result result = {.kernel = vka_kernel_name(run->shape->kernel),
                                        .dtype = vka_dtype_name(run->shape->dtype),
                                        .shape = tuning_class_text(run->shape->sizes),
                                        .variant = one->row->name,
                                        .rows = run->shape->rows,
                                        .keys = run->shape->keys,
                                        .samples = one->samples,
                                        .gpu_clock = run->gpu_clock,
                                        .median_ms = medians[i],
                                        .min_ms = one->samples > 0 ? one->ms[0] : 0,
                                        .max_ms = one->samples > 0 ? one->ms[one->samples - 1] : 0,
                                        .standard = i == run->standard,
                                        .chosen = i == run->chosen};
        run->results(run->results_user, &result);
    }
}

/* A shape with a single candidate is not measured. */
static vka_status tune_shape_at(tune_run *run, uint32_t index, double *medians, vka_error *error)
{
    run->shape = &run->shapes[index];
    vka_status status = list_candidates(run, error);

    if (status == VKA_OK && run->params.progress != NULL) {
        run->params.progress(run->params.progress_user, index, run->shape_count, vka_kernel_name(run->shape->kernel),
                             tuning_class_text(run->shape->sizes));
    }
    if (status == VKA_OK && run->count > 1) {
        double left = run->deadline_ms - vka_clock_ms();
        status = measure(run, left > 0 ? left / (run->shape_count - index) : 0, error);
    }
    if (status == VKA_OK) {
        choose(run, medians);
        report(run, medians);
    }
    return status;
}

static vka_status tune_all(tune_run *run, vka_error *error)
{
    const vka_allocator *allocator = &run->context->allocator;
    double *medians = vka_alloc(allocator, vka_variant_rows(), sizeof(*medians));
    vka_status status = VKA_OK;

    run->candidates = vka_alloc(allocator, vka_variant_rows(), sizeof(*run->candidates));
    if (medians == NULL || run->candidates == NULL) {
        status =
            vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the times of %u variants", vka_variant_rows());
    }
    tune_work_init(&run->work, run->context, &run->params);
    run->deadline_ms = vka_clock_ms() + run->params.budget_ms;
    for (uint32_t i = 0; status == VKA_OK && i < run->shape_count; i++) {
        status = tune_shape_at(run, i, medians, error);
    }
    tune_work_close(&run->work);
    vka_free(allocator, run->candidates);
    vka_free(allocator, medians);
    return status;
}

vka_status exec_tune(vka_context *context, const vka_tune_params *params, vka_tune_result_fn results,
                     void *results_user, vka_error *error)
{
    tune_run run = {.context = context, .params = *params, .results = results, .results_user = results_user};
    vka_status status = resolve(&run.params, error);

    if (status != VKA_OK) {
        return status;
    }
    list_shapes(&run);
    status = tune_all(&run, error);
    return status == VKA_OK ? tuned_add(context, params->device, &run.found, error) : status;
}
