/* Addresses inside views of host matrices. */
#ifndef VKA_BASE_TENSOR_H
#define VKA_BASE_TENSOR_H

#include "vkattn/tensor.h"

/* Element (row, col); maybe unaligned. */
static inline const void *vka_tensor_element(const vka_tensor *tensor, uint64_t row, uint64_t col)
{
    uint64_t stride = tensor->row_stride != 0 ? tensor->row_stride : tensor->cols;

    return (const unsigned char *)tensor->data + (row * stride + col) * vka_dtype_size(tensor->dtype);
}

#endif
