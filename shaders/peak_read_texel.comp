#version 450
/* As peak_read.comp, through a uniform texel buffer. */
#include "common.glsl"

layout(push_constant) uniform Push { peak_push push; };
layout(std430, set = 0, binding = 1) writeonly buffer Sums { float sums[]; };
layout(set = 0, binding = 2) uniform samplerBuffer source;

void main()
{
    int at = int(gl_WorkGroupID.x * push.count * VKA_LOCAL + gl_LocalInvocationID.x);
    vec4 sum = vec4(0.0);
    for (uint i = 0u; i < push.count; i += PEAK_UNROLL)
        [[unroll]] for (uint k = 0u; k < PEAK_UNROLL; k++)
            sum += texelFetch(source, at + int((i + k) * VKA_LOCAL));
    if (sum.x + sum.y + sum.z + sum.w == push.term)
        sums[0] = sum.x;
}
