/* Test data. */
#ifndef VKA_TEST_KERNELS_DATA_H
#define VKA_TEST_KERNELS_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/tensor.h"

/* Counter-based noise in [-1, 1). */
float noise(uint32_t stream, size_t i);
float *noise_array(uint32_t stream, size_t count);
/* Zeroed memory, asserted. */
void *new_array(size_t count, size_t size);
/* `value` as `dtype` would hold it. */
float rounded(float value, vka_dtype dtype);

#endif
