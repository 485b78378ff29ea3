/* Taking samples of one case: warm-up until two runs agree, then as many samples as are wanted within a time cap. */
#ifndef VKA_BENCH_SAMPLE_H
#define VKA_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/stats.h"
#include "vkattn/status.h"

typedef struct bench_limits {
    uint32_t samples; /* wanted, 1 .. BENCH_MAX_SAMPLES */
    double max_ms;    /* cap on the time of a case, of which up to a half goes into the warm-up */
} bench_limits;

typedef struct bench_samples {
    size_t count;
    double gpu_ms[BENCH_MAX_SAMPLES]; /* -1 where there are no timestamps or the case does not run on a device */
    double wall_ms[BENCH_MAX_SAMPLES];
} bench_samples;

/* One sample: runs the work `repeat` times and gives the time of a single one, gpu_ms -1 where there is none. */
typedef vka_status (*bench_sample_fn)(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error);

typedef enum bench_warm_up {
    BENCH_COLD,  /* no warm-up: the first run is what is measured */
    BENCH_WARM,  /* one run a sample */
    BENCH_BATCH, /* short work is repeated within a sample until that takes long enough to be timed well */
} bench_warm_up;

/* At least one sample is taken, however long it takes; when the warm-up passes the cap, its last run is the sample. */
vka_status bench_sample(const bench_limits *limits, bench_warm_up warm_up, bench_sample_fn sample, void *user,
                        bench_samples *out, vka_error *error);

#endif
