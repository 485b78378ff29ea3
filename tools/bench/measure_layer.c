/* A whole layer on one device: decoding steps, prefill, and what a first call costs. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/measure.h"
#include "vkattn/forward.h"

enum { PAGE = 16 };

typedef struct layer_run {
    bench_session *session;
    const bench_case *of;
    const vka_preset *preset;
    const vka_layer_weights *weights;
    uint32_t device;
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t sequence;
    float *input, *output; /* [rows or keys, hidden] */
    vka_stage_time stages[1][VKA_STAGE_COUNT];
    vka_timing timing;
} layer_run;

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Layer, cache and one empty sequence in run->context. */
static vka_status open_layer(layer_run *run, vka_error *error)
{
    const bench_case *of = run->of;
    const vka_layer_params layer = {
        .struct_size = sizeof(layer), .desc = &run->preset->desc, .weights = run->weights, .grid = {.tp = of->tp}};
    const vka_cache_params cache = {
        .struct_size = sizeof(cache), .page_size = PAGE, .pages = (of->keys + of->rows + PAGE - 1) / PAGE};
    vka_status status = vka_layer_create(&run->layer, run->context, &layer, error);

    if (status == VKA_OK)
        status = vka_cache_create(&run->cache, run->layer, &cache, error);
    if (status == VKA_OK)
        status = vka_cache_sequence_new(run->cache, &run->sequence, error);
    return status;
}

static void close_layer(layer_run *run)
{
    vka_cache_destroy(&run->cache);
    vka_layer_destroy(&run->layer);
}

static vka_status forward(layer_run *run, uint32_t rows, vka_error *error)
{
    uint64_t hidden = run->preset->desc.hidden_size;
    const vka_batch_entry entry = {run->sequence, rows};
    const vka_forward_params params = {.struct_size = sizeof(params),
                                       .layer = run->layer,
                                       .cache = run->cache,
                                       .batch = {&entry, 1},
                                       .input = {run->input, VKA_F32, rows, hidden, 0},
                                       .output = {run->output, VKA_F32, rows, hidden, 0},
                                       .timing = &run->timing};

    return vka_forward(&params, error);
}

/* Stages on the device; -1 where it has no timestamps. */
static double kernel_sum_ms(const layer_run *run)
{
    double sum = 0;

    for (int stage = VKA_STAGE_UPLOAD; stage <= VKA_STAGE_DOWNLOAD; stage++) {
        double ms = run->stages[0][stage].gpu_ms;

        if (ms < 0)
            return -1;
        sum += ms;
    }
    return sum;
}

/* A call with `keys` keys in the cache before it. */
static vka_status sample(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    layer_run *run = user;
    vka_status status = vka_cache_sequence_truncate(run->cache, run->sequence, run->of->keys, error);

    (void)repeat;
    if (status == VKA_OK)
        status = forward(run, run->of->rows, error);
    *gpu_ms = kernel_sum_ms(run);
    *wall_ms = run->timing.wall_ms;
    return status;
}

static vka_status prepare(layer_run *run, vka_error *error)
{
    const bench_case *of = run->of;
    vka_status status = vka_preset_find(of->preset, &run->preset, error);

    if (status == VKA_OK)
        status = bench_weights(run->session, run->preset, &run->weights, error);
    if (status != VKA_OK)
        return status;
    size_t values = (size_t)most(of->rows, of->keys) * run->preset->desc.hidden_size;
    run->input = bench_random(values, VKA_F32, 1);
    run->output = malloc(values * sizeof(float));
    run->timing.devices = run->stages;
    if (!run->input || !run->output)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu values of hidden states", values);
    return VKA_OK;
}

/* The selected variants of the kernels that a call of `rows` rows runs. */
static vka_status add_variants(const layer_run *run, bench_result *result, vka_error *error)
{
    static const char *const few[] = {"gemv", "epilogue", "decode"}, *const many[] = {"gemm", "epilogue", "prefill"};
    const char *const *kernels = run->of->rows == 1 ? few : many;
    vka_variant_info info;

    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < vka_variant_count(); i++) {
            vka_status status = vka_context_variant(run->context, 0, i, &info, error);

            if (status != VKA_OK)
                return status;
            if (info.selected && strcmp(info.kernel, kernels[k]) == 0 &&
                strcmp(info.dtype, vka_dtype_name(VKA_F16)) == 0) /* of the generated weights, and of the cache */
                bench_add_variant(result, info.name);
        }
    }
    return VKA_OK;
}

static void add_work(const layer_run *run, bench_result *result)
{
    for (int stage = VKA_STAGE_QKV; stage <= VKA_STAGE_OUTPUT; stage++) {
        result->flops += run->stages[0][stage].flops;
        result->bytes += run->stages[0][stage].bytes;
    }
}

static void add_ratio(bench_result *result)
{
    const bench_samples *samples = &result->samples;
    bench_stats gpu = bench_stats_of(samples->gpu_ms, samples->count);
    bench_stats wall = bench_stats_of(samples->wall_ms, samples->count);

    if (gpu.count == 0 || gpu.median <= 0)
        return;
    bench_add_extra(result, "kernel_sum_ms", gpu.median);
    bench_add_extra(result, "wall_over_kernels", wall.median / gpu.median);
}

static void release(layer_run *run)
{
    close_layer(run);
    free(run->input);
    free(run->output);
}

vka_status bench_measure_layer(bench_session *session, bench_result *result, vka_error *error)
{
    layer_run run = {.session = session, .of = result->of, .device = (uint32_t)result->device};
    vka_status status = prepare(&run, error);

    if (status == VKA_OK)
        status = bench_context(session, run.device, &run.context, error);
    if (status == VKA_OK)
        status = open_layer(&run, error);
    if (status == VKA_OK && run.of->keys > 0)
        status = forward(&run, run.of->keys, error);
    if (status == VKA_OK)
        status = bench_sample(&session->options.limits, BENCH_WARM, sample, &run, &result->samples, error);
    if (status == VKA_OK)
        status = add_variants(&run, result, error);
    if (status == VKA_OK) {
        result->peak = run.of->kind == BENCH_LAYER_DECODE ? VKA_PEAK_READ : VKA_PEAK_FMA_F32;
        add_work(&run, result);
        add_ratio(result);
    }
    release(&run);
    return status;
}

/* Everything from opening the device to the first result; the weights are there. */
static vka_status sample_first(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    layer_run *run = user;
    double since = vka_clock_ms();
    vka_status status = bench_open_context(run->session, run->device, 1, &run->context, error);

    (void)repeat;
    if (status == VKA_OK)
        status = open_layer(run, error);
    if (status == VKA_OK)
        status = forward(run, run->of->rows, error);
    *wall_ms = vka_clock_ms() - since;
    *gpu_ms = -1;
    close_layer(run);
    vka_context_destroy(&run->context);
    return status;
}

vka_status bench_measure_first(bench_session *session, bench_result *result, vka_error *error)
{
    layer_run run = {.session = session, .of = result->of, .device = (uint32_t)result->device};
    vka_status status = prepare(&run, error);

    if (status == VKA_OK)
        status = bench_sample(&session->options.limits, BENCH_COLD, sample_first, &run, &result->samples, error);
    if (status == VKA_OK) {
        bench_add_extra(result, "first_sample_ms", result->samples.wall_ms[0]);
        bench_add_extra(result, "pipelines_ms", run.timing.first_ms);
    }
    release(&run);
    return status;
}
