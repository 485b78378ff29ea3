/* Eight consecutive stored elements as floats: the unit in which weights and the KV cache are read. The including
 * shader defines VKA_STORED_BINDING; VKA_F32, VKA_F16 or VKA_BF16 is defined for the row's dtype. 16-bit values lie two to a
 * word, the lower-addressed one in the low half, so no 16-bit storage is needed. */

struct octet {
    vec4 lo;
    vec4 hi;
};

#ifdef VKA_F32
layout(std430, set = 0, binding = VKA_STORED_BINDING) readonly buffer Stored { vec4 stored[]; };
#else
layout(std430, set = 0, binding = VKA_STORED_BINDING) readonly buffer Stored { uvec4 stored[]; };
#endif

/* `index` counts octets. */
octet load_octet(uint index)
{
#if defined(VKA_F32)
    return octet(stored[2u * index], stored[2u * index + 1u]);
#elif defined(VKA_F16)
    uvec4 words = stored[index];
    return octet(vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)),
                 vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w)));
#else
    uvec4 words = stored[index];
    uvec4 low = words << 16;
    uvec4 high = words & 0xffff0000u;
    return octet(uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y)),
                 uintBitsToFloat(uvec4(low.z, high.z, low.w, high.w)));
#endif
}
