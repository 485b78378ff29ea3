/* The generator against the known answers that the authors of Philox publish (file kat_vectors of Random123), and the
 * promise that a value depends on nothing but seed, stream and index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/philox.h"
#include "vkattn/model.h"

static void known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t out[4];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        vka_philox4x32(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].out, sizeof(out));
    }
}

/* The words of the first known answer, mapped to [-1, 1) by hand: (word >> 8) * 2^-23 - 1. */
static void mapping_to_floats(void **state)
{
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        assert_true(vka_random_value(0, 0, i) == (float)((double)(words[i] >> 8) / 8388608.0 - 1.0));
}

static void fill_is_value_by_value(void **state)
{
    enum { COUNT = 200003 };
    static float values[COUNT];
    const uint64_t firsts[] = {0, 1, 3, (1ull << 34) - 2};

    (void)state;
    for (size_t f = 0; f < 4; f++) {
        vka_random_fill(values, COUNT, 0.25, 77, 5, firsts[f]);
        for (size_t i = 0; i < COUNT; i++)
            if (values[i] != 0.25f * vka_random_value(77, 5, firsts[f] + i))
                fail_msg("first %llu: element %zu differs", (unsigned long long)firsts[f], i);
    }
}

static void arguments_matter(void **state)
{
    int same_seed = 0, same_stream = 0, same_index = 0;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        same_seed += vka_random_value(1, 0, i) == vka_random_value(1ull << 32, 0, i);
        same_stream += vka_random_value(1, 0, i) == vka_random_value(1, 1, i);
        same_index += vka_random_value(1, 0, i) == vka_random_value(1, 0, i + (1ull << 34));
    }
    assert_true(same_seed < 3 && same_stream < 3 && same_index < 3);
}

/* Uniform in [-1, 1): mean 0, variance 1/3; the bands are some 5 standard deviations wide. */
static void moments(void **state)
{
    enum { COUNT = 100000 };
    double sum = 0, squares = 0;

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        float value = vka_random_value(42, 9, i);

        assert_true(value >= -1.0f && value < 1.0f);
        sum += value;
        squares += (double)value * value;
    }
    assert_true(sum / COUNT > -0.01 && sum / COUNT < 0.01);
    assert_true(squares / COUNT > 0.328 && squares / COUNT < 0.339);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(mapping_to_floats),
        cmocka_unit_test(fill_is_value_by_value),
        cmocka_unit_test(arguments_matter),
        cmocka_unit_test(moments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
