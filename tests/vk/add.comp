#version 450
/* b[i] = b[i] + factor * a[i] + c, for i < n */
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint factor = 1;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) buffer B { float b[]; };
layout(push_constant) uniform Push { uint n; float c; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        b[i] += float(factor) * a[i] + c;
}
