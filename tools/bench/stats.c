/* See stats.h. */
#include "bench/stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

double bench_quantile(const double *sorted, size_t count, double at)
{
    double place = at * (double)(count - 1);
    size_t below = (size_t)place;
    double share = place - (double)below;

    return below + 1 < count ? sorted[below] + share * (sorted[below + 1] - sorted[below]) : sorted[count - 1];
}

bench_stats bench_stats_of(const double *samples, size_t count)
{
    double sorted[BENCH_MAX_SAMPLES];
    bench_stats stats = {0};

    assert(count <= BENCH_MAX_SAMPLES);
    if (count == 0)
        return stats;
    memcpy(sorted, samples, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), compare);
    if (sorted[0] < 0)
        return stats;
    stats.count = count;
    stats.median = bench_quantile(sorted, count, 0.5);
    stats.q1 = bench_quantile(sorted, count, 0.25);
    stats.q3 = bench_quantile(sorted, count, 0.75);
    stats.min = sorted[0];
    stats.max = sorted[count - 1];
    return stats;
}
