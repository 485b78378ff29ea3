#version 450
/* Y = X W^T for few rows, by a workgroup that is one subgroup of eight invocations, each with the columns of its place in a
 * group. All of them need the same octets of X, so one load of a quad by each brings four: of one row, or of four rows.
 * Shuffles give them to all: on such devices one costs a fraction of a load. An element is one chain of additions. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#define VKA_VIEW_BINDING   3
#include "operands.glsl"
#include "columns.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint COLS = VKA_TILE_COLS / LANE_COLS;
const uint LOAD = 4u; /* octets of X that a load brings */

/* Quad at which row `row` of X begins. */
uint row_quad(uint row)
{
    uint x_offset = push.x_offset + gl_WorkGroupID.z * push.x_step;
    return (x_offset + min(row, push.rows - 1u) * push.x_stride) / 4u;
}

#define GEMV_SUM sum_one_row
#define GEMV_ADD add_one_row
#define GEMV_ROWS 1u
#include "gemv_lanes.glsl"
#define GEMV_SUM sum_rows
#define GEMV_ADD add_rows
#define GEMV_ROWS LOAD
#include "gemv_lanes.glsl"

void main()
{
    uint lane = gl_SubgroupInvocationID;
    uint column = gl_WorkGroupID.x * VKA_TILE_COLS + lane;
    uint row = gl_WorkGroupID.y * VKA_TILE_ROWS;
    if (push.rows - row == 1u)
        sum_one_row(row, column, lane);
    else
        sum_rows(row, column, lane);
}
