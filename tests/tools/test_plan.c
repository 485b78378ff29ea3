/* vkattn plan: tables, JSON, refusals, and every way to name a layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tools/program.h"

static program_result result;

static void tables(void **state)
{
    (void)state;
    program_expect(&result, "plan --model llama3.1-8b --tp 4 --devices 2 --place 0*3,1*1", 0);
    assert_string_equal(result.out,
                        "llama3.1-8b: 32 query heads, 8 KV heads, head size 128, hidden size 4096\n"
                        "attention: causal, RoPE llama3 (base 500000, factor 8, trained length 8192)\n"
                        "grid tp=4 cp=1 dp=1, ranks 4, devices 2, KV policy replicate, weights F16, KV cache F16\n"
                        "\n"
                        "  rank  t  c  d  query heads  KV heads  replica  device\n"
                        "     0  0  0  0         0..7      0..1   1 of 1       0\n"
                        "     1  1  0  0        8..15      2..3   1 of 1       0\n"
                        "     2  2  0  0       16..23      4..5   1 of 1       0\n"
                        "     3  3  0  0       24..31      6..7   1 of 1       1\n"
                        "\n"
                        "  device  ranks  query heads  KV heads    weights  cache/token   up/token  down/token\n"
                        "       0      3           24         6  60.00 MiB     3.00 KiB  16.00 KiB   16.00 KiB\n"
                        "       1      1            8         2  20.00 MiB     1.00 KiB  16.00 KiB   16.00 KiB\n"
                        "\n"
                        "exchanged per token and layer: 64.00 KiB, in 1 exchange a call\n");
    assert_string_equal(result.err, "");
    program_expect(&result, "plan --model deepseek-v3 --tp 2", 0);
    assert_contains(result.out, "head size 192 (V: 128), hidden size 7168\n");
    assert_contains(result.out, "latent replicated on every device, heads sharded");
    assert_contains(result.out, "1.12 KiB"); /* 576 elements a token */
}

static void json_plan(void **state)
{
    json_t *plan = program_json(&result, "plan --model qwen2.5-3b --tp 8 --devices 0,1 --json --weight-dtype f32", 0);
    json_t *ranks = json_object_get(plan, "ranks");
    json_t *devices = json_object_get(plan, "devices");

    (void)state;
    assert_string_equal(program_string(plan, "status"), "ok");
    assert_string_equal(program_string(json_object_get(plan, "layer"), "model"), "qwen2.5-3b");
    assert_true(json_is_null(json_object_get(json_object_get(plan, "layer"), "note")));
    assert_int_equal(program_integer(json_object_get(plan, "grid"), "tp"), 8);
    assert_string_equal(program_string(plan, "kv_policy"), "replicate");
    assert_string_equal(program_string(plan, "weight_dtype"), "F32");
    assert_int_equal(json_array_size(ranks), 8);
    for (size_t i = 0; i < 8; i++) { /* 16 query heads, 2 KV heads: four copies of each */
        json_t *rank = json_array_get(ranks, i);

        assert_int_equal(program_integer(rank, "rank"), i);
        assert_int_equal(program_integer(rank, "q_begin"), 2 * i);
        assert_int_equal(program_integer(rank, "q_count"), 2);
        assert_int_equal(program_integer(rank, "kv_begin"), i / 4);
        assert_int_equal(program_integer(rank, "kv_count"), 1);
        assert_int_equal(program_integer(rank, "replica"), i % 4);
        assert_int_equal(program_integer(rank, "replicas"), 4);
        assert_int_equal(program_integer(rank, "device"), i / 4);
    }
    assert_int_equal(json_array_size(devices), 2);
    assert_int_equal(program_integer(json_array_get(devices, 1), "kv_heads"), 1);
    assert_int_equal(program_integer(json_array_get(devices, 1), "weight_bytes"), 2048 * (8 + 1) * 256 * 4);
    assert_int_equal(program_integer(json_array_get(devices, 1), "cache_bytes_per_token"), 256 * 2);
    assert_int_equal(program_integer(plan, "exchange_bytes_per_token"), 4 * 2048 * 4);
    assert_int_equal(program_integer(plan, "norm_exchange_bytes_per_token"), 0);
    assert_int_equal(program_integer(plan, "exchanges"), 1);
    json_decref(plan);
}

static void refusal(void **state)
{
    (void)state;
    program_expect(&result, "plan --model llama3.2-3b --tp 12", 3);
    assert_string_equal(result.out, "");
    assert_contains(result.err, "vkattn: Layout refused: 24 query heads and 8 KV heads over tp=12");
    assert_contains(result.err, "Valid tp, replicate (KV heads sharded, or each on several ranks): 1, 2, 4, 8, 24");
    program_expect(&result, "plan --model llama3.1-8b --tp 16", 0);
    program_expect(&result, "plan --model llama3.1-8b --tp 16 --kv-policy strict", 3);
    assert_contains(result.err, "(rule kv_replicated)");
    program_expect(&result, "plan --model llama3.1-8b --tp 8 --cp 999999", 3);
    assert_contains(result.err, "(rule grid)");
}

