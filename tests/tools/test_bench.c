/* vkattn bench on one device: the JSON lines, the table, cases that cannot run, and what is refused. No time is
 * judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tools/program.h"

static program_result result;

enum { MOST_LINES = 8 };

/* Parses every line of `text`; returns how many there are. */
static size_t parse_lines(const char *text, json_t *lines[MOST_LINES])
{
    size_t count = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        json_error_t error;

        assert_true(count < MOST_LINES && text[length] == '\n');
        lines[count] = json_loadb(text, length, 0, &error);
        if (!lines[count])
            fail_msg("%s in: %.*s", error.text, (int)length, text);
        count++;
        text += length + 1;
    }
    return count;
}

static void release(json_t *lines[MOST_LINES], size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(lines[i]);
}

static double number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}

static void assert_null_key(json_t *object, const char *key)
{
    if (!json_is_null(json_object_get(object, key)))
        fail_msg("'%s' is not null", key);
}

/* A number that cannot be known here, but is more than 0. */
static void assert_positive(json_t *object, const char *key)
{
    if (!(number(object, key) > 0))
        fail_msg("'%s' is %g", key, number(object, key));
}

static void check_environment(json_t *line)
{
    json_t *devices = json_object_get(line, "devices");

    assert_string_equal(program_string(line, "record"), "environment");
    assert_string_equal(program_string(line, "schema"), "vkattn-bench");
    assert_true(number(line, "schema_version") == 1);
    assert_string_equal(program_string(line, "version"), "0.1.0");
    assert_string_equal(json_string_value(json_array_get(json_object_get(line, "argv"), 0)), "--quick");
    assert_true(strlen(program_string(json_object_get(line, "machine"), "os")) > 0);
    assert_positive(json_object_get(line, "machine"), "cpus");
    assert_true(strlen(program_string(json_object_get(line, "variables"), "VK_ICD_FILENAMES")) > 0);
    assert_int_equal(json_array_size(devices), 1);
    assert_true(strlen(program_string(json_array_get(devices, 0), "driver_info")) > 0);
    assert_int_equal(strlen(program_string(json_array_get(devices, 0), "device_uuid")), 32);
    assert_null_key(line, "variants");
}

static void check_spread(json_t *line, const char *name)
{
    json_t *stats = json_object_get(line, name);

    assert_positive(stats, "min");
    assert_true(number(stats, "min") <= number(stats, "q1") && number(stats, "q1") <= number(stats, "median"));
    assert_true(number(stats, "median") <= number(stats, "q3") && number(stats, "q3") <= number(stats, "max"));
}

static void json_lines(void **state)
{
    json_t *lines[MOST_LINES];
    size_t count;

    (void)state;
    program_expect(&result, "bench --quick --filter gemv.m1.k64.n64.f32 --jsonl -", 0);
    assert_string_equal(result.err, "");
    count = parse_lines(result.out, lines);
    assert_int_equal(count, 2);
    check_environment(lines[0]);
    json_t *line = lines[1], *device = json_array_get(json_object_get(lines[0], "devices"), 0);
    assert_string_equal(program_string(line, "record"), "case");
    assert_string_equal(program_string(line, "name"), "gemv.m1.k64.n64.f32");
    assert_string_equal(program_string(line, "device"), program_string(device, "name"));
    assert_true(number(line, "device_index") == 0);
    assert_string_equal(program_string(line, "status"), "ok");
    assert_null_key(line, "reason");
    assert_memory_equal(program_string(line, "variant"), "gemv_f32_", 9);
    check_spread(line, "gpu");
    check_spread(line, "wall");
    assert_true(number(line, "gpu_ms") == number(json_object_get(line, "gpu"), "median"));
    assert_true(number(line, "wall_ms") == number(json_object_get(line, "wall"), "median"));
    assert_in_range((int)number(line, "samples"), 1, 3);
    assert_int_equal(json_array_size(json_object_get(line, "gpu_samples_ms")), (int)number(line, "samples"));
    assert_int_equal(json_array_size(json_object_get(line, "wall_samples_ms")), (int)number(line, "samples"));
    assert_true(number(line, "flops") == 2 * 64 * 64);
    assert_true(number(line, "bytes") == (64 * 64 + 64 + 64) * 4);
    assert_positive(line, "gflops");
    assert_positive(line, "gbytes_per_s");
    assert_string_equal(program_string(line, "peak"), "read");
    assert_positive(line, "peak_rate");
    assert_positive(line, "percent_of_peak");
    assert_string_equal(program_string(line, "command"),
                        "vkattn bench --devices 0 --filter gemv.m1.k64.n64.f32 --samples 3 --quick");
    release(lines, count);
}

