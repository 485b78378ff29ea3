#version 450
/* out[i] = sum of the four parts of texel i, as floats and as integers */
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Out { float sum[]; };
layout(binding = 1) uniform samplerBuffer floats;
layout(binding = 2) uniform usamplerBuffer words;
layout(push_constant) uniform Push { uint n; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        sum[i] = dot(texelFetch(floats, int(i)), vec4(1)) + float(texelFetch(words, int(i)).w);
}
