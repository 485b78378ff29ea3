#version 450
/* Y = X W^T for many rows. Every invocation keeps an 8 x 8 tile of Y in registers and walks the whole depth, eight
 * elements at a time: no shared memory, no barriers, 16 loaded octets for 512 multiply-adds. An element is one chain of
 * additions in order of depth, whatever tile it falls in. Rows and columns past the end repeat the last one and are not
 * stored. */
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#define VKA_VIEW_BINDING   3
#include "operands.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint LANE_ROWS = VKA_LOCAL / 8u;
const uint LANE_COLS = 8u;
const uint ROWS = VKA_TILE_ROWS / LANE_ROWS;
const uint COLS = VKA_TILE_COLS / LANE_COLS;

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint row = gl_WorkGroupID.y * VKA_TILE_ROWS + lane / LANE_COLS * ROWS;
    uint col = gl_WorkGroupID.x * VKA_TILE_COLS + lane % LANE_COLS;
    if (row >= push.rows || col >= push.cols)
        return;

    uint x_at[ROWS];
    uint w_at[COLS];
    float sum[COLS][ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        x_at[r] = (push.x_offset + min(row + r, push.rows - 1u) * push.x_stride) / 4u;
    [[unroll]] for (uint c = 0u; c < COLS; c++) {
        w_at[c] = (push.w_offset + min(col + c * LANE_COLS, push.cols - 1u) * push.w_stride) / 8u;
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            sum[c][r] = 0.0;
    }

    uint octets = push.depth / 8u;
    for (uint k = 0u; k < octets; k++) {
        octet rows[ROWS];
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            rows[r] = load_floats(x_at[r] + 2u * k);
        [[unroll]] for (uint c = 0u; c < COLS; c++) {
            octet weight = load_stored(w_at[c] + k);
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                [[unroll]] for (uint r = 0u; r < ROWS; r++)
                    sum[c][r] = fma(rows[r].lo[i], weight.lo[i], sum[c][r]);
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                [[unroll]] for (uint r = 0u; r < ROWS; r++)
                    sum[c][r] = fma(rows[r].hi[i], weight.hi[i], sum[c][r]);
        }
    }

    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint c = 0u; c < COLS; c++)
            if (row + r < push.rows && col + c * LANE_COLS < push.cols)
                y[push.y_offset + (row + r) * push.y_stride + col + c * LANE_COLS] = sum[c][r];
}
