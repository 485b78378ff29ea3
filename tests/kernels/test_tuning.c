/* Tuned choices without a device: classes of shapes, the file and everything that can be wrong with it, the rule that
 * decides, and the order of selection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/tuning.h"

static const char *const key = "vkattn 9.9 driver 1 2 [three] device 0405";

/* A device that can run every row, and one that has the floor only. */
static const vka_caps rich = {
    .bits = UINT64_MAX,
    .max_invocations = 1024,
    .max_local_size = {1024, 1024, 64},
    .max_groups = {65535, 65535, 65535},
    .shared_bytes = 65536,
    .storage_buffers = 32,
    .push_bytes = 256,
    .texel_elements = UINT32_MAX,
    .max_range = 1u << 27,
    .max_buffer = 1u << 30,
    .max_alloc = 1u << 30,
};

static vka_caps floor_caps(void)
{
    vka_caps caps = rich;
    caps.bits = 0;
    caps.max_invocations = caps.max_local_size[0] = 128;
    caps.shared_bytes = 16384;
    caps.storage_buffers = 4;
    caps.push_bytes = 128;
    caps.texel_elements = 65536;
    return caps;
}

static const vka_variant *standard(vka_kernel kernel, vka_dtype dtype)
{
    const vka_variant *row = NULL;
    assert_int_equal(vka_variant_select(kernel, dtype, &rich, NULL, &row, NULL), VKA_OK);
    return row;
}

/* A row that the rich device could run, but does not. */
static const vka_variant *another(vka_kernel kernel, vka_dtype dtype)
{
    for (uint32_t i = 0; i < vka_variant_rows(); i++)
        if (vka_variant_runs(vka_variant_row(i), kernel, dtype, &rich) && vka_variant_row(i) != standard(kernel, dtype))
            return vka_variant_row(i);
    fail_msg("kernel %s has one row only", vka_kernel_name(kernel));
    return NULL;
}

/* Every class of every kernel and type has a choice. */
static tuning_table full_table(void)
{
    tuning_table table = {0};
    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++)
        for (int shape = 0; shape < TUNING_CLASSES; shape++)
            for (uint32_t i = 0; tuning_has_class((vka_kernel)kernel, (tuning_class)shape) && i < vka_variant_rows();
                 i++) {
                const vka_variant *row = vka_variant_row(i);
                if (row->kernel == (vka_kernel)kernel && !row->absent)
                    table.choice[kernel][row->dtype][shape] = row;
            }
    return table;
}

static void classes_cover_all_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < TUNING_CLASSES; i++) {
        tuning_class shape = (tuning_class)i;
        bool rows = i < TUNING_ROW_CLASSES;
        uint32_t least = tuning_class_least(shape), most = tuning_class_most(shape);
        assert_int_equal(rows ? tuning_rows_class(least) : tuning_head_class(least, 1), shape);
        assert_int_equal(rows ? tuning_rows_class(most) : tuning_head_class(1, most), shape);
        if (i > 0 && i != TUNING_ROW_CLASSES)
            assert_int_equal(least, tuning_class_most((tuning_class)(i - 1)) + 1);
        /* a projection's class is that of the kernel that its rows run */
        assert_int_equal(tuning_has_class(VKA_KERNEL_GEMV, shape), rows && most <= 4);
        assert_int_equal(tuning_has_class(VKA_KERNEL_GEMM, shape), rows && least > 4);
        assert_int_equal(tuning_has_class(VKA_KERNEL_PREFILL, shape), !rows);
        assert_int_equal(tuning_has_class(VKA_KERNEL_DECODE, shape), !rows);
        assert_false(tuning_has_class(VKA_KERNEL_COMBINE, shape));
    }
    assert_int_equal(tuning_head_class(64, 128), TUNING_HEAD_128);
    assert_int_equal(tuning_head_class(192, 128), TUNING_HEAD_256);
}

static void what_is_written_is_read(void **state)
{
    const tuning_table full = full_table(), empty = {0};
    char text[TUNING_FILE_BYTES];
    tuning_table read;
    vka_error error;

    (void)state;
    memset(&read, 0xff, sizeof(read));
    assert_int_equal(tuning_parse(text, tuning_write(&full, key, text), key, &read, &error), VKA_OK);
    assert_memory_equal(&read, &full, sizeof(full));
    assert_int_equal(tuning_parse(text, tuning_write(&empty, key, text), key, &read, &error), VKA_OK);
    assert_memory_equal(&read, &empty, sizeof(empty));
}

static void a_damaged_file_is_not_used(void **state)
{
    const tuning_table full = full_table();
    char text[TUNING_FILE_BYTES];
    size_t size = tuning_write(&full, key, text);
    tuning_table read = {0}, untouched = {0};
    vka_error error;

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(tuning_parse(text, cut, key, &read, &error), VKA_ERR_FORMAT);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_equal(tuning_parse(text, size, key, &read, &error), VKA_ERR_FORMAT);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    text[size] = '\n';
    assert_int_equal(tuning_parse(text, size + 1, key, &read, &error), VKA_ERR_FORMAT);
    assert_int_equal(tuning_parse(NULL, 0, key, &read, &error), VKA_ERR_FORMAT);
    assert_memory_equal(&read, &untouched, sizeof(read));
    assert_int_equal(tuning_parse(text, size, key, &read, &error), VKA_OK);
}

