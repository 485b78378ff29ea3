/* Inverse frequencies and factors against Hugging Face transformers (tests/data/make_rope_reference.py): those of the
 * engine, and those of the float64 reference that judges runs, which share no code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/rope.h"
#include "support/require.h"
#include "verify/verify.h"
#include "vkattn/model.h"

static const double near = 3e-6; /* what float32 exponents and powers of theirs may be off by, relative */

typedef struct rope_case {
    const char *name;
    vka_layer_desc desc;
    uint32_t length;
} rope_case;

#define DIMS(dim) .hidden_size = 256, .heads = 4, .kv_heads = 4, .head_dim = (dim)
#define YARN(...) .rope_type = VKA_ROPE_YARN, .rope_scaling = {.factor = 40, .original_context = 4096, __VA_ARGS__}
#define LONGROPE(...)                                                                                                  \
    .rope_type = VKA_ROPE_LONGROPE, .rope_scaling = {.original_context = 4096, .context = 131072, __VA_ARGS__}
#define DYNAMIC .rope_type = VKA_ROPE_DYNAMIC, .rope_scaling = {.factor = 2, .context = 2048}
#define LLAMA3(f)                                                                                                      \
    .rope_type = VKA_ROPE_LLAMA3,                                                                                      \
    .rope_scaling = {.factor = (f), .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192},            \
    .rope_theta = 5e5

static const rope_case cases[] = {
    {"default", {DIMS(64)}, 1},
    {"linear", {DIMS(64), .rope_type = VKA_ROPE_LINEAR, .rope_scaling = {.factor = 4}}, 1},
    {"dynamic_within", {DIMS(64), DYNAMIC}, 100},
    {"dynamic_twice", {DIMS(64), DYNAMIC}, 4096},
    {"dynamic_odd", {DIMS(64), DYNAMIC}, 3001},
    /* at twice its context, dynamic scaling by 2 stretches by 3 */
    {"dynamic_twice", {DIMS(64), .rope_type = VKA_ROPE_NTK, .rope_scaling = {.factor = 3}}, 1},
    {"yarn", {DIMS(64), YARN(.mscale = 0)}, 1},
    {"yarn_mscale", {DIMS(64), YARN(.mscale = 0.707, .mscale_all_dim = 1)}, 1},
    {"yarn_attention_factor", {DIMS(64), YARN(.attention_factor = 1.25, .beta_fast = 16, .beta_slow = 2)}, 1},
    {"yarn_no_truncate",
     {DIMS(64), .rope_type = VKA_ROPE_YARN, .rope_scaling = {.factor = 32, .original_context = 4096, .no_truncate = 1},
      .rope_theta = 150000},
     1},
    {"longrope_short", {DIMS(64), LONGROPE(.factor = 0)}, 4096},
    {"longrope_long", {DIMS(64), LONGROPE(.factor = 0)}, 4097},
    {"longrope_attention_factor", {DIMS(64), LONGROPE(.attention_factor = 1.25)}, 4097},
    {"llama3", {DIMS(128), LLAMA3(8)}, 1},
    {"llama3_small", {DIMS(64), LLAMA3(32)}, 1},
};

static vka_layer_desc resolved(const vka_layer_desc *from)
{
    vka_layer_desc desc = *from;
    vka_error error;

    desc.struct_size = sizeof(desc);
    for (uint32_t i = 0; desc.rope_type == VKA_ROPE_LONGROPE && i < 32; i++) {
        desc.rope_scaling.short_factor[i] = 1 + (float)i / 8;
        desc.rope_scaling.long_factor[i] = 1.5f + (float)i;
    }
    require(vka_layer_desc_resolve(&desc, &error) == VKA_OK, "%s", error.message);
    return desc;
}

static const vka_named_tensor *find(const vka_tensor_file *file, const char *name, const char *part)
{
    char key[64];

    snprintf(key, sizeof(key), "%s.%s", name, part);
    const vka_named_tensor *tensor = vka_tensor_file_find(file, key);
    require(tensor != NULL && tensor->dtype == VKA_F32, "no tensor %s", key);
    return tensor;
}

