#version 450
/* The peak of multiply-adds: VKA_TILE_COLS independent chains an invocation, enough to hide the latency of one, few
 * enough for the registers. All sums are stored, so nothing can be left out. */
#include "common.glsl"

layout(push_constant) uniform Push { peak_push push; };
layout(std430, set = 0, binding = 0) writeonly buffer Sums { float sums[]; };

void main()
{
    float chain[VKA_TILE_COLS];
    [[unroll]] for (uint c = 0u; c < VKA_TILE_COLS; c++)
        chain[c] = float(gl_LocalInvocationID.x + c) * 0.01;
    for (uint i = 0u; i < push.count; i++)
        [[unroll]] for (uint step = 0u; step < PEAK_FMA_STEPS; step++)
            [[unroll]] for (uint c = 0u; c < VKA_TILE_COLS; c++)
                chain[c] = fma(chain[c], push.factor, push.term);
    float sum = 0.0;
    [[unroll]] for (uint c = 0u; c < VKA_TILE_COLS; c++)
        sum += chain[c];
    sums[gl_GlobalInvocationID.x] = sum;
}