static void a_foreign_file_is_not_used(void **state)
{
    static const char *const others[] = {"", "vkattn 9.9", "vkattn 9.9 driver 1 2 [three] device 0406",
                                         "vkattn 9.9 driver 1 2 [three] device 04050"};
    const tuning_table full = full_table();
    char text[TUNING_FILE_BYTES];
    size_t size = tuning_write(&full, key, text);
    tuning_table read = {0};
    vka_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(tuning_parse(text, size, others[i], &read, &error), VKA_ERR_FORMAT);
        assert_non_null(strstr(error.message, "another device, driver or version"));
    }
}

/* Reads lines that stand behind a right first line and key and before a right hash. */
static vka_status read_lines(const char *lines, tuning_table *out, vka_error *error)
{
    char text[4096];
    int length = snprintf(text, sizeof(text), "vkattn tuning 1\nkey %s\n%s", key, lines);
    uint64_t hash = vka_hash(VKA_HASH_START, text, (size_t)length);

    length += snprintf(text + length, sizeof(text) - (size_t)length, "hash %016" PRIx64 "\n", hash);
    return tuning_parse(text, (size_t)length, key, out, error);
}

static void malformed_lines_spoil_the_file(void **state)
{
    static const char *const lines[] = {
        "\n",
        "choice\n",
        "choice gemm F16 rows=5-32\n",
        "choice gemm F16 rows=5-32 \n",
        "choice gemm F16 rows=5-32 gemm_f16_floor extra\n",
        "choice gemm  F16 rows=5-32 gemm_f16_floor\n",
        "chosen gemm F16 rows=5-32 gemm_f16_floor\n",
        "choice gemm F16 rows=5-32 gemm_f16_floor", /* no end: the hash is part of the name */
        "choice gemm F16 rows=5-32 gemm_f16_floor\nchoice gemm F16 rows=5-32 gemm_f16_floor\n",
        "choice gemm F16 rows=5-32 gemm_f16_floor\nchoice gemm F16 rows=5-32 not_there\n",
        "choice gemm F16 rows=5-32 not_there\nchoice gemm F16 rows=5-32 gemm_f16_floor\n",
    };
    tuning_table read = {0}, untouched = {0};
    vka_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (read_lines(lines[i], &read, &error) != VKA_ERR_FORMAT)
            fail_msg("accepted: %s", lines[i]);
    assert_memory_equal(&read, &untouched, sizeof(read));
}

static void unknown_names_are_passed_over(void **state)
{
    tuning_table read = {0}, only = {0};
    vka_error error;

    (void)state;
    assert_int_equal(read_lines("choice gemm F16 rows=5-32 gemm_f16_not_there\n"
                                "choice fused F16 rows=5-32 gemm_f16_floor\n"
                                "choice gemm F8 rows=5-32 gemm_f16_floor\n"
                                "choice gemm F16 rows=6-31 gemm_f16_floor\n"
                                "choice gemm F16 rows=2-4 gemm_f16_floor\n"        /* a class of gemv */
                                "choice gemm F16 rows=33-128 gemm_f32_floor\n"     /* another type */
                                "choice gemm F16 rows=129+ gemv_f16_floor\n"       /* another kernel */
                                "choice combine default head=1-64 combine_floor\n" /* never tuned */
                                "choice prefill F32 head=1-64 prefill_f32_floor\n",
                                &read, &error),
                     VKA_OK);
    only.choice[VKA_KERNEL_PREFILL][VKA_F32][TUNING_HEAD_64] = standard(VKA_KERNEL_PREFILL, VKA_F32);
    for (uint32_t i = 0; i < vka_variant_rows(); i++)
        if (strcmp(vka_variant_row(i)->name, "prefill_f32_floor") == 0)
            only.choice[VKA_KERNEL_PREFILL][VKA_F32][TUNING_HEAD_64] = vka_variant_row(i);
    assert_memory_equal(&read, &only, sizeof(read));
}

static void three_percent_decide(void **state)
{
    static const double clear[] = {10, 9, 8, 8.5}, close[] = {10, 9.8}, enough[] = {100, 97}, equal[] = {5, 5, 5};

    (void)state;
    assert_int_equal(tuning_decide(clear, 4, 0), 2);
    assert_int_equal(tuning_decide(clear, 4, 2), 2);
    assert_int_equal(tuning_decide(close, 2, 0), 0);
    assert_int_equal(tuning_decide(close, 2, 1), 1);
    assert_int_equal(tuning_decide(enough, 2, 0), 1);
    assert_int_equal(tuning_decide(equal, 3, 1), 1);
    assert_int_equal(tuning_decide(equal, 1, 0), 0);
}

