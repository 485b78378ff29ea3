#version 450
/* gemm.glsl where every invocation reads the rows of X for itself. */
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"

uint x_at[ROWS];

void locate_rows(uint row, uint lane)
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        x_at[r] = row_quad(row + r);
}

void begin_octet(uint k, uint rows)
{
}

vec4 row_values(uint r, uint k, uint half_octet)
{
    return load_quad(x_at[r] + 2u * k + half_octet);
}

void main()
{
    multiply(gl_LocalInvocationID.x, ROWS);
}
