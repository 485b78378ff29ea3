#version 450
/* The peak of reading a storage buffer, or a uniform texel buffer: a workgroup reads one contiguous piece, neighbouring
 * invocations neighbouring vectors. The sum is stored where it has a value that it never has, so that nothing but reading
 * takes time. */
#include "common.glsl"

layout(push_constant) uniform Push { peak_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Source { vec4 source[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Sums { float sums[]; };

#ifdef VKA_TEXEL
layout(set = 0, binding = 2) uniform samplerBuffer texels;
#endif

vec4 load(uint index)
{
#ifdef VKA_TEXEL
    return texelFetch(texels, int(index));
#else
    return source[index];
#endif
}

void main()
{
    uint at = gl_WorkGroupID.x * push.count * VKA_LOCAL + gl_LocalInvocationID.x;
    vec4 sum = vec4(0.0);
    for (uint i = 0u; i < push.count; i += PEAK_UNROLL)
        [[unroll]] for (uint k = 0u; k < PEAK_UNROLL; k++)
            sum += load(at + (i + k) * VKA_LOCAL);
    if (sum.x + sum.y + sum.z + sum.w == push.term)
        sums[0] = sum.x;
}
