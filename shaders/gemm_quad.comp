#version 450
/* Y = X W^T for many rows by one quad of invocations, which is a workgroup, for devices that gather what four invocations
 * load one after the other and pay for little else. Invocation l loads row l of four rows, and column l of four columns:
 * no value is loaded twice, and no two at once. Rows then change places within the quad, so that each meets each column:
 * sum [s] of four rows and four columns is, in invocation l, of row l ^ s and column l.
 *
 * Four elements are taken at a time: the loop must stay small, as such devices run slower what does not fit the first
 * cache of their instructions. It tests at its end, or it would run once more with all invocations masked. An element is
 * one chain of additions in order of depth, whatever tile it falls in. Rows and columns past the end repeat the last one
 * and are not stored. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_quad : require
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_WORDWISE
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#include "operands.glsl"
#include "columns.glsl"
#include "quad.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint ROWS = VKA_TILE_ROWS / SIDE;
const uint COLS = VKA_TILE_COLS / SIDE;

void main()
{
    uint lane = gl_SubgroupInvocationID;
    uint row = gl_WorkGroupID.y * VKA_TILE_ROWS;
    uint col = gl_WorkGroupID.x * VKA_TILE_COLS + lane;

    uint x_offset = push.x_offset + gl_WorkGroupID.z * push.x_step;
    uint y_offset = push.y_offset + gl_WorkGroupID.z * push.y_step;
    uint x_at[ROWS];
    uint w_at[COLS];
    float sum[ROWS][SIDE][COLS];
    [[unroll]] for (uint c = 0u; c < COLS; c++)
        w_at[c] = 2u * column_octet(col + SIDE * c);
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        x_at[r] = (x_offset + min(row + SIDE * r + lane, push.rows - 1u) * push.x_stride) / 4u;
        [[unroll]] for (uint s = 0u; s < SIDE; s++)
            [[unroll]] for (uint c = 0u; c < COLS; c++)
                sum[r][s][c] = 0.0;
    }

    uint k = 0u;
    uint step = 0u; /* of the weights */
    do {
        vec4 weight[COLS];
        [[unroll]] for (uint c = 0u; c < COLS; c++)
            weight[c] = load_half(w_at[c] + step);
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            vec4 own = load_quad(x_at[r] + k);
            [[unroll]] for (uint s = 0u; s < SIDE; s++) {
                vec4 x = swapped(own, s);
                [[unroll]] for (uint c = 0u; c < COLS; c++)
                    [[unroll]] for (uint i = 0u; i < 4u; i++)
                        sum[r][s][c] = fma(x[i], weight[c][i], sum[r][s][c]);
            }
        }
        k++;
        step += (k & 1u) != 0u ? 1u : 2u * LANE_COLS - 1u;
    } while (k < push.depth / 4u);

    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint s = 0u; s < SIDE; s++) {
            uint at = row + SIDE * r + (lane ^ s);
            [[unroll]] for (uint c = 0u; c < COLS; c++)
                if (at < push.rows && col + SIDE * c < push.cols)
                    y[y_offset + at * push.y_stride + col + SIDE * c] = sum[r][s][c];
        }
}
