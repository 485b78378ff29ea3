#version 450
/* Strided copy of [batch, tokens, heads, dim] with padding or truncation of dim; one invocation per destination
 * word. */
#include "common.glsl"
#include "half.glsl"

layout(push_constant) uniform Push { pack_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Source { float source[]; };
#ifdef VKA_F16
layout(std430, set = 0, binding = 1) writeonly buffer Destination { uint destination[]; };
const uint WORD_ELEMENTS = 2u;
#else
layout(std430, set = 0, binding = 1) writeonly buffer Destination { float destination[]; };
const uint WORD_ELEMENTS = 1u;
#endif

float element(uint at, uint i)
{
    return i < push.src_dim ? source[at + i] : 0.0;
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
    uint words = push.dst_dim / WORD_ELEMENTS;
    uint item = group * VKA_LOCAL + gl_LocalInvocationID.x;
    uint i = item % words * WORD_ELEMENTS;
    uint vector = item / words;
    uint head = vector % push.heads;
    uint token = vector / push.heads % push.tokens;
    uint batch = vector / push.heads / push.tokens;
    if (batch >= push.batch)
        return;

    uint from = push.src_offset + batch * push.src_batch_stride + token * push.src_length_stride +
                head * push.src_head_stride;
    uint to = push.dst_offset + batch * push.dst_batch_stride + token * push.dst_length_stride +
              head * push.dst_head_stride + i;
#ifdef VKA_F16
    destination[to / 2u] = half_pair(element(from, i), element(from, i + 1u));
#else
    destination[to] = element(from, i);
#endif
}