static float value(const vka_named_tensor *tensor, size_t i)
{
    float out;

    memcpy(&out, (const float *)tensor->data + i, sizeof(out));
    return out;
}

static void check_close(const char *name, const char *what, uint32_t pair, double got, double want)
{
    require(fabs(got - want) <= near * fabs(want), "%s: %s of pair %u is %.9g, expected %.9g", name, what, pair, got,
            want);
}

static void inverse_frequencies_are_those_of_transformers(void **state)
{
    const vka_tensor_file *file = *state;

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const char *name = cases[c].name;
        const vka_layer_desc desc = resolved(&cases[c].desc);
        const vka_named_tensor *inverse = find(file, name, "inverse");
        double factor = (double)value(find(file, name, "factor"), 0);
        rope_table table;
        rope_table_make(&table, &desc, cases[c].length);
        assert_int_equal(table.pairs, inverse->shape[0]);
        check_close(name, "factor", 0, table.factor, factor);
        check_close(name, "factor of the reference", 0, verify_rope_factor(&desc), factor);
        for (uint32_t i = 0; i < table.pairs; i++) {
            double want = (double)value(inverse, i);
            assert_int_equal(table.axis[i], 0);
            check_close(name, "inverse frequency", i, table.inverse[i], want);
            check_close(name, "reference", i, verify_rope_inverse(&desc, cases[c].length, i), want);
        }
    }
}

static void axes_are_those_of_transformers(void **state)
{
    static const struct {
        const char *name;
        vka_layer_desc desc;
    } rows[] = {
        {"sections", {DIMS(64), .rope_theta = 1e6, .mrope_section = {8, 12, 12}}},
        {"interleaved", {DIMS(64), .rope_theta = 1e6, .mrope_section = {14, 10, 8}, .mrope_interleaved = 1}},
    };
    const vka_tensor_file *file = *state;

    for (size_t c = 0; c < 2; c++) {
        const vka_layer_desc desc = resolved(&rows[c].desc);
        const vka_named_tensor *positions = find(file, rows[c].name, "positions");
        const vka_named_tensor *cosine = find(file, rows[c].name, "cos"), *sine = find(file, rows[c].name, "sin");
        size_t count = (size_t)positions->shape[1];
        rope_table table;
        rope_table_make(&table, &desc, 1);
        for (size_t i = 0; i < count * table.pairs; i++) {
            size_t row = i / table.pairs, pair = i % table.pairs;
            double angle = (double)value(positions, table.axis[pair] * count + row) * table.inverse[pair];
            assert_int_equal(table.axis[pair], verify_rope_axis(&desc, (uint32_t)pair));
            require(fabs(cos(angle) - (double)value(cosine, i)) < 1e-4 &&
                        fabs(sin(angle) - (double)value(sine, i)) < 1e-4,
                    "%s: row %zu, pair %zu takes axis %u", rows[c].name, row, pair, table.axis[pair]);
        }
    }
}

static void only_two_types_have_a_limit(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const vka_layer_desc desc = resolved(&cases[c].desc);
        uint32_t limit = desc.rope_type == VKA_ROPE_DYNAMIC ? 2048 : desc.rope_type == VKA_ROPE_LONGROPE ? 4096 : 0;
        assert_int_equal(rope_length_limit(&desc), limit);
    }
}

static int open_file(void **state)
{
    vka_error error;

    return (int)vka_tensor_file_open((vka_tensor_file **)state, VKA_TEST_DATA "/rope.safetensors", &error);
}

static int close_file(void **state)
{
    vka_tensor_file_close((vka_tensor_file **)state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_frequencies_are_those_of_transformers),
        cmocka_unit_test(axes_are_those_of_transformers),
        cmocka_unit_test(only_two_types_have_a_limit),
    };

    return cmocka_run_group_tests(tests, open_file, close_file);
}
