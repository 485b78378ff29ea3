/* vkattn run on both software devices: the report, its JSON, checkpoints, refusals before any device, exit statuses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/program.h"
#include "vkattn/model.h"

static program_result result;

/* With VKA_TEST_VALIDATION set, every run has the validation layer on, and any message of it fails the run. */
static const char *with_validation(const char *arguments)
{
    static char line[1024];
    const char *wanted = getenv("VKA_TEST_VALIDATION");

    snprintf(line, sizeof(line), "%s%s", arguments, wanted && strcmp(wanted, "1") == 0 ? " --validation" : "");
    return line;
}

static void small_default(void **state)
{
    (void)state;
    program_expect(&result, "run", 0);
    assert_contains(result.out, "qwen3-0.6b: 16 query heads, 8 KV heads, head size 128, hidden size 1024\n");
    assert_contains(result.out, "tp=2 on 2 devices, ");
    assert_contains(result.out, "llvmpipe");
    assert_contains(result.out, "SwiftShader");
    assert_contains(result.out, "  rank  t  c  d  query heads  KV heads  replica  device\n");
    assert_contains(result.out, "prefill: 64 tokens in ");
    assert_contains(result.out, "decode: 8 steps of 1 token, ");
    assert_contains(result.out, "\nPASSED: largest error/bound ");
    assert_string_equal(result.err, "");
}

static double number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}

/* Every stage of every device has a time; what was computed has operations. */
static void assert_stages(json_t *stages)
{
    static const struct {
        const char *name;
        size_t entries;
        bool computes;
    } rows[] = {{"upload", 2, false}, {"qkv", 2, true},       {"epilogue", 2, false}, {"attention", 2, true},
                {"output", 2, true},  {"download", 2, false}, {"add", 1, true},       {"return", 0, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *entries = json_object_get(stages, rows[i].name);

        assert_int_equal(json_array_size(entries), rows[i].entries);
        for (size_t d = 0; d < rows[i].entries; d++) {
            json_t *entry = json_array_get(entries, d);

            assert_true(number(json_object_get(entry, "prefill"), "ms") >= 0);
            assert_true(number(json_object_get(entry, "decode"), "ms") >= 0);
            if (rows[i].computes)
                assert_true(number(json_object_get(entry, "prefill"), "flops") > 0);
        }
    }
}

/* More ranks than KV heads, a ragged batch, odd sizes. */
static void json_report(void **state)
{
    json_t *report = program_json(
        &result,
        with_validation("run --json --verify --heads 16 --kv-heads 4 --head-dim 12 --v-head-dim 20 --hidden 70 --tp 8 "
                        "--place 0*3,1*5 --tokens 21 --decode 2 --sequences 3 --page-size 4"),
        0);
    json_t *verify = json_object_get(report, "verify");
    json_t *checks = json_object_get(verify, "stages");
    uint64_t rows = 21 + 14 + 7 + 2 * 3;

    (void)state;
    assert_string_equal(program_string(report, "status"), "ok");
    assert_int_equal(json_array_size(json_object_get(report, "devices")), 2);
    assert_int_equal(json_array_size(json_object_get(report, "ranks")), 8);
    assert_int_equal(program_integer(json_array_get(json_object_get(report, "ranks"), 3), "device"), 1);
    assert_int_equal(program_integer(report, "prefill_tokens"), 42);
    assert_true(number(report, "prefill_ms") > 0);
    assert_true(number(report, "decode_ms_per_token") > 0);
    assert_stages(json_object_get(report, "stages"));
    assert_true(json_is_true(json_object_get(report, "repeated")));
    assert_int_equal(program_integer(report, "error_messages"), 0);
    assert_true(json_is_true(json_object_get(verify, "pass")));
    assert_true(number(verify, "max_error_over_bound") <= 1);
    assert_true(number(verify, "nmse") < 1e-6);
    /* every element: all query heads once, KV heads once per device that has them, the sum once */
    assert_int_equal(program_integer(json_object_get(checks, "attention"), "elements"), rows * 16 * 20);
    assert_int_equal(program_integer(json_object_get(checks, "sum"), "elements"), rows * 70);
    assert_int_equal(program_integer(json_object_get(checks, "output"), "elements"), rows * 70 * 2);
    assert_int_equal(program_integer(json_object_get(checks, "qkv"), "elements"), rows * (16 * 12 + 5 * (12 + 20)));
    json_decref(report);
}

/* On one device: SwiftShader compiles everything anew in every process, which takes seconds. */
static void forms_of_a_layer(void **state)
{
    static const char *const lines[] = {
        "--devices name:llvmpipe --reproducible --tp 4 --weight-dtype bf16 --cache-dtype f32 --sequences 2 --json",
        "--devices name:llvmpipe --pretend floor --tp 2 --weight-dtype f32 --json",
        "--pretend max_alloc=1MiB --tp 2 --devices name:llvmpipe --decode 0 --json",
        "--devices name:llvmpipe,name:llvmpipe --tp 4 --place 0*1,1*2,0*1 --json",
    };
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        json_t *report, *verify;

        snprintf(line, sizeof(line), "run --verify --heads 8 --kv-heads 4 --hidden 96 --tokens 19 --decode 1 %s",
                 lines[i]);
        report = program_json(&result, with_validation(line), 0);
        verify = json_object_get(report, "verify");
        assert_true(json_is_true(json_object_get(verify, "pass")));
        json_decref(report);
    }
}

