#include "kernels/data.h"

#include <stdlib.h>

#include "base/half.h"
#include "support/require.h"

float noise(uint32_t stream, size_t i)
{
    uint64_t z = ((uint64_t)stream << 40) + i + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (float)((double)(z >> 40) * 0x1p-23 - 1);
}

void *new_array(size_t count, size_t size)
{
    void *data = calloc(count, size);
    assert_non_null(data);
    return data;
}

float *noise_array(uint32_t stream, size_t count)
{
    float *data = new_array(count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = noise(stream, i);
    return data;
}

float rounded(float value, vka_dtype dtype)
{
    float result = value;
    if (dtype == VKA_F16)
        result = vka_f16_to_f32(vka_f32_to_f16(value));
    else if (dtype == VKA_BF16)
        result = vka_bf16_to_f32(vka_f32_to_bf16(value));
    return result;
}
