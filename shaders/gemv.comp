#version 450
/* Y = X W^T for few rows. Eight neighbouring invocations share the depth of four columns, so that they read consecutive
 * octets of a row of weights; their sums are joined in shared memory, always in the same order. A single row, the usual
 * case in decoding, has its own loop. */
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#define VKA_VIEW_BINDING   3
#include "operands.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint COLS = 4u;
const uint DEPTH_LANES = 8u;
const uint ROWS = VKA_TILE_ROWS;

shared float part[ROWS][VKA_TILE_COLS][DEPTH_LANES];

#define GEMV_SUM sum_one_row
#define GEMV_ROWS 1u
#include "gemv_rows.glsl"
#define GEMV_SUM sum_rows
#define GEMV_ROWS ROWS
#include "gemv_rows.glsl"

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint col = gl_WorkGroupID.x * VKA_TILE_COLS;
    uint row = gl_WorkGroupID.y * ROWS;
    uint rows = min(ROWS, push.rows - row);
    uint tile_col = lane / DEPTH_LANES * COLS;
    if (rows == 1u)
        sum_one_row(row, col, tile_col, lane % DEPTH_LANES);
    else
        sum_rows(row, col, tile_col, lane % DEPTH_LANES);
    barrier();
    for (uint i = lane; i < rows * VKA_TILE_COLS; i += VKA_LOCAL) {
        uint r = i / VKA_TILE_COLS;
        uint c = i % VKA_TILE_COLS;
        float sum = 0.0;
        for (uint k = 0u; k < DEPTH_LANES; k++)
            sum += part[r][c][k];
        if (col + c < push.cols)
            y[push.y_offset + (row + r) * push.y_stride + col + c] = sum;
    }
}
