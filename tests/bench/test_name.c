/* Names of benchmark cases: what they mean, what is none, and how a filter selects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bench/catalogue.h"
#include "support/require.h"

static bench_case parse(const char *name)
{
    bench_case parsed;

    require(bench_case_parse(name, &parsed), "'%s' is not understood", name);
    assert_string_equal(parsed.name, name);
    return parsed;
}

static void attention(void **state)
{
    bench_case prefill = parse("attention.prefill.h32.kv8.d128.q512.k1024.causal.f16");
    bench_case whole = parse("attention.prefill.h4.kv4.d80.q17.k33.f32");
    bench_case decode = parse("attention.decode.h32.kv8.d128.q1.k16384.f16");

    (void)state;
    assert_int_equal(prefill.kind, BENCH_ATTENTION_PREFILL);
    assert_int_equal(prefill.heads, 32);
    assert_int_equal(prefill.kv_heads, 8);
    assert_int_equal(prefill.head_dim, 128);
    assert_int_equal(prefill.rows, 512);
    assert_int_equal(prefill.keys, 1024);
    assert_int_equal(prefill.causal, 1);
    assert_int_equal(prefill.dtype, VKA_F16);
    assert_int_equal(whole.causal, 0);
    assert_int_equal(whole.head_dim, 80);
    assert_int_equal(whole.dtype, VKA_F32);
    assert_int_equal(decode.kind, BENCH_ATTENTION_DECODE);
    assert_int_equal(decode.rows, 1);
    assert_int_equal(decode.keys, 16384);
}

static void projections(void **state)
{
    bench_case gemm = parse("gemm.m512.k4096.n6144.bf16");
    bench_case gemv = parse("gemv.m1.k64.n63.f32");

    (void)state;
    assert_int_equal(gemm.kind, BENCH_GEMM);
    assert_int_equal(gemm.rows, 512);
    assert_int_equal(gemm.depth, 4096);
    assert_int_equal(gemm.cols, 6144);
    assert_int_equal(gemm.dtype, VKA_BF16);
    assert_int_equal(gemv.kind, BENCH_GEMV);
    assert_int_equal(gemv.rows, 1);
    assert_int_equal(gemv.cols, 63);
}

static void layers(void **state)
{
    bench_case decode = parse("layer.decode.llama3.1-8b.tp8");
    bench_case longer = parse("layer.decode.llama3.1-8b.tp2.k4096");
    bench_case prefill = parse("layer.prefill.qwen2.5-3b.tp1.m128");
    bench_case first = parse("layer.first.a.tp3.b.tp1"); /* the last part counts */

    (void)state;
    assert_int_equal(decode.kind, BENCH_LAYER_DECODE);
    assert_string_equal(decode.preset, "llama3.1-8b");
    assert_int_equal(decode.tp, 8);
    assert_int_equal(decode.rows, 1);
    assert_int_equal(decode.keys, BENCH_DEFAULT_KEYS);
    assert_int_equal(longer.tp, 2);
    assert_int_equal(longer.keys, 4096);
    assert_string_equal(longer.preset, "llama3.1-8b");
    assert_int_equal(prefill.kind, BENCH_LAYER_PREFILL);
    assert_string_equal(prefill.preset, "qwen2.5-3b");
    assert_int_equal(prefill.rows, 128);
    assert_int_equal(prefill.keys, 0);
    assert_int_equal(first.kind, BENCH_LAYER_FIRST);
    assert_string_equal(first.preset, "a.tp3.b");
    assert_int_equal(first.tp, 1);
}

static void others(void **state)
{
    bench_case exchange = parse("exchange.sum.2dev.16MiB");

    (void)state;
    assert_int_equal(exchange.kind, BENCH_EXCHANGE);
    assert_int_equal(exchange.devices, 2);
    assert_int_equal(exchange.bytes, 16 << 20);
    assert_int_equal(parse("memcpy.3KiB").bytes, 3 << 10);
    assert_true(parse("memcpy.5GiB").bytes == 5ull << 30);
    assert_int_equal(parse("peak.fma.f32").kind, BENCH_PEAK);
    assert_int_equal(parse("peak.fma.f32").peak, VKA_PEAK_FMA_F32);
    assert_int_equal(parse("peak.read").peak, VKA_PEAK_READ);
    assert_int_equal(parse("peak.copy").peak, VKA_PEAK_COPY);
}

