/* One function per family of cases: takes samples of the case on a device and fills in samples, work, variant, peak
 * kind and extras of *result. A status that is not VKA_OK ends up as the result's status and reason. */
#ifndef VKA_BENCH_MEASURE_H
#define VKA_BENCH_MEASURE_H

#include "bench/session.h"

typedef vka_status (*bench_measure_fn)(bench_session *session, bench_result *result, vka_error *error);

vka_status bench_measure_attention(bench_session *session, bench_result *result, vka_error *error);
vka_status bench_measure_projection(bench_session *session, bench_result *result, vka_error *error);
vka_status bench_measure_layer(bench_session *session, bench_result *result, vka_error *error);
vka_status bench_measure_first(bench_session *session, bench_result *result, vka_error *error);
vka_status bench_measure_peak(bench_session *session, bench_result *result, vka_error *error);

/* Not on one device: result->device is BENCH_HOST. */
vka_status bench_measure_exchange(bench_session *session, bench_result *result, vka_error *error);
vka_status bench_measure_memcpy(bench_session *session, bench_result *result, vka_error *error);

/* Random values in [-1, 1) as `dtype`, made by several threads; free() them. NULL: no memory. */
void *bench_random(size_t count, vka_dtype dtype, uint32_t stream);

/* Median time of copying `bytes` in host memory, by one thread. */
vka_status bench_memcpy_samples(const bench_limits *limits, uint64_t bytes, bench_samples *samples, vka_error *error);

#endif