/* ---- checkpoints ---- */

static const vka_named_tensor *find(vka_tensor_file *file, const char *name)
{
    const vka_named_tensor *tensor = vka_tensor_file_find(file, name);

    if (!tensor)
        fail_msg("no tensor '%s'", name);
    return tensor;
}

/* Rows of two tensors, one after the other. */
static float *join(vka_tensor_file *file, const char *first, const char *second, uint64_t shape[2])
{
    const vka_named_tensor *a = find(file, first), *b = find(file, second);
    size_t head = (size_t)(a->shape[0] * a->shape[1]), tail = (size_t)(b->shape[0] * b->shape[1]);
    float *rows = malloc((head + tail) * sizeof(float));

    assert_non_null(rows);
    memcpy(rows, a->data, head * sizeof(float));
    memcpy(rows + head, b->data, tail * sizeof(float));
    shape[0] = a->shape[0] + b->shape[0];
    shape[1] = a->shape[1];
    return rows;
}

/* A checkpoint's layer over both devices, from a file to a file, against what Hugging Face transformers made of it. */
static void checkpoint(void **state)
{
    char folder[] = "/tmp/vka_run_XXXXXX";
    char input[64], output[64], line[512];
    vka_tensor_file *reference = NULL, *written = NULL;
    uint64_t shape[2];
    vka_named_tensor tensor = {.name = "hidden", .dtype = VKA_F32, .dims = 2};
    float *rows, *expected;
    const float *got;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(input, sizeof(input), "%s/in", folder);
    snprintf(output, sizeof(output), "%s/out", folder);
    assert_int_equal(vka_tensor_file_open(&reference, VKA_TEST_DATA "/hf/qwen2/reference-layer1.safetensors", NULL), 0);
    rows = join(reference, "prefill_input", "decode_input", shape);
    memcpy(tensor.shape, shape, sizeof(shape));
    tensor.data = rows;
    assert_int_equal(vka_tensor_file_write(input, &tensor, 1, NULL), VKA_OK);
    snprintf(line, sizeof(line),
             "run --model " VKA_TEST_DATA "/hf/qwen2 --layer 1 --tp 2 --cache-dtype f32 --decode 6 --verify "
             "--input %s --output %s",
             input, output);
    program_expect(&result, with_validation(line), 0);
    assert_contains(result.out, "prefill: 24 tokens in ");
    assert_contains(result.out, "BF16 weights, F32 KV cache");
    assert_int_equal(vka_tensor_file_open(&written, output, NULL), VKA_OK);
    assert_memory_equal(find(written, "hidden")->shape, shape, sizeof(shape));
    expected = join(reference, "prefill_output", "decode_output", shape);
    got = find(written, "hidden")->data;
    for (uint64_t i = 0; i < shape[0] * shape[1]; i++)
        if (!(fabsf(got[i] - expected[i]) <= 1e-5f))
            fail_msg("element %llu is %g, expected %g", (unsigned long long)i, (double)got[i], (double)expected[i]);
    vka_tensor_file_close(&reference);
    vka_tensor_file_close(&written);
    free(rows);
    free(expected);
    assert_int_equal(remove(input) | remove(output) | rmdir(folder), 0);
}

