/* The two operands of every product: rows of floats (x, q), read four at a time, and stored elements (weights, the KV
 * cache), read eight at a time as floats. 16-bit values lie two to a word, the lower-addressed one in the low half, so
 * no 16-bit storage is needed. Texel variants see both through uniform texel buffers.
 *
 * With VKA_WORDWISE, 16-bit values are read without unpackHalf2x16 and without shifts.
 *
 * The including shader defines VKA_QUAD_BINDING, VKA_STORED_BINDING and VKA_VIEW_BINDING (of the texel view of the
 * stored elements; that of the floats is the next); the build defines VKA_F32, VKA_F16 or VKA_BF16, and VKA_TEXEL. */

struct octet {
    vec4 lo;
    vec4 hi;
};

#ifdef VKA_F32
#define STORED_WORDS vec4
#define STORED_VIEW  samplerBuffer
#else
#define STORED_WORDS uvec4
#define STORED_VIEW  usamplerBuffer
#endif

#ifdef VKA_TEXEL
layout(set = 0, binding = VKA_VIEW_BINDING) uniform STORED_VIEW stored;
layout(set = 0, binding = VKA_VIEW_BINDING + 1) uniform samplerBuffer quads;
#define STORED(index) texelFetch(stored, int(index))
#define QUAD(index)   texelFetch(quads, int(index))
#else
layout(std430, set = 0, binding = VKA_STORED_BINDING) readonly buffer Stored { STORED_WORDS stored[]; };
layout(std430, set = 0, binding = VKA_QUAD_BINDING) readonly buffer Quads { vec4 quads[]; };
#define STORED(index) stored[index]
#define QUAD(index)   quads[index]
#endif

/* Four floats of a row; `index` counts quads. */
vec4 load_quad(uint index)
{
    return QUAD(index);
}

/* Eight floats of a row. */
octet load_floats(uint index)
{
    return octet(QUAD(index), QUAD(index + 1u));
}

#ifdef VKA_WORDWISE
#include "unpack.glsl"
#define UNPACK_F16     unpack_f16
#define BF16_LOW(word) ((word) * 0x10000u)
#else
#define UNPACK_F16     unpackHalf2x16
#define BF16_LOW(word) ((word) << 16)
#endif

#ifndef VKA_F32
/* Four stored elements. */
vec4 unpack(uvec2 words)
{
#ifdef VKA_F16
    return vec4(UNPACK_F16(words.x), UNPACK_F16(words.y));
#else
    uvec2 low = BF16_LOW(words);
    uvec2 high = words & 0xffff0000u;
    return uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y));
#endif
}
#endif

/* Eight stored elements as they lie in memory. Where latency counts, fetch several before the first is unpacked. */
#ifdef VKA_F32
#define packed_octet octet
#else
#define packed_octet uvec4
#endif

/* `index` counts octets. */
packed_octet fetch_stored(uint index)
{
#ifdef VKA_F32
    return octet(STORED(2u * index), STORED(2u * index + 1u));
#else
    return STORED(index);
#endif
}

octet unpacked(packed_octet words)
{
#ifdef VKA_F32
    return words;
#else
    return octet(unpack(words.xy), unpack(words.zw));
#endif
}

octet load_stored(uint index)
{
    return unpacked(fetch_stored(index));
}
