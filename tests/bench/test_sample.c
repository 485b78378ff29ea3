/* Sampling, with a source of samples that only pretends: when the warm-up ends, how many samples are taken, how often
 * short work is repeated, and what an error does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/error.h"
#include "bench/sample.h"

enum { NEVER = 1000000 };

typedef struct source {
    double first_ms, rest_ms; /* what the first run and the others claim to have taken */
    int fail_at;              /* number of the run that fails, from 1 */
    int runs;
    uint32_t repeat; /* of the last run */
} source;

static vka_status take(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    source *from = user;

    from->runs++;
    from->repeat = repeat;
    if (from->runs == from->fail_at)
        return vka_fail(error, VKA_ERR_VULKAN, "run %d fails", from->runs);
    *gpu_ms = from->runs == 1 ? from->first_ms : from->rest_ms;
    *wall_ms = from->runs;
    return VKA_OK;
}

static bench_samples samples;

static vka_status sample(source *from, bench_warm_up how, uint32_t wanted, double max_ms)
{
    const bench_limits limits = {wanted, max_ms};
    vka_error error;

    return bench_sample(&limits, how, take, from, &samples, &error);
}

static void warms_up_until_two_agree(void **state)
{
    source from = {.first_ms = 100, .rest_ms = 5, .fail_at = NEVER};

    (void)state;
    assert_int_equal(sample(&from, BENCH_WARM, 10, 1e9), VKA_OK);
    assert_int_equal(samples.count, 10);
    assert_int_equal(from.runs, 3 + 10); /* 100 and 5 do not agree, 5 and 5 do */
    assert_int_equal(from.repeat, 1);
    assert_true(samples.gpu_ms[0] == 5 && samples.wall_ms[0] == 4 && samples.wall_ms[9] == 13);
}

static void cold(void **state)
{
    source from = {.first_ms = 100, .rest_ms = 5, .fail_at = NEVER};

    (void)state;
    assert_int_equal(sample(&from, BENCH_COLD, 2, 1e9), VKA_OK);
    assert_int_equal(from.runs, 2);
    assert_true(samples.gpu_ms[0] == 100 && samples.gpu_ms[1] == 5);
}

static void short_work_is_repeated(void **state)
{
    source tiny = {.first_ms = 0.0001, .rest_ms = 0.0001, .fail_at = NEVER};
    source small = {.first_ms = 1, .rest_ms = 1, .fail_at = NEVER};
    source large = {.first_ms = 1000, .rest_ms = 1000, .fail_at = NEVER};

    (void)state;
    assert_int_equal(sample(&tiny, BENCH_BATCH, 1, 1e9), VKA_OK);
    assert_int_equal(tiny.repeat, 256);
    assert_int_equal(sample(&small, BENCH_BATCH, 1, 1e9), VKA_OK);
    assert_int_equal(small.repeat, 20);
    assert_int_equal(sample(&large, BENCH_BATCH, 1, 1e9), VKA_OK);
    assert_int_equal(large.repeat, 1);
}

/* A cap of no time at all: one run, which is the sample. */
static void one_sample_at_least(void **state)
{
    source warm = {.first_ms = 9, .rest_ms = 5, .fail_at = NEVER};
    source first = {.first_ms = 9, .rest_ms = 5, .fail_at = NEVER};

    (void)state;
    assert_int_equal(sample(&warm, BENCH_WARM, 10, -1), VKA_OK);
    assert_int_equal(warm.runs, 1);
    assert_int_equal(samples.count, 1);
    assert_true(samples.gpu_ms[0] == 9);
    assert_int_equal(sample(&first, BENCH_COLD, 10, -1), VKA_OK);
    assert_int_equal(samples.count, 1);
}

static void errors_end_it(void **state)
{
    source warm = {.first_ms = 5, .rest_ms = 5, .fail_at = 2};
    source later = {.first_ms = 5, .rest_ms = 5, .fail_at = 5};

    (void)state;
    assert_int_equal(sample(&warm, BENCH_WARM, 10, 1e9), VKA_ERR_VULKAN);
    assert_int_equal(warm.runs, 2);
    assert_int_equal(samples.count, 0);
    assert_int_equal(sample(&later, BENCH_WARM, 10, 1e9), VKA_ERR_VULKAN);
    assert_int_equal(later.runs, 5);
    assert_int_equal(samples.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warms_up_until_two_agree),
        cmocka_unit_test(cold),
        cmocka_unit_test(short_work_is_repeated),
        cmocka_unit_test(one_sample_at_least),
        cmocka_unit_test(errors_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
