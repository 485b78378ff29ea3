#version 450
/* The peak of copying: pieces as in peak_read.comp. */
#include "common.glsl"

layout(push_constant) uniform Push { peak_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Source { vec4 source[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Target { vec4 target[]; };

void main()
{
    uint at = gl_WorkGroupID.x * push.count * VKA_LOCAL + gl_LocalInvocationID.x;
    for (uint i = 0u; i < push.count; i += PEAK_UNROLL)
        [[unroll]] for (uint k = 0u; k < PEAK_UNROLL; k++)
            target[at + (i + k) * VKA_LOCAL] = source[at + (i + k) * VKA_LOCAL];
}
