/* F32 to F16 in integers: round to nearest even, subnormals kept, overflow to infinity, NaN stays NaN. packHalf2x16 may
 * round either way, and a cache should hold the same bits on every device. */

uint half_bits(float value)
{
    uint bits = floatBitsToUint(value);
    uint sign = (bits >> 16) & 0x8000u;
    uint magnitude = bits & 0x7fffffffu;

    uint normal = magnitude - 0x38000000u; /* exponent bias 127 to 15 */
    normal = (normal + 0xfffu + ((normal >> 13) & 1u)) >> 13;

    /* below 2^-14: the significand counts 2^(e - 150), the result 2^-24 */
    uint significand = (magnitude & 0x7fffffu) | 0x800000u;
    uint shift = clamp(126u - min(magnitude >> 23, 126u), 1u, 25u);
    uint subnormal = (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;

    uint result = magnitude < 0x38800000u ? subnormal : normal;
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u : result;
    return sign | result;
}

uint half_pair(float low, float high)
{
    return half_bits(low) | (half_bits(high) << 16);
}
