/* What the host does: adding partial sums of several devices, and a plain copy to compare that with. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/measure.h"
#include "bench/work.h"
#include "vkattn/exchange.h"

/* ---- memcpy ---- */

typedef struct copy_run {
    void *from, *to;
    size_t bytes;
} copy_run;

static vka_status sample_copy(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    const copy_run *run = user;
    double since = vka_clock_ms();

    (void)error;
    for (uint32_t i = 0; i < repeat; i++)
        memcpy(run->to, run->from, run->bytes);
    *wall_ms = (vka_clock_ms() - since) / repeat;
    *gpu_ms = -1;
    return VKA_OK;
}

vka_status bench_memcpy_samples(const bench_limits *limits, uint64_t bytes, bench_samples *samples, vka_error *error)
{
    copy_run run = {.bytes = (size_t)bytes};
    vka_status status = VKA_OK;

    run.from = bench_random(run.bytes / sizeof(float), VKA_F32, 1);
    run.to = bench_random(run.bytes / sizeof(float), VKA_F32, 2);
    if (!run.from || !run.to)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for two copies of %zu bytes", run.bytes);
    if (status == VKA_OK)
        status = bench_sample(limits, BENCH_WARM, sample_copy, &run, samples, error);
    free(run.from);
    free(run.to);
    return status;
}

vka_status bench_measure_memcpy(bench_session *session, bench_result *result, vka_error *error)
{
    result->bytes = bench_work_of(result->of).bytes;
    return bench_memcpy_samples(&session->options.limits, result->of->bytes, &result->samples, error);
}

/* ---- exchange ---- */

typedef struct exchange_run {
    vka_context *context;
    vka_buffer *buffers[BENCH_MAX_DEVICES];
    vka_exchange_timing timing;
    vka_all_reduce_params params;
} exchange_run;

static vka_status sample_exchange(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    exchange_run *run = user;
    vka_status status = vka_all_reduce(run->context, &run->params, error);

    (void)repeat; /* one at a time: a sum of sums would soon overflow */
    *wall_ms = run->timing.wall_ms;
    *gpu_ms = -1;
    return status;
}

static vka_status make_partials(exchange_run *run, const bench_case *of, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < of->devices; d++) {
        float *values = bench_random((size_t)(of->bytes / sizeof(float)), VKA_F32, d);

        if (!values)
            return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a partial sum");
        status = vka_buffer_create(&run->buffers[d], run->context, d, of->bytes, error);
        if (status == VKA_OK)
            status = vka_buffer_write(run->buffers[d], 0, values, of->bytes, error);
        free(values);
    }
    return status;
}

/* Beside one copy of the same size, taken right after it. */
static vka_status compare_with_copy(const bench_session *session, bench_result *result, vka_error *error)
{
    bench_samples *copies = calloc(1, sizeof(*copies));
    vka_status status;

    if (!copies)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for samples");
    status = bench_memcpy_samples(&session->options.limits, result->of->bytes, copies, error);
    if (status == VKA_OK) {
        double copy_ms = bench_stats_of(copies->wall_ms, copies->count).median;

        bench_add_extra(result, "memcpy_ms", copy_ms);
        bench_add_extra(result, "over_memcpy", bench_result_ms(result) / copy_ms);
    }
    free(copies);
    return status;
}

vka_status bench_measure_exchange(bench_session *session, bench_result *result, vka_error *error)
{
    const bench_case *of = result->of;
    exchange_run run = {.context = NULL};
    vka_status status;

    if (of->devices > session->devices)
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "needs %u devices, %u chosen: name more with --devices",
                        of->devices, session->devices);
    status = bench_open_context(session, 0, of->devices, &run.context, error);
    if (status == VKA_OK)
        status = make_partials(&run, of, error);
    run.params = (vka_all_reduce_params){.struct_size = sizeof(run.params),
                                         .buffers = run.buffers,
                                         .count = of->bytes / sizeof(float),
                                         .timing = &run.timing};
    if (status == VKA_OK)
        status = bench_sample(&session->options.limits, BENCH_WARM, sample_exchange, &run, &result->samples, error);
    for (uint32_t d = 0; d < of->devices; d++)
        vka_buffer_destroy(&run.buffers[d]);
    vka_context_destroy(&run.context);
    if (status != VKA_OK)
        return status;
    result->bytes = bench_work_of(of).bytes;
    bench_add_variant(result, run.timing.in_place ? "in_place" : "staged");
    bench_add_extra(result, "download_ms", run.timing.download_ms);
    bench_add_extra(result, "add_ms", run.timing.add_ms);
    bench_add_extra(result, "upload_ms", run.timing.upload_ms);
    return compare_with_copy(session, result, error);
}
