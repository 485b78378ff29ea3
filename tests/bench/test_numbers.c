/* Statistics against known vectors; work of cases against numbers worked out by hand; rates and shares of a peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result.h"
#include "bench/work.h"
#include "support/require.h"

static void check_stats(const double *samples, size_t count, const double want[5])
{
    bench_stats stats = bench_stats_of(samples, count);

    assert_int_equal(stats.count, count);
    assert_true(stats.min == want[0] && stats.q1 == want[1] && stats.median == want[2]);
    assert_true(stats.q3 == want[3] && stats.max == want[4]);
}

/* The quartiles are those of R's quantile() and NumPy's percentile(), both by default of type 7. */
static void statistics(void **state)
{
    static const double ten[] = {10, 1, 9, 2, 8, 3, 7, 4, 6, 5};
    static const double four[] = {4, 1, 3, 2};
    static const double five[] = {50, 10, 40, 20, 30};
    static const double one[] = {7.5};
    static const double equal[] = {3, 3, 3};

    (void)state;
    check_stats(ten, 10, (const double[]){1, 3.25, 5.5, 7.75, 10});
    check_stats(four, 4, (const double[]){1, 1.75, 2.5, 3.25, 4});
    check_stats(five, 5, (const double[]){10, 20, 30, 40, 50});
    check_stats(one, 1, (const double[]){7.5, 7.5, 7.5, 7.5, 7.5});
    check_stats(equal, 3, (const double[]){3, 3, 3, 3, 3});
    assert_int_equal(bench_stats_of(one, 0).count, 0);
}

/* -1 is "there are no time stamps": no statistics can be made of it. */
static void not_measured(void **state)
{
    static const double none[] = {-1, -1};
    static const double mixed[] = {2, -1, 3};

    (void)state;
    assert_int_equal(bench_stats_of(none, 2).count, 0);
    assert_int_equal(bench_stats_of(mixed, 3).count, 0);
    assert_true(bench_stats_of(mixed, 3).median == 0);
}

static double count_pairs(uint32_t rows, uint32_t keys)
{
    double pairs = 0;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            pairs += j <= i + keys - rows;
    return pairs;
}

static void visible_pairs(void **state)
{
    (void)state;
    assert_true(bench_visible_pairs(3, 5, false) == 15);
    assert_true(bench_visible_pairs(1, 5, true) == 5);
    assert_true(bench_visible_pairs(4, 4, true) == 10);
    assert_true(bench_visible_pairs(512, 512, true) == 131328);
    for (uint32_t rows = 1; rows < 12; rows++)
        for (uint32_t keys = 1; keys < 12; keys++)
            assert_true(bench_visible_pairs(rows, keys, true) == count_pairs(rows, keys));
}

static void check_work(const char *name, double flops, double bytes)
{
    bench_case of;
    bench_work work;

    assert_true(bench_case_parse(name, &of));
    work = bench_work_of(&of);
    require(work.flops == flops, "%s: %.0f FLOP, expected %.0f", name, work.flops, flops);
    require(work.bytes == bytes, "%s: %.0f bytes, expected %.0f", name, work.bytes, bytes);
}

static void work(void **state)
{
    (void)state;
    /* 2 heads of 8, 3 queries, 5 keys, 12 visible pairs: 2 * 8 for QK and for PV each; Q and O 3*2*8 floats, K and V
     * 5*1*8 halves */
    check_work("attention.prefill.h2.kv1.d8.q3.k5.causal.f16", 2 * 12 * (2 * 8 + 2 * 8), 2 * 48 * 4 + 2 * 40 * 2);
    check_work("attention.prefill.h2.kv1.d8.q3.k5.f32", 2 * 15 * 32, 2 * 48 * 4 + 2 * 40 * 4);
    check_work("attention.decode.h32.kv8.d128.q1.k4096.f16", 67108864, 2 * 16384 + 16777216);
    check_work("attention.prefill.h32.kv8.d128.q1024.k1024.causal.f16", 8598323200.0, 2 * 16777216.0 + 4194304);
    check_work("gemm.m512.k4096.n6144.f16", 25769803776.0, 50331648 + 512.0 * (4096 + 6144) * 4);
    check_work("gemv.m1.k64.n63.f32", 2 * 64 * 63, (64 * 63 + 64 + 63) * 4);
    check_work("exchange.sum.2dev.16MiB", 0, 4.0 * (16 << 20));
    check_work("memcpy.16MiB", 0, 2.0 * (16 << 20));
    check_work("peak.read", 0, 0);
}

static void rates(void **state)
{
    bench_result *result = calloc(1, sizeof(*result));

    (void)state;
    assert_non_null(result);
    result->flops = 4e9;
    result->bytes = 2e9;
    result->peak = BENCH_NO_PEAK;
    result->samples.count = 1;
    result->samples.gpu_ms[0] = -1;
    result->samples.wall_ms[0] = 500;
    assert_true(bench_result_ms(result) == 500); /* the host's clock where there is no other */
    assert_true(bench_result_gflops(result) == 8);
    result->samples.gpu_ms[0] = 250;
    assert_true(bench_result_ms(result) == 250);
    assert_true(bench_result_gflops(result) == 16);
    assert_true(bench_result_gbytes(result) == 8);
    assert_true(bench_result_percent(result) < 0);
    result->peak = VKA_PEAK_FMA_F32;
    assert_true(bench_result_percent(result) < 0); /* not measured */
    result->peak_rate = 64e9;
    assert_true(bench_result_percent(result) == 25);
    result->peak = VKA_PEAK_READ;
    assert_true(bench_result_percent(result) == 12.5);
    result->samples.count = 0;
    assert_true(bench_result_gflops(result) == 0);
    free(result);
}

static void variants(void **state)
{
    bench_result *result = calloc(1, sizeof(*result));

    (void)state;
    assert_non_null(result);
    bench_add_variant(result, NULL);
    assert_string_equal(result->variant, "");
    bench_add_variant(result, "gemv_f16_floor");
    bench_add_variant(result, "decode_f16_floor");
    bench_add_variant(result, "gemv_f16_floor");
    assert_string_equal(result->variant, "gemv_f16_floor+decode_f16_floor");
    free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics), cmocka_unit_test(not_measured), cmocka_unit_test(visible_pairs),
        cmocka_unit_test(work),       cmocka_unit_test(rates),        cmocka_unit_test(variants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