static void json_refusal(void **state)
{
    static const json_int_t replicate[] = {1, 2, 4, 8, 24};
    json_t *refused = program_json(&result, "plan --model llama3.2-3b --tp 12 --dp 2 --json", 3);
    json_t *valid = json_object_get(refused, "valid_tp");

    (void)state;
    assert_string_equal(program_string(refused, "status"), "refused");
    assert_string_equal(program_string(refused, "rule"), "kv_heads");
    assert_int_equal(program_integer(refused, "heads"), 24);
    assert_int_equal(program_integer(refused, "kv_heads"), 8);
    assert_int_equal(program_integer(json_object_get(refused, "grid"), "tp"), 12);
    assert_int_equal(program_integer(json_object_get(refused, "grid"), "cp"), 1);
    assert_int_equal(program_integer(json_object_get(refused, "grid"), "dp"), 2);
    assert_string_equal(program_string(refused, "kv_policy"), "replicate");
    assert_contains(program_string(refused, "message"), "8 % 12 = 8 and 12 % 8 = 4");
    assert_int_equal(json_array_size(json_object_get(valid, "strict")), 4);
    assert_int_equal(json_array_size(json_object_get(valid, "replicate")), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(json_integer_value(json_array_get(json_object_get(valid, "replicate"), i)), replicate[i]);
    json_decref(refused);
}

static void valid_sizes(void **state)
{
    json_t *object;

    (void)state;
    program_expect(&result, "plan --model starcoder2-7b --valid", 0);
    assert_contains(result.out, "\nvalid tp, strict: 1, 2, 4\nvalid tp, replicate: 1, 2, 4, 12, 36\n");
    program_expect(&result, "plan --model starcoder2-7b --valid --tp 7 --place 0*7",
                   0); /* the list is what the caller of a refused tp wants */
    object = program_json(&result, "plan --model starcoder2-7b --valid --json", 0);
    assert_int_equal(json_array_size(json_object_get(json_object_get(object, "valid_tp"), "replicate")), 5);
    assert_null(json_object_get(object, "ranks"));
    json_decref(object);
    program_expect(&result, "plan --heads 12 --kv-heads 8 --head-dim 64 --hidden 768 --valid", 3); /* there is none */
    assert_contains(result.err, "(rule group)");
}

static void geometry(void **state)
{
    (void)state;
    program_expect(&result, "plan --heads 6 --kv-heads 3 --head-dim 10 --v-head-dim 7 --hidden 11 --tp 3", 0);
    assert_contains(result.out, "layer: 6 query heads, 3 KV heads, head size 10 (V: 7), hidden size 11\n");
    program_expect(&result, "plan --heads 12 --hidden 768", 0);
    assert_contains(result.out, "layer: 12 query heads, 12 KV heads, head size 64, hidden size 768\n");
    program_expect(&result, "plan", 2);
    assert_contains(result.err, "which layer? Give --model NAME|DIR|FILE, or at least --heads and --hidden");
    program_expect(&result, "plan --heads 12", 2);
    program_expect(&result, "plan --heads 12 --hidden 700", 2);
    assert_contains(result.err, "700 / 12");
    program_expect(&result, "plan --model gpt2 --heads 12", 2);
    assert_contains(result.err, "--model gives the geometry; leave out --heads");
    program_expect(&result, "plan --model gpt2 --layer 1", 2);
    assert_contains(result.err, "preset 'gpt2' describes a single layer");
    program_expect(&result, "plan --model gtp2", 2);
    assert_contains(result.err, "there is no preset 'gtp2'; near it: gpt2");
}

static void device_counts(void **state)
{
    static const struct {
        const char *devices;
        const char *count; /* NULL: refused */
    } rows[] = {
        {"3", "devices 3,"},
        {"0,1", "devices 2,"},
        {"0,0,name:arc", "devices 3,"},
        {"all", "devices 1,"},
        {"uuid:ab", "devices 1,"},
        {"0", NULL},
        {"''", NULL},
        {"0,", NULL},
        {",0", NULL},
        {"0,,1", NULL},
        {"4097", NULL},
        {"99999999999999999999", NULL},
    };
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(line, sizeof(line), "plan --model gpt2 --tp 4 --devices %s", rows[i].devices);
        program_expect(&result, line, rows[i].count ? 0 : 2);
        if (rows[i].count)
            assert_contains(result.out, rows[i].count);
        else
            assert_contains(result.err, "--devices");
    }
    program_expect(&result, "plan --model gpt2 --tp 4 --devices 2 --place 0*2,2*2", 2);
    assert_contains(result.err, "names device 2; there are 2 devices");
}