static void forced_before_tuned_before_priority(void **state)
{
    const vka_variant *first = standard(VKA_KERNEL_GEMM, VKA_F16), *other = another(VKA_KERNEL_GEMM, VKA_F16);
    const vka_variant *foreign = standard(VKA_KERNEL_GEMM, VKA_F32), *chosen = NULL;
    const vka_caps poor = floor_caps();

    (void)state;
    assert_int_equal(vka_variant_select_tuned(VKA_KERNEL_GEMM, VKA_F16, &rich, NULL, other, &chosen, NULL), VKA_OK);
    assert_ptr_equal(chosen, other);
    assert_int_equal(vka_variant_select_tuned(VKA_KERNEL_GEMM, VKA_F16, &rich, first->name, other, &chosen, NULL),
                     VKA_OK);
    assert_ptr_equal(chosen, first);
    assert_int_equal(vka_variant_select_tuned(VKA_KERNEL_GEMM, VKA_F16, &rich, NULL, NULL, &chosen, NULL), VKA_OK);
    assert_ptr_equal(chosen, first);
    /* a choice for another type, and one that the device cannot run */
    assert_int_equal(vka_variant_select_tuned(VKA_KERNEL_GEMM, VKA_F16, &rich, NULL, foreign, &chosen, NULL), VKA_OK);
    assert_ptr_equal(chosen, first);
    assert_false(vka_variant_runs(first, VKA_KERNEL_GEMM, VKA_F16, &poor));
    assert_int_equal(vka_variant_select_tuned(VKA_KERNEL_GEMM, VKA_F16, &poor, NULL, first, &chosen, NULL), VKA_OK);
    assert_string_equal(chosen->name, "gemm_f16_floor");
}

static void expect_reason(const vka_variant *row, const vka_caps *caps, const char *forced, const tuning_table *table,
                          bool selected, const char *format, const char *name)
{
    char reason[160], expected[160];

    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        if (vka_variant_row(i) != row)
            continue;
        snprintf(expected, sizeof(expected), format, name);
        assert_int_equal(tuning_reason(i, caps, forced, table, reason, sizeof(reason)), selected);
        assert_string_equal(reason, expected);
    }
}

static void reasons_mention_tuning(void **state)
{
    const vka_variant *first = standard(VKA_KERNEL_PREFILL, VKA_F16), *other = another(VKA_KERNEL_PREFILL, VKA_F16);
    const vka_caps poor = floor_caps();
    tuning_table table = {0};
    const vka_variant **choice = table.choice[VKA_KERNEL_PREFILL][VKA_F16];

    (void)state;
    expect_reason(first, &rich, NULL, &table, true, "", "");
    expect_reason(other, &rich, NULL, &table, false, "%s has a higher priority", first->name);
    choice[TUNING_HEAD_64] = first;
    choice[TUNING_HEAD_128] = other;
    expect_reason(first, &rich, NULL, &table, true, "tuned: %s was faster on this device for head=65-128", other->name);
    expect_reason(other, &rich, NULL, &table, true, "tuned: faster than %s on this device for head=65-128",
                  first->name);
    for (int i = TUNING_HEAD_64; i < TUNING_CLASSES; i++)
        choice[i] = other;
    expect_reason(first, &rich, NULL, &table, false,
                  "tuned: %s was faster on this device for head=1-64, head=65-128, head=129-256, head=257+",
                  other->name);
    /* nothing of it where the user decides, or where the device cannot follow */
    expect_reason(first, &rich, first->name, &table, true, "", "");
    expect_reason(other, &rich, first->name, &table, false, "%s has a higher priority", first->name);
    for (int i = TUNING_HEAD_64; i < TUNING_CLASSES; i++)
        choice[i] = first;
    expect_reason(other, &poor, NULL, &table, true, "", "");
}

static void untuned_reasons_are_unchanged(void **state)
{
    const tuning_table none = {0};
    const vka_caps poor = floor_caps();

    (void)state;
    for (uint32_t i = 0; i <= vka_variant_rows(); i++)
        for (int device = 0; device < 2; device++) {
            const vka_caps *caps = device == 0 ? &rich : &poor;
            char with[160], without[160];
            assert_int_equal(tuning_reason(i, caps, NULL, &none, with, sizeof(with)),
                             vka_variant_reason(i, caps, NULL, without, sizeof(without)));
            assert_string_equal(with, without);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_cover_all_sizes),        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_damaged_file_is_not_used),     cmocka_unit_test(a_foreign_file_is_not_used),
        cmocka_unit_test(malformed_lines_spoil_the_file), cmocka_unit_test(unknown_names_are_passed_over),
        cmocka_unit_test(three_percent_decide),           cmocka_unit_test(forced_before_tuned_before_priority),
        cmocka_unit_test(reasons_mention_tuning),         cmocka_unit_test(untuned_reasons_are_unchanged),
    };

    return cmocka_run_group_tests_name("tuning", tests, NULL, NULL);
}
