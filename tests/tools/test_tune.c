/* vkattn tune on both software devices: tuning, listing, explaining and forgetting, in a cache folder of the test's
 * own. Which variant is faster is not asserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "tools/program.h"

#define SMALL "tune --heads 4 --kv-heads 2 --head-dim 16 --hidden 64 --tokens 8 --keys 32 --budget-ms 1"

enum { SHAPES = 5 }; /* gemv for 1 and 4 rows, gemm for 8, prefill, decode */

static program_result result;

/* Both devices are there, each with a file that exists or not. */
static json_t *devices_of(json_t *report, bool kept)
{
    json_t *devices = json_object_get(report, "devices");

    assert_string_equal(program_string(report, "status"), "ok");
    assert_int_equal(json_array_size(devices), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(vka_is_file(program_string(json_array_get(devices, i), "file")), kept);
    return devices;
}

static void nothing_is_kept_at_first(void **state)
{
    json_t *report, *devices;

    (void)state;
    assert_non_null(getenv("XDG_CACHE_HOME"));
    program_expect(&result, "tune --forget", 0); /* of a run that failed */
    report = program_json(&result, "tune --list --json", 0);
    devices = devices_of(report, false);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(json_array_size(json_object_get(json_array_get(devices, i), "choices")), 0);
    json_decref(report);
    program_expect(&result, "tune --list", 0);
    assert_contains(result.out, "nothing is kept in ");
}

static void tuning_is_reported_and_kept(void **state)
{
    json_t *report = program_json(&result, SMALL " --json", 0);
    json_t *devices = devices_of(report, true);

    (void)state;
    for (size_t d = 0; d < 2; d++) {
        json_t *results = json_object_get(json_array_get(devices, d), "results");
        size_t chosen = 0;

        for (size_t i = 0; i < json_array_size(results); i++) {
            json_t *row = json_array_get(results, i);

            assert_true(strlen(program_string(row, "variant")) > 0);
            assert_true(json_real_value(json_object_get(row, "median_ms")) > 0 || program_integer(row, "samples") == 0);
            chosen += json_is_true(json_object_get(row, "chosen"));
        }
        assert_int_equal(chosen, SHAPES);
    }
    json_decref(report);
    report = program_json(&result, "tune --list --json", 0);
    devices = devices_of(report, true);
    for (size_t d = 0; d < 2; d++)
        assert_int_equal(json_array_size(json_object_get(json_array_get(devices, d), "choices")), SHAPES);
    json_decref(report);
    program_expect(&result, "devices --explain", 0);
    program_expect(&result, "tune --forget", 0);
    assert_contains(result.out, "forgotten: ");
    report = program_json(&result, "tune --list --json", 0);
    devices_of(report, false);
    json_decref(report);
}

static void text_has_a_table(void **state)
{
    (void)state;
    program_expect(&result, SMALL " --devices 0", 0);
    assert_contains(result.out, "device 0, ");
    assert_contains(result.out, "  kernel   dtype  shape");
    assert_contains(result.out, "  rows=5-32 ");
    assert_contains(result.out, "chosen");
    assert_contains(result.out, "kept in ");
    program_expect(&result, "tune --list --devices 0", 0);
    assert_contains(result.out, "  head=1-64 ");
    program_expect(&result, "tune --forget --devices 0", 0);
}

static void wrong_arguments(void **state)
{
    (void)state;
    program_expect(&result, "tune --list --forget", 2);
    assert_contains(result.err, "exclude each other");
    program_expect(&result, "tune --list --heads 4", 2);
    assert_contains(result.err, "leave out the layer");
    program_expect(&result, "tune --budget-ms 0", 2);
    program_expect(&result, "tune --model no-such-model", 2);
    program_expect(&result, "tune --devices 9", 2);
}

static void no_place_for_files(void **state)
{
    (void)state;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    program_expect(&result, "tune --list", 1);
    assert_contains(result.err, "set HOME or XDG_CACHE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_at_first), cmocka_unit_test(tuning_is_reported_and_kept),
        cmocka_unit_test(text_has_a_table),         cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(no_place_for_files), /* changes the environment: last */
    };

    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