static void refused(void **state)
{
    static const char *const names[] = {
        "",
        "gemm",
        "gemm.m1.k2.n3",
        "gemm.m1.k2.n3.f8",
        "gemm.m0.k2.n3.f16",
        "gemm.m01.k2.n3.f16",
        "gemm.m.k2.n3.f16",
        "gemm.m-1.k2.n3.f16",
        "gemm.m1.k2.n3.f16.",
        "gemm.m1.k2.n3.f16x",
        "gemm.m2147483648.k2.n3.f16",
        "gemm.m99999999999999999999.k2.n3.f16",
        "attention.prefill.h32.kv5.d128.q512.k512.f16",  /* no whole groups */
        "attention.prefill.h32.kv8.d128.q512.k512.bf16", /* no such cache */
        "attention.decode.h32.kv8.d128.q4.k512.f16",     /* would run the prefill kernel */
        "attention.decode.h32.kv8.d128.q1.k512.causal.f16",
        "layer.decode..tp1",
        "layer.decode.tp1",
        "layer.prefill.llama3.1-8b.tp1",
        "exchange.sum.2dev.16MB",
        "exchange.sum.2dev.16",
        "memcpy.KiB",
        "peak.write",
        "peak.",
    };
    char longest[4 * BENCH_NAME];
    bench_case parsed;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        require(!bench_case_parse(names[i], &parsed), "'%s' is understood", names[i]);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_false(bench_case_parse(longest, &parsed));
    memcpy(longest, "layer.decode.", 13);
    memcpy(longest + BENCH_NAME - 6, ".tp1", 5);
    assert_false(bench_case_parse(longest, &parsed)); /* too long a preset */
}

static void globs(void **state)
{
    (void)state;
    assert_true(bench_glob("*", ""));
    assert_true(bench_glob("gemm.*.f16", "gemm.m512.k4096.n6144.f16"));
    assert_false(bench_glob("gemm.*.f16", "gemm.m512.k4096.n6144.bf16"));
    assert_true(bench_glob("*.?f16", "a.bf16"));
    assert_true(bench_glob("a*b*c", "aXbbYcbc"));
    assert_false(bench_glob("a*b*c", "aXbbYcbd"));
    assert_false(bench_glob("", "a"));
    assert_false(bench_glob("abc", "ab"));
}

static size_t select_cases(const char *filter, bench_case *cases)
{
    size_t count = 0;
    vka_error error;

    require(bench_select(filter, cases, &count, &error) == VKA_OK, "%s", error.message);
    return count;
}

static void selection(void **state)
{
    bench_case cases[BENCH_MAX_CASES];
    size_t all = 0;

    (void)state;
    while (bench_builtin(all))
        parse(bench_builtin(all++));
    assert_int_equal(select_cases(NULL, cases), all);
    assert_int_equal(select_cases("*", cases), all);
    assert_int_equal(select_cases("*,peak.*,peak.read", cases), all); /* each once */
    assert_int_equal(select_cases("peak.read,peak.*", cases), 3);
    assert_string_equal(cases[0].name, "peak.read");
    assert_string_equal(cases[1].name, "peak.fma.f32");
    assert_int_equal(select_cases("gemv.m2.k64.n64.f32,peak.copy", cases), 2);
    assert_int_equal(cases[0].rows, 2);
}

static void refuse_filter(const char *filter, const char *text)
{
    bench_case cases[BENCH_MAX_CASES];
    size_t count = 77;
    vka_error error = {0};

    assert_int_equal(bench_select(filter, cases, &count, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
    assert_int_equal(count, 77);
}

static void refused_filters(void **state)
{
    (void)state;
    refuse_filter("nothing.*", "'nothing.*' selects no case");
    refuse_filter("peak.reed", "Did you mean peak.read?");
    refuse_filter("", "0 characters");
    refuse_filter("peak.read,", "0 characters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention), cmocka_unit_test(projections),     cmocka_unit_test(layers),
        cmocka_unit_test(others),    cmocka_unit_test(refused),         cmocka_unit_test(globs),
        cmocka_unit_test(selection), cmocka_unit_test(refused_filters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
