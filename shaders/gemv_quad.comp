#version 450
/* Y = X W^T for few rows by one quad of invocations, which is a workgroup, for devices that gather what four invocations
 * load (see gemm_quad.comp). The invocations take turns at the octets of a column, so that neither x nor weights are
 * loaded twice, and add up their sums at the end. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_quad : require
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_WORDWISE
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#include "operands.glsl"
#include "columns.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint COLS = VKA_TILE_COLS;
const uint COL_STEP = 1u;
const uint DEPTH_LANES = 4u;
const uint ROWS = VKA_TILE_ROWS;

void keep(uint row, uint column, uint depth_lane, float sum)
{
    sum += subgroupQuadSwapHorizontal(sum);
    sum += subgroupQuadSwapVertical(sum);
    if (depth_lane == 0u && column < push.cols)
        y[push.y_offset + gl_WorkGroupID.z * push.y_step + row * push.y_stride + column] = sum;
}

#define GEMV_SUM sum_one_row
#define GEMV_ROWS 1u
#include "gemv_rows.glsl"
#define GEMV_SUM sum_rows
#define GEMV_ROWS ROWS
#include "gemv_rows.glsl"

void main()
{
    uint col = gl_WorkGroupID.x * VKA_TILE_COLS;
    uint row = gl_WorkGroupID.y * ROWS;
    uint rows = min(ROWS, push.rows - row);
    if (rows == 1u)
        sum_one_row(row, rows, col, gl_SubgroupInvocationID);
    else
        sum_rows(row, rows, col, gl_SubgroupInvocationID);
}
