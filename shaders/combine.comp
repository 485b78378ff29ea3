#version 450
/* Merges the partial results of a split over keys: m = max m_i, w_i = exp(m_i - m), l = sum w_i l_i,
 * O = sum w_i acc_i / l. One workgroup per (entry, head); its invocations share the columns. A partial that saw nothing
 * is skipped, never multiplied by 0. Sinks and gates wait for the whole row, so they come in here. */
#include "common.glsl"

layout(push_constant) uniform Push { combine_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Parameters { uint parameters[]; };
layout(std430, set = 0, binding = 1) readonly buffer Partials { vec4 partials[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { vec4 rows_out[]; };
layout(std430, set = 0, binding = 2) writeonly buffer OutScalars { float scalars_out[]; };
layout(std430, set = 0, binding = 3) readonly buffer Quads { vec4 quads[]; };

vec4 load_quad(uint index)
{
    return quads[index];
}

#define VKA_FINISH_ID 0
#include "finish.glsl"

void main()
{
    uint head = gl_WorkGroupID.y;
    uint entry = push.entry_offset + gl_WorkGroupID.x * COMBINE_ROW_WORDS;
    uint row = parameters[entry];
    uint slots = parameters[entry + 2u];
    uint columns = push.v_pad / 4u;
    uint first = (parameters[entry + 1u] * push.heads + head) * (columns + 2u);
    uint stride = push.heads * (columns + 2u);

    float maximum = LOWEST;
    for (uint i = 0u; i < slots; i++)
        maximum = max(maximum, partials[first + i * stride + columns].x);
    float total = 0.0;
    for (uint i = 0u; i < slots; i++) {
        vec2 state = partials[first + i * stride + columns].xy;
        total += state.y == 0.0 ? 0.0 : state.y * exp(state.x - maximum);
    }

    float by = divisor(head, maximum, total);
    for (uint c = gl_LocalInvocationID.x; c < columns; c += VKA_LOCAL) {
        vec4 sum = vec4(0.0);
        for (uint i = 0u; i < slots; i++) {
            vec2 state = partials[first + i * stride + columns].xy;
            vec4 added = sum + exp(state.x - maximum) * partials[first + i * stride + c];
            sum = mix(added, sum, bvec4(state.y == 0.0));
        }
        rows_out[(row * push.out_stride + head * push.v_pad) / 4u + c] = finished(sum, by, row, head, c, columns);
    }
    if (push.lse_offset != VKA_NO_OFFSET && gl_LocalInvocationID.x == 0u)
        scalars_out[push.lse_offset + row * push.heads + head] = log_sum_exp_with_sink(head, maximum, total);
}
