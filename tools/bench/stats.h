/* What is said of a list of samples. Pure. */
#ifndef VKA_BENCH_STATS_H
#define VKA_BENCH_STATS_H

#include <stddef.h>

typedef struct bench_stats {
    size_t count;
    double median, q1, q3; /* linear between neighbours: Hyndman and Fan's type 7, as most tools have it */
    double min, max;
} bench_stats;

/* `count` may be 0: all is then 0. Negative samples stand for "not measured": a single one makes count 0. Up to
 * BENCH_MAX_SAMPLES. */
enum { BENCH_MAX_SAMPLES = 1000 };
bench_stats bench_stats_of(const double *samples, size_t count);

/* The quantile of an ascending list, 0 <= at <= 1. */
double bench_quantile(const double *sorted, size_t count, double at);

#endif
