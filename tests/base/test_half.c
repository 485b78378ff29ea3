/* 16-bit conversion against independent arithmetic in double, over every 16-bit pattern and round every one of them. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/test_base.h"

typedef struct format {
    int exponent_bits;
    int mantissa_bits;
    uint16_t (*encode)(float value);
    float (*decode)(uint16_t bits);
} format;

static const format formats[] = {
    {5, 10, vka_f32_to_f16, vka_f16_to_f32},
    {8, 7, vka_f32_to_bf16, vka_bf16_to_f32},
};

/* The value of a finite pattern, from the definition. */
static double value_of(const format *f, uint16_t bits)
{
    int mantissa = bits & ((1 << f->mantissa_bits) - 1);
    int exponent = (bits >> f->mantissa_bits) & ((1 << f->exponent_bits) - 1);
    int bias = (1 << (f->exponent_bits - 1)) - 1;
    double magnitude;

    if (exponent == 0)
        magnitude = ldexp(mantissa, 1 - bias - f->mantissa_bits);
    else
        magnitude = ldexp(mantissa + (1 << f->mantissa_bits), exponent - bias - f->mantissa_bits);
    return bits & 0x8000u ? -magnitude : magnitude;
}

static uint16_t infinity_of(const format *f)
{
    return (uint16_t)(((1u << f->exponent_bits) - 1u) << f->mantissa_bits);
}

static void every_pattern_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const format *f = &formats[i];

        for (uint32_t bits = 0; bits <= 0xFFFFu; bits++) {
            uint16_t magnitude = (uint16_t)(bits & 0x7FFFu);
            float value = f->decode((uint16_t)bits);

            if (magnitude > infinity_of(f)) {
                uint16_t again = f->encode(value);

                assert_true(isnan(value));
                assert_true((again & 0x7FFFu) > infinity_of(f));
                assert_int_equal(again & 0x8000u, bits & 0x8000u);
                continue;
            }
            if (magnitude == infinity_of(f))
                assert_true(isinf(value));
            else
                assert_true((double)value == value_of(f, (uint16_t)bits));
            assert_int_equal(signbit(value) != 0, bits >> 15);
            assert_int_equal(f->encode(value), bits);
        }
    }
}

/* Between each pattern and the next: just below the middle goes down, the middle goes to the even one, just above goes
 * up. Beyond the largest finite value the "next" is infinity. */
static void ties_go_to_even(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const format *f = &formats[i];

        for (uint16_t bits = 0; bits < infinity_of(f); bits++) {
            double low = value_of(f, bits);
            double high = value_of(f, (uint16_t)(bits + 1)); /* for the last: where the next binade starts */
            float middle = (float)(low + (high - low) / 2);
            uint16_t even = (uint16_t)(bits + (bits & 1u));

            assert_true((double)middle == low + (high - low) / 2);
            assert_int_equal(f->encode(middle), even);
            assert_int_equal(f->encode(-middle), even | 0x8000u);
            assert_int_equal(f->encode(nextafterf(middle, 0.0f)), bits);
            assert_int_equal(f->encode(nextafterf(middle, INFINITY)), bits + 1);
        }
    }
}

static void known_values(void **state)
{
    float quiet;
    uint32_t signalling = 0x7F800001u; /* all payload in the bits that 16-bit formats drop */

    (void)state;
    memcpy(&quiet, &signalling, sizeof(quiet));
    assert_int_equal(vka_f32_to_f16(1.0f), 0x3C00);
    assert_int_equal(vka_f32_to_f16(-2.0f), 0xC000);
    assert_int_equal(vka_f32_to_f16(65504.0f), 0x7BFF);
    assert_int_equal(vka_f32_to_f16(65519.996f), 0x7BFF);
    assert_int_equal(vka_f32_to_f16(65520.0f), 0x7C00);
    assert_int_equal(vka_f32_to_f16(FLT_MAX), 0x7C00);
    assert_int_equal(vka_f32_to_f16(-INFINITY), 0xFC00);
    assert_int_equal(vka_f32_to_f16(0x1p-24f), 0x0001);
    assert_int_equal(vka_f32_to_f16(0x1p-25f), 0x0000);
    assert_int_equal(vka_f32_to_f16(0x1.000002p-25f), 0x0001);
    assert_int_equal(vka_f32_to_f16(-FLT_TRUE_MIN), 0x8000);
    assert_int_equal(vka_f32_to_bf16(1.0f), 0x3F80);
    assert_int_equal(vka_f32_to_bf16(FLT_MAX), 0x7F80);
    assert_int_equal(vka_f32_to_bf16(FLT_TRUE_MIN), 0x0000);
    assert_true(isnan(vka_f16_to_f32(vka_f32_to_f16(quiet))));
    assert_true(isnan(vka_bf16_to_f32(vka_f32_to_bf16(quiet))));
}

static void convert_takes_any_pair(void **state)
{
    static const vka_dtype types[] = {VKA_F32, VKA_F16, VKA_BF16};
    enum { COUNT = 1000 }; /* several blocks and a rest */
    static unsigned char source[COUNT * 4 + 1], target[COUNT * 4 + 2];

    (void)state;
    for (size_t pair = 0; pair < 9; pair++) {
        vka_dtype from = types[pair / 3], to = types[pair % 3];
        size_t from_size = vka_dtype_size(from), to_size = vka_dtype_size(to);

        for (int i = 0; i < COUNT; i++) {
            float value = (float)(i % 128 - 64) / 4.0f; /* exact in all three */
            uint16_t bits = from == VKA_F16 ? vka_f32_to_f16(value) : vka_f32_to_bf16(value);

            memcpy(source + 1 + (size_t)i * from_size, from == VKA_F32 ? (void *)&value : (void *)&bits, from_size);
        }
        memset(target, 0xEE, sizeof(target));
        vka_convert(target + 1, to, source + 1, from, COUNT);
        for (int i = 0; i < COUNT; i++) {
            float value;
            uint16_t bits;

            memcpy(&bits, target + 1 + (size_t)i * to_size, sizeof(bits));
            memcpy(&value, target + 1 + (size_t)i * to_size, to == VKA_F32 ? sizeof(value) : 0);
            if (to != VKA_F32)
                value = to == VKA_F16 ? vka_f16_to_f32(bits) : vka_bf16_to_f32(bits);
            assert_true(value == (float)(i % 128 - 64) / 4.0f);
        }
        assert_int_equal(target[0], 0xEE);
        assert_int_equal(target[1 + COUNT * to_size], 0xEE);
    }
    vka_convert(NULL, VKA_F16, NULL, VKA_F32, 0);
    vka_convert(NULL, VKA_F16, NULL, VKA_F16, 0);
}

int run_half_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_round_trips),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(known_values),
        cmocka_unit_test(convert_takes_any_pair),
    };

    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