/* A configuration file, given as the file, as its folder, and as a folder without a slash. */
static void configuration(void **state)
{
    static const char text[] = "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", "
                               "\"hidden_size\": 96, \"num_attention_heads\": 6, \"num_key_value_heads\": 2, "
                               "\"num_hidden_layers\": 3, \"head_dim\": null}";
    char folder[] = "/tmp/vka_plan_XXXXXX";
    char line[256], path[64];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/config.json", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, sizeof(text) - 1, file), sizeof(text) - 1);
    assert_int_equal(fclose(file), 0);
    snprintf(line, sizeof(line), "plan --model %s --layer 2 --tp 2", path);
    program_expect(&result, line, 0);
    assert_contains(result.out, "6 query heads, 2 KV heads, head size 16, hidden size 96\n");
    snprintf(line, sizeof(line), "plan --model %s --tp 3", folder);
    program_expect(&result, line, 3);
    assert_int_equal(chdir("/tmp"), 0);
    snprintf(line, sizeof(line), "plan --model %s --tp 6", folder + strlen("/tmp/"));
    program_expect(&result, line, 0);
    snprintf(line, sizeof(line), "plan --model %s --layer 3", folder);
    program_expect(&result, line, 2);
    assert_int_equal(remove(path), 0);
    snprintf(line, sizeof(line), "plan --model %s", folder);
    program_expect(&result, line, 1);
    assert_contains(result.err, folder);
    assert_int_equal(rmdir(folder), 0);
    program_expect(&result, "plan --model /nowhere/config.json --json", 1);
    assert_contains(result.out, "\"status\": \"failed\"");
    assert_contains(result.out, "\"code\": \"input/output error\"");
    assert_contains(result.out, "/nowhere/config.json");
}

/* Writes a configuration, and plans or runs it. */
static void with_config(const char *text, const char *command, int status)
{
    char folder[] = "/tmp/vka_plan_XXXXXX";
    char line[256], path[64];
    FILE *file;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/config.json", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    snprintf(line, sizeof(line), "%s --model %s", command, path);
    program_expect(&result, line, status);
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void families(void **state)
{
    static const char gemma2[] = "{\"model_type\":\"gemma2\",\"hidden_size\":96,\"num_attention_heads\":6,"
                                 "\"num_key_value_heads\":2,\"num_hidden_layers\":3,\"head_dim\":16,"
                                 "\"sliding_window\":9,\"attn_logit_softcapping\":50,"
                                 "\"query_pre_attn_scalar\":64}";
    static const char llama4[] = "{\"model_type\":\"llama4_text\",\"hidden_size\":96,\"num_attention_heads\":6,"
                                 "\"num_key_value_heads\":2,\"num_hidden_layers\":3,\"head_dim\":16,"
                                 "\"attn_temperature_tuning\":true}";
    static const char t5[] = "{\"model_type\":\"t5\",\"d_model\":96,\"num_heads\":6,\"num_layers\":3,\"d_kv\":8}";
    static const char cosmos3[] =
        "{\"model_type\":\"cosmos3\",\"hidden_size\":96,\"num_attention_heads\":6,"
        "\"num_key_value_heads\":2,\"num_hidden_layers\":3,\"head_dim\":128,\"rope_theta\":5000000}";

    (void)state;
    with_config(gemma2, "plan", 0);
    assert_contains(result.out, "attention: causal, RoPE default (base 10000), scale 0.125, softcap 50, window 9\n");
    with_config(gemma2, "plan --layer 1", 0);
    assert_contains(result.out, "scale 0.125, softcap 50\n");
    with_config(llama4, "plan --tp 2", 0);
    assert_contains(result.out, "\nlaid out, not run: attention in chunks");
    assert_null(strstr(result.out, "attention: causal"));
    with_config(llama4, "plan --json", 0);
    assert_contains(result.out, "\"not_run\": \"attention in chunks");
    with_config(llama4, "run", 1);
    assert_contains(result.err, "laid out, not run: attention in chunks");
    with_config(t5, "plan", 1);
    assert_contains(result.err, "relative position bias");
    with_config(t5, "plan --block cross --layer 2", 0);
    assert_contains(result.out, "attention: cross attention, no RoPE, scale 1\n");
    with_config(cosmos3, "plan --tp 6", 3);
    assert_contains(result.err, "never replicates");
    with_config(cosmos3, "plan --block cross", 0);
    assert_contains(result.out, "attention: full, QK-norm per head, RoPE default (base 5000000, sections 24 20 20 "
                                "interleaved)\n");
    program_expect(&result, "plan --model gpt2 --block cross", 2);
}

/* A path that is no UTF-8 still gives valid JSON. */
static void hostile_names(void **state)
{
    json_t *object = program_json(&result, "plan --json --model \"$(printf 'x/\\377\\376')\"", 1);

    (void)state;
    assert_contains(program_string(object, "message"), "x/?"
                                                       "?");
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),        cmocka_unit_test(json_plan),     cmocka_unit_test(refusal),
        cmocka_unit_test(json_refusal),  cmocka_unit_test(valid_sizes),   cmocka_unit_test(geometry),
        cmocka_unit_test(device_counts), cmocka_unit_test(configuration), cmocka_unit_test(families),
        cmocka_unit_test(hostile_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
