/* Two F16 values of a word as floats, exactly: subnormals, infinities and NaN too. For devices on which unpackHalf2x16 is
 * slow (SwiftShader: some 70 instructions a value, here 30) and shifts are too: a value is moved by a multiplication, to the right
 * by one in floats.
 *
 * With the bits of the exponent raised by 224, a value is 2^112 times too large, and infinities and NaN are in their place.
 * Scaled back, normal values v are right; a subnormal one, s, comes out as v = 2^-15 + s / 2 and is 2 v - 2^-14. The
 * smaller of v and 2 v - 2^-14 is right for both. No step has a subnormal float, which devices may flush. */

/* 0, but the compiler cannot know. SwiftShader takes two instructions to load a literal, at each use, but one or none for
 * a value that it must keep. */
uint nothing = gl_NumWorkGroups.x & 0x80000000u;

uint f16_low = 0x7fffu | nothing;
uint f16_high = 0x7fff0000u | nothing;
uint f16_sign = 0x80000000u | nothing;
uint f16_up_13 = 0x2000u | nothing;
uint f16_up_16 = 0x10000u | nothing;
uint f16_raise = 0x70000000u | nothing;                            /* 224 in the exponent */
float f16_down_3 = uintBitsToFloat(0x3e000000u | nothing);         /* 2^-3 */
float f16_scale = uintBitsToFloat(0x07800000u | nothing);          /* 2^-112 */
float f16_least_normal = uintBitsToFloat(0x38800000u | nothing);   /* 2^-14 */

/* `magnitude`: exponent and significand in bits 13 to 27. */
float f16_value(uint magnitude, uint sign)
{
    float value = uintBitsToFloat(magnitude + f16_raise) * f16_scale;
    value = min(value, value + (value - f16_least_normal));
    return uintBitsToFloat(floatBitsToUint(value) | sign);
}

vec2 unpack_f16(uint word)
{
    uint high = uint(int(float(int(word & f16_high)) * f16_down_3)); /* exact: 15 bits that lie together */
    return vec2(f16_value((word & f16_low) * f16_up_13, word * f16_up_16 & f16_sign),
                f16_value(high, word & f16_sign));
}