/* What could not run has a reason and nulls, and is no failure of the command. */
static void unsupported(void **state)
{
    json_t *lines[MOST_LINES];
    size_t count;

    (void)state;
    program_expect(&result, "bench --quick --filter exchange.sum.2dev.4KiB --jsonl -", 0);
    count = parse_lines(result.out, lines);
    assert_int_equal(count, 2);
    assert_string_equal(program_string(lines[1], "status"), "unsupported");
    assert_contains(program_string(lines[1], "reason"), "needs 2 devices, 1 chosen");
    assert_null_key(lines[1], "device");
    assert_null_key(lines[1], "gpu_ms");
    assert_null_key(lines[1], "wall_ms");
    assert_null_key(lines[1], "gbytes_per_s");
    assert_true(number(lines[1], "samples") == 0);
    release(lines, count);
}

/* The same device twice is two devices. */
static void exchange(void **state)
{
    json_t *lines[MOST_LINES];
    size_t count;

    (void)state;
    program_expect(&result, "bench --quick --devices 0,0 --filter exchange.sum.2dev.64KiB,memcpy.64KiB --jsonl -", 0);
    count = parse_lines(result.out, lines);
    assert_int_equal(count, 3);
    assert_string_equal(program_string(lines[1], "variant"), "in_place");
    assert_positive(lines[1], "wall_ms");
    assert_null_key(lines[1], "gpu_ms");
    assert_positive(lines[1], "memcpy_ms");
    assert_positive(lines[1], "over_memcpy");
    assert_true(number(lines[1], "bytes") == 4 * 65536);
    assert_string_equal(program_string(lines[2], "name"), "memcpy.64KiB");
    assert_null_key(lines[2], "peak");
    release(lines, count);
}

static void attention_and_layer(void **state)
{
    json_t *lines[MOST_LINES];
    size_t count;

    (void)state;
    program_expect(
        &result,
        "bench --quick --filter attention.prefill.h4.kv2.d16.q8.k8.causal.f32,attention.decode.h4.kv2.d16.q1.k40.f16,"
        "layer.decode.qwen2-0.5b.tp2.k3,layer.first.qwen2-0.5b.tp1,peak.fma.f32 --samples 1 --pretend max_range=16MiB "
        "--jsonl -",
        0);
    count = parse_lines(result.out, lines);
    assert_int_equal(count, 6);
    assert_memory_equal(program_string(lines[1], "variant"), "prefill_f32_", 12);
    assert_true(number(lines[1], "flops") == 4.0 * 16 * 4 * 36);
    assert_string_equal(program_string(lines[1], "peak"), "fma.f32");
    assert_memory_equal(program_string(lines[2], "variant"), "decode_f16_", 11);
    assert_contains(program_string(lines[3], "variant"), "gemv_f16_");
    assert_contains(program_string(lines[3], "variant"), "+decode_f16_");
    assert_true(number(lines[3], "kernel_sum_ms") == number(lines[3], "gpu_ms"));
    assert_positive(lines[3], "wall_over_kernels");
    assert_positive(lines[3], "flops");
    assert_null_key(lines[4], "gpu_ms");
    assert_positive(lines[4], "wall_ms");
    assert_positive(lines[4], "pipelines_ms");
    assert_positive(lines[5], "gflops");
    assert_null_key(lines[5], "gbytes_per_s");
    assert_null_key(lines[5], "percent_of_peak");
    for (size_t i = 1; i < count; i++)
        assert_string_equal(program_string(lines[i], "status"), "ok");
    release(lines, count);
}

