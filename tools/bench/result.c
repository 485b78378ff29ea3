/* See result.h. */
#include "bench/result.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

const char *bench_status_name(bench_status status)
{
    static const char *const names[] = {
        [BENCH_OK] = "ok", [BENCH_UNSUPPORTED] = "unsupported", [BENCH_SKIPPED] = "skipped", [BENCH_ERROR] = "error"};

    return names[status];
}

double bench_result_ms(const bench_result *result)
{
    const bench_samples *samples = &result->samples;
    bench_stats gpu = bench_stats_of(samples->gpu_ms, samples->count);

    return gpu.count > 0 ? gpu.median : bench_stats_of(samples->wall_ms, samples->count).median;
}

static double rate(const bench_result *result, double work)
{
    double ms = bench_result_ms(result);

    return ms > 0 ? work / ms * 1e3 : 0;
}

double bench_result_gflops(const bench_result *result)
{
    return rate(result, result->flops) * 1e-9;
}

double bench_result_gbytes(const bench_result *result)
{
    return rate(result, result->bytes) * 1e-9;
}

double bench_result_percent(const bench_result *result)
{
    bool compute = result->peak == VKA_PEAK_FMA_F32;

    if (result->peak == BENCH_NO_PEAK || result->peak_rate <= 0)
        return -1;
    return 100 * rate(result, compute ? result->flops : result->bytes) / result->peak_rate;
}

void bench_add_extra(bench_result *result, const char *name, double value)
{
    assert(result->extra_count < BENCH_MAX_EXTRAS);
    result->extras[result->extra_count++] = (bench_extra){name, value};
}

void bench_add_variant(bench_result *result, const char *name)
{
    vka_text text = {result->variant, sizeof(result->variant), strlen(result->variant)};

    if (name && !strstr(result->variant, name))
        vka_append(&text, "%s%s", text.used ? "+" : "", name);
}
