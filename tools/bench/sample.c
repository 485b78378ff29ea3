/* See sample.h. */
#include "bench/sample.h"

#include "base/clock.h"

enum { MAX_PROBES = 8, MAX_REPEAT = 256 };
static const double agreement = 0.1; /* of two runs one after the other */
static const double batch_ms = 20;   /* that a batch should take */

typedef struct sampler {
    const bench_limits *limits;
    bench_sample_fn sample;
    void *user;
    uint32_t repeat;
    double gpu_ms, wall_ms;
} sampler;

static vka_status run(sampler *of, vka_error *error)
{
    return of->sample(of->user, of->repeat, &of->gpu_ms, &of->wall_ms, error);
}

static double run_ms(const sampler *of)
{
    return of->gpu_ms >= 0 ? of->gpu_ms : of->wall_ms;
}

static uint32_t wanted_repeat(double ms)
{
    double wanted = ms > batch_ms / MAX_REPEAT ? batch_ms / ms : MAX_REPEAT;

    return wanted > 1 ? (uint32_t)wanted : 1;
}

/* *spent: how long it took. */
static vka_status warm_up(sampler *of, bool batch, double *spent, vka_error *error)
{
    double start = vka_clock_ms();
    double before = -1;

    for (int probe = 0; probe < MAX_PROBES; probe++) {
        vka_status status = run(of, error);
        double ms = run_ms(of);
        double change = ms > before ? ms - before : before - ms;

        *spent = vka_clock_ms() - start;
        if (status != VKA_OK)
            return status;
        if (batch)
            of->repeat = wanted_repeat(ms);
        if ((before >= 0 && change <= agreement * ms) || *spent > of->limits->max_ms / 2)
            return VKA_OK;
        before = ms;
    }
    return VKA_OK;
}

static void keep(const sampler *of, bench_samples *out)
{
    out->gpu_ms[out->count] = of->gpu_ms;
    out->wall_ms[out->count] = of->wall_ms;
    out->count++;
}

vka_status bench_sample(const bench_limits *limits, bench_warm_up how, bench_sample_fn sample, void *user,
                        bench_samples *out, vka_error *error)
{
    sampler of = {.limits = limits, .sample = sample, .user = user, .repeat = 1};
    double spent = 0;
    vka_status status = how == BENCH_COLD ? VKA_OK : warm_up(&of, how == BENCH_BATCH, &spent, error);
    double start = vka_clock_ms();

    out->count = 0;
    if (status == VKA_OK && spent > limits->max_ms) /* so slow that a first run hardly differs from a second */
        keep(&of, out);
    while (status == VKA_OK && out->count < limits->samples &&
           (out->count == 0 || vka_clock_ms() - start + spent < limits->max_ms)) {
        status = run(&of, error);
        if (status == VKA_OK)
            keep(&of, out);
    }
    return status;
}
