/* What came of one case on one device. */
#ifndef VKA_BENCH_RESULT_H
#define VKA_BENCH_RESULT_H

#include "bench/name.h"
#include "bench/sample.h"

typedef enum bench_status {
    BENCH_OK,
    BENCH_UNSUPPORTED, /* this device, or this choice of devices, cannot run the case */
    BENCH_SKIPPED,     /* not tried */
    BENCH_ERROR,
} bench_status;

/* Something that only some cases have, e.g. kernel_sum_ms. */
typedef struct bench_extra {
    const char *name; /* as in JSON */
    double value;
} bench_extra;

enum { BENCH_MAX_EXTRAS = 6, BENCH_HOST = -1, BENCH_NO_PEAK = -1 };

typedef struct bench_result {
    const bench_case *of;
    int device; /* position in the chosen list; BENCH_HOST: none, or all of them */
    bench_status status;
    char reason[sizeof((vka_error){0}.message)]; /* unless ok */
    int32_t vk_result;                           /* of an error: the VkResult behind it, or 0 */
    char variant[256];                           /* kernel variants that ran, joined by +; may be empty */
    double flops, bytes;                         /* of one run; 0: not what the case is about */
    int peak;                                    /* vka_peak_kind that the case is bound by, or BENCH_NO_PEAK */
    double peak_rate; /* of that peak, measured in the same process: FLOP/s or bytes/s; 0: not measured */
    bench_samples samples;
    bench_extra extras[BENCH_MAX_EXTRAS];
    size_t extra_count;
} bench_result;

const char *bench_status_name(bench_status status); /* "ok", "unsupported", "skipped", "error" */

/* Milliseconds that rates refer to: the median GPU time where there is one, else that of the host. */
double bench_result_ms(const bench_result *result);
/* Work per second; 0 where the case has no such work. */
double bench_result_gflops(const bench_result *result);
double bench_result_gbytes(const bench_result *result);
/* Of the device's own peak, in percent; negative where there is none to compare with. */
double bench_result_percent(const bench_result *result);

void bench_add_extra(bench_result *result, const char *name, double value);
/* Appends a variant's name, once. */
void bench_add_variant(bench_result *result, const char *name);

#endif
