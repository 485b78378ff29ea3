/* vka_measure_peak: every kind runs on a real device and reports consistently; no time is judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/devices.h"
#include "support/require.h"
#include "support/validation.h"
#include "vkattn/peak.h"

static vka_context *open_context(const char *pretend)
{
    support_devices devices;
    vka_context *context = NULL;
    vka_error error;

    support_find_devices(&devices);
    vka_context_params params = {
        .struct_size = sizeof(params), .devices = devices.grammar, .pretend = pretend, .no_pipeline_cache = 1};
    support_validate(&params);
    require(vka_context_create(&context, &params, &error) == VKA_OK, "%s", error.message);
    return context;
}

/* Limits are pretended, so that little memory is read. Runs are a whole number of dispatches; for FMA the unit is one
 * of 64 workgroups with 4 chains, since variants have multiples of that. */
static void kinds(void **state)
{
    static const double work[VKA_PEAK_COUNT] = {
        [VKA_PEAK_FMA_F32] = 2.0 * 64 * 64 * 64 * 8 * 4, [VKA_PEAK_READ] = 1 << 20, [VKA_PEAK_COPY] = 2 << 20};
    vka_context *context = open_context("max_range=1MiB");
    vka_error error;

    (void)state;
    for (int kind = 0; kind < VKA_PEAK_COUNT; kind++) {
        vka_peak peak = {0};

        require(vka_measure_peak(context, 0, (vka_peak_kind)kind, &peak, &error) == VKA_OK, "%s", error.message);
        assert_non_null(peak.variant);
        assert_in_range(peak.runs, 1, VKA_PEAK_RUNS);
        assert_true(peak.rate > 0);
        double repeat = peak.work / work[kind];
        assert_true(repeat >= 1 && repeat <= 5 * 256 && repeat == (double)(int)repeat);
        for (uint32_t i = 0; i < peak.runs; i++)
            assert_true(peak.wall_ms[i] > 0 && (peak.gpu_ms[i] >= 0 || peak.gpu_ms[i] == -1));
    }
    vka_context_destroy(&context);
}

static void floor_limits(void **state)
{
    vka_context *context = open_context("floor,max_range=1MiB");
    vka_peak peak = {0};
    vka_error error;

    (void)state;
    require(vka_measure_peak(context, 0, VKA_PEAK_READ, &peak, &error) == VKA_OK, "%s", error.message);
    assert_null(strstr(peak.variant, "texel"));
    vka_context_destroy(&context);
}

static void refused(void **state)
{
    vka_context *context = open_context(NULL);
    vka_peak peak;
    vka_error error;

    (void)state;
    assert_int_equal(vka_measure_peak(context, 1, VKA_PEAK_READ, &peak, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_measure_peak(context, 0, VKA_PEAK_COUNT, &peak, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_measure_peak(NULL, 0, VKA_PEAK_READ, &peak, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_measure_peak(context, 0, VKA_PEAK_READ, NULL, &error), VKA_ERR_ARGUMENT);
    assert_string_equal(vka_peak_name(VKA_PEAK_COPY), "copy");
    assert_string_equal(vka_peak_name(VKA_PEAK_COUNT), "unknown");
    vka_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds), cmocka_unit_test(floor_limits),
                                       cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
