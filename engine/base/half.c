/* binary16 and bfloat16 by integer arithmetic, so that results do not depend on the host's rounding mode, flush-to-zero
 * setting or instruction set. Bulk conversion goes through small blocks of F32. */
#include "base/half.h"

#include <string.h>

static uint32_t f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float f32_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* bits / 2^shift, rounded to nearest, ties to even; 1 <= shift <= 31. */
static uint32_t round_shift(uint32_t bits, uint32_t shift)
{
    uint32_t quotient = bits >> shift;
    uint32_t rest = bits & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);

    return quotient + (rest > half || (rest == half && (quotient & 1u)));
}

uint16_t vka_f32_to_f16(float value)
{
    uint32_t bits = f32_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    uint32_t exponent = magnitude >> 23;
    uint32_t result;

    if (magnitude > 0x7F800000u)
        result = 0x7E00u | ((magnitude >> 13) & 0x3FFu); /* NaN: made quiet, leading payload kept */
    else if (magnitude >= 0x47800000u)
        result = 0x7C00u; /* 65536 and above; what lies between 65520 and 65536 gets there by rounding */
    else if (magnitude >= 0x38800000u)
        result = round_shift(magnitude - 0x38000000u, 13); /* normal: exponent bias 127 -> 15 */
    else if (exponent >= 102)
        result = round_shift((magnitude & 0x7FFFFFu) | 0x800000u, 126u - exponent); /* subnormal: units of 2^-24 */
    else
        result = 0; /* below 2^-25, half of the least subnormal */
    return (uint16_t)(sign | result);
}

float vka_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1Fu;
    uint32_t mantissa = bits & 0x3FFu;

    if (exponent == 0x1Fu)
        return f32_from_bits(sign | 0x7F800000u | (mantissa << 13));
    if (exponent != 0)
        return f32_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    return f32_from_bits(sign | f32_bits((float)mantissa * 0x1p-24f));
}

uint16_t vka_f32_to_bf16(float value)
{
    uint32_t bits = f32_bits(value);

    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* NaN: made quiet, so that dropping low bits cannot make infinity */
    return (uint16_t)round_shift(bits, 16);
}

float vka_bf16_to_f32(uint16_t bits)
{
    return f32_from_bits((uint32_t)bits << 16);
}

static void decode(float *out, const unsigned char *in, vka_dtype type, size_t count)
{
    uint16_t bits;

    if (type == VKA_F32) {
        memcpy(out, in, count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(&bits, in + i * sizeof(bits), sizeof(bits));
        out[i] = type == VKA_F16 ? vka_f16_to_f32(bits) : vka_bf16_to_f32(bits);
    }
}

static void encode(unsigned char *out, vka_dtype type, const float *in, size_t count)
{
    uint16_t bits;

    if (type == VKA_F32) {
        memcpy(out, in, count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bits = type == VKA_F16 ? vka_f32_to_f16(in[i]) : vka_f32_to_bf16(in[i]);
        memcpy(out + i * sizeof(bits), &bits, sizeof(bits));
    }
}

void vka_convert(void *out, vka_dtype out_type, const void *in, vka_dtype in_type, size_t count)
{
    enum { BLOCK = 256 };
    const unsigned char *source = in;
    unsigned char *target = out;
    float block[BLOCK];
    size_t in_size = vka_dtype_size(in_type);
    size_t out_size = vka_dtype_size(out_type);

    if (out_type == in_type) {
        if (count != 0)
            memmove(out, in, count * in_size);
        return;
    }
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t n = count - done < BLOCK ? count - done : BLOCK;

        decode(block, source + done * in_size, in_type, n);
        encode(target + done * out_size, out_type, block, n);
    }
}
