#version 450
/* gemm.glsl for a workgroup that is one subgroup of eight invocations. All of them need the same rows of X, so each loads
 * other quads of the tile, and shuffles give them to all: on such devices one costs a fraction of a load. Half a tile of rows has its own loop. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "gemm.glsl"

const uint LANES = 8u;
const uint LOADS = 2u * ROWS / LANES; /* of a lane, per octet: load n of lane l is half (n * 8 + l) % 2 of a row */

uint x_at[LOADS];
vec4 x[LOADS];

void locate_rows(uint row, uint lane)
{
    [[unroll]] for (uint n = 0u; n < LOADS; n++)
        x_at[n] = row_quad(row + (n * LANES + lane) / 2u) + lane % 2u;
}

void begin_octet(uint k, uint rows)
{
    [[unroll]] for (uint n = 0u; n < LOADS; n++)
        if (n * LANES < 2u * rows)
            x[n] = load_quad(x_at[n] + 2u * k);
}

vec4 row_values(uint r, uint k, uint half_octet)
{
    uint at = 2u * r + half_octet;
    return subgroupShuffle(x[at / LANES], at % LANES);
}

void main()
{
    uint left = push.rows - gl_WorkGroupID.y * ROWS;
    if (left <= ROWS / 2u)
        multiply(gl_SubgroupInvocationID, ROWS / 2u);
    else
        multiply(gl_SubgroupInvocationID, ROWS);
}
