#version 450
/* Y = X W^T for few rows. Eight neighbouring invocations take the columns of a group, whose interleaved octets lie side by
 * side; where a workgroup has more, they share the depth, and their sums are joined in shared memory, always in the same
 * order. A single row, the usual case in decoding, has its own loop. */
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#define VKA_VIEW_BINDING   3
#include "operands.glsl"
#include "columns.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint COLS = VKA_TILE_COLS / LANE_COLS;
const uint COL_STEP = LANE_COLS;
const uint DEPTH_LANES = VKA_LOCAL / LANE_COLS;
const uint ROWS = VKA_TILE_ROWS;

shared float part[DEPTH_LANES][ROWS][VKA_TILE_COLS];

void store(uint row, uint column, float sum)
{
    if (column < push.cols)
        y[push.y_offset + gl_WorkGroupID.z * push.y_step + row * push.y_stride + column] = sum;
}

void keep(uint row, uint column, uint depth_lane, float sum)
{
    if (DEPTH_LANES == 1u)
        store(row, column, sum);
    else
        part[depth_lane][row % ROWS][column % VKA_TILE_COLS] = sum;
}

void join(uint row, uint col, uint rows)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < rows * VKA_TILE_COLS; i += VKA_LOCAL) {
        uint r = i / VKA_TILE_COLS;
        uint c = i % VKA_TILE_COLS;
        float sum = 0.0;
        for (uint k = 0u; k < DEPTH_LANES; k++)
            sum += part[k][r][c];
        store(row + r, col + c, sum);
    }
}

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
    if (rows == 1u)
        sum_one_row(row, rows, col + lane % LANE_COLS, lane / LANE_COLS);
    else
        sum_rows(row, rows, col + lane % LANE_COLS, lane / LANE_COLS);
    if (DEPTH_LANES > 1u)
        join(row, col, rows);
}