/* A layout is judged by the layer, so a case may be refused like any call; a preset that is not there is an error. */
static void cases_that_fail(void **state)
{
    json_t *lines[MOST_LINES];
    size_t count;

    (void)state;
    program_expect(
        &result, "bench --quick --filter layer.decode.qwen2-0.5b.tp3,layer.decode.qwen9.tp1,peak.fma.f32 --jsonl -", 1);
    count = parse_lines(result.out, lines);
    assert_int_equal(count, 4);
    assert_string_equal(program_string(lines[1], "status"), "unsupported");
    assert_contains(program_string(lines[1], "reason"), "Layout refused");
    assert_string_equal(program_string(lines[2], "status"), "error");
    assert_contains(program_string(lines[2], "reason"), "qwen9");
    assert_contains(result.err, "layer.decode.qwen9.tp1");
    assert_string_equal(program_string(lines[3], "status"), "ok"); /* the others still run */
    release(lines, count);
}

static void table_and_file(void **state)
{
    char path[] = "/tmp/vka_bench_XXXXXX", arguments[256], text[65536];
    json_t *lines[MOST_LINES];
    int file = mkstemp(path);
    size_t length, count;
    FILE *stream;

    (void)state;
    assert_true(file >= 0);
    close(file);
    snprintf(arguments, sizeof(arguments),
             "bench --quick --filter gemm.m8.k64.n64.bf16 --variants gemm_bf16_floor --pretend floor --jsonl %s", path);
    program_expect(&result, arguments, 0);
    assert_contains(result.out, "GFLOP/s");
    assert_contains(result.out, "gemm.m8.k64.n64.bf16");
    assert_contains(result.out, "gemm_bf16_floor");
    stream = fopen(path, "r");
    assert_non_null(stream);
    length = fread(text, 1, sizeof(text) - 1, stream);
    text[length] = '\0';
    fclose(stream);
    unlink(path);
    count = parse_lines(text, lines);
    assert_int_equal(count, 2);
    assert_string_equal(program_string(lines[0], "pretend"), "floor");
    assert_string_equal(program_string(lines[1], "variant"), "gemm_bf16_floor");
    assert_contains(program_string(lines[1], "command"), "--variants 'gemm_bf16_floor' --pretend 'floor'");
    release(lines, count);
}

static void lists(void **state)
{
    (void)state;
    program_expect(&result, "bench --list --filter 'peak.*'", 0);
    assert_string_equal(result.out, "peak.fma.f32\npeak.read\npeak.copy\n");
    program_expect(&result, "bench --list", 0);
    assert_contains(result.out, "layer.decode.llama3.1-8b.tp8\n");
}

static void refused(void **state)
{
    (void)state;
    program_expect(&result, "bench --filter no.such.case", 2);
    assert_contains(result.err, "'no.such.case' selects no case");
    program_expect(&result, "bench --list --filter peak.reed", 2);
    assert_contains(result.err, "Did you mean peak.read?");
    program_expect(&result, "bench --samples 0", 2);
    program_expect(&result, "bench --devices 7 --filter peak.read", 2);
    program_expect(&result, "bench --variants nonsense --filter peak.read", 2);
    program_expect(&result, "bench --filter memcpy.1KiB --jsonl /no/such/folder/file", 1);
    assert_contains(result.err, "cannot be written");
    assert_string_equal(result.out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_lines), cmocka_unit_test(unsupported),         cmocka_unit_test(exchange),
        cmocka_unit_test(lists),      cmocka_unit_test(attention_and_layer), cmocka_unit_test(cases_that_fail),
        cmocka_unit_test(refused),    cmocka_unit_test(table_and_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