/* ---- what ends early ---- */

/* With a driver list that names nothing: were a device looked for, the status would be another. */
static void refused_before_any_device(void **state)
{
    json_t *refused;

    (void)state;
    assert_int_equal(setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1), 0);
    assert_int_equal(setenv("VK_DRIVER_FILES", "/nonexistent.json", 1), 0);
    program_expect(&result, "run --model qwen2-0.5b --tp 7", 3);
    assert_contains(result.err, "Layout refused: 14 query heads and 2 KV heads over tp=7");
    refused = program_json(&result, "run --model llama3.1-8b --tp 16 --kv-policy strict --json", 3);
    assert_string_equal(program_string(refused, "status"), "refused");
    assert_string_equal(program_string(refused, "rule"), "kv_replicated");
    json_decref(refused);
    program_expect(&result, "run --cp 2", 1);
    assert_contains(result.err, "runs tp only");
    program_expect(&result, "run", 1);
    assert_string_equal(result.out, "");
    assert_contains(result.err, "mesa-vulkan-drivers");
}

static void usage(void **state)
{
    (void)state;
    program_expect(&result, "run --tokens 0", 2);
    program_expect(&result, "run --tokens 4 --sequences 5", 2);
    assert_contains(result.err, "--sequences is 5, but --tokens 4");
    program_expect(&result, "run --input x --tokens 4", 2);
    assert_contains(result.err, "leave out --tokens");
    program_expect(&result, "run --devices 17", 2);
    program_expect(&result, "run --heads 4 --hidden 32 --place 0*1", 2);
    program_expect(&result, "run --input /nonexistent", 1);
    assert_contains(result.err, "/nonexistent");
    program_expect(&result, "run --input " VKA_TEST_DATA "/hf/qwen2/model.safetensors", 1);
    assert_contains(result.err, "none is called hidden");
}

/* Blocks of an encoder with a decoder, from one checkpoint. */
static void blocks(void **state)
{
    (void)state;
    program_expect(
        &result, with_validation("run --model " VKA_TEST_DATA "/hf/whisper --block encoder --tp 4 --tokens 9 --verify"),
        0);
    assert_contains(result.out, "\nPASSED: largest error/bound ");
    program_expect(&result,
                   with_validation("run --model " VKA_TEST_DATA "/hf/whisper --block cross --tp 4 --tokens 9 "
                                   "--sequences 2 --decode 3"),
                   0);
    assert_contains(result.out, "decode: 3 steps of 2 tokens, ");
    program_expect(&result, "run --model " VKA_TEST_DATA "/hf/t5 --block cross --verify", 1);
    assert_contains(result.err, "--verify does not judge cross attention");
    program_expect(&result, "run --model " VKA_TEST_DATA "/hf/t5", 1);
    assert_contains(result.err, "relative position bias");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_default),
        cmocka_unit_test(json_report),
        cmocka_unit_test(forms_of_a_layer),
        cmocka_unit_test(checkpoint),
        cmocka_unit_test(usage),
        cmocka_unit_test(blocks),
        cmocka_unit_test(refused_before_any_device), /* takes the devices away */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
