/* Rows of floats on their way to and from padded rows on the device. */
#ifndef VKA_EXEC_ROWS_H
#define VKA_EXEC_ROWS_H

#include "exec/staged.h"
#include "kernels/kernels.h"
#include "vkattn/tensor.h"

/* Rows first .. first + count - 1 of a matrix, `pad` floats apart on the device. */
typedef struct row_range {
    uint64_t first;
    uint32_t count;
    uint32_t pad;
} row_range;

/* Floats from one row to the next in a tensor that GEMM reads: an odd number of cache lines of 64 bytes. Several rows
 * are read side by side; at a power of two apart they would fall into the same few cache sets. */
static inline uint32_t rows_stride(uint32_t columns)
{
    return ((columns + 15u) / 16u | 1u) * 16u;
}

/* Converts rows of `input` to F32, with zeros up to `pad`, and records their way to *tensor (STAGED_WRITE). */
vka_status rows_upload(staged_tensor *tensor, recorder *rec, const vka_tensor *input, row_range rows, vka_error *error);

/* A pack of `rows` rows: src_cols of src_stride to dst_cols of dst_stride, offsets 0. */
pack_push rows_pack(uint32_t rows, uint32_t src_cols, uint32_t src_stride, uint32_t dst_cols, uint32_t dst_stride);

#endif
