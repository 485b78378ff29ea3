/* What shaders for quads share: four invocations, of which each loads a row of its own, and rows that change places. */
const uint SIDE = 4u;

#ifndef VKA_F32
layout(std430, set = 0, binding = VKA_STORED_BINDING) readonly buffer Halves { uvec2 stored_halves[]; };
#endif

/* Half an octet of stored elements; `index` counts them. */
vec4 load_half(uint index)
{
#ifdef VKA_F32
    return STORED(index);
#else
    return unpack(stored_halves[index]);
#endif
}

/* What invocation l ^ s of the quad has. */
vec4 swapped(vec4 row, uint s)
{
    return s == 0u ? row
         : s == 1u ? subgroupQuadSwapHorizontal(row)
         : s == 2u ? subgroupQuadSwapVertical(row)
                   : subgroupQuadSwapDiagonal(row);
}

float swapped(float value, uint s)
{
    return swapped(vec4(value), s).x;
}
