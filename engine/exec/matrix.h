/* A weight matrix on one device, cut in row panels so that each fits the device's buffer limits, and its rows are no
 * more columns of a result than one dispatch can have. Rows lie in groups of
 * eight whose octets are interleaved, as gemm_push in shaders/params.h says, so that eight neighbouring invocations,
 * one a row, read one run of memory. */
#ifndef VKA_EXEC_MATRIX_H
#define VKA_EXEC_MATRIX_H

#include "base/alloc.h"
#include "vk/gpu.h"
#include "vkattn/tensor.h"

typedef struct weight_matrix {
    uint32_t rows;
    uint32_t depth; /* elements per row, a multiple of 8 */
    vka_dtype dtype;
    uint32_t block_rows; /* rows of one head where each head has a product of its own; 0: one product */
    uint32_t panel_rows; /* a multiple of MATRIX_GROUP and of block_rows */
    uint32_t panels;
    gpu_buffer **panel; /* [panels] */
} weight_matrix;

#define MATRIX_GROUP 8u
#define MATRIX_OCTET 8u

/* Where the octets of one row go. */
typedef struct matrix_row {
    unsigned char *next; /* the next octet */
    vka_dtype dtype;
} matrix_row;

/* Appends `count` elements to the row, then zeros up to the next whole octet. */
void matrix_put(matrix_row *row, const void *elements, vka_dtype dtype, uint32_t count);
/* Appends `count` zeros, a multiple of 8. */
void matrix_put_zeros(matrix_row *row, uint32_t count);

/* Puts the `depth` elements of row `row`. May be called by several threads at once. */
typedef void (*matrix_row_fn)(void *user, uint32_t row, matrix_row *out);

/* Bytes of the smallest panel: one group of rows. */
uint64_t matrix_group_bytes(uint32_t depth, vka_dtype dtype);
/* Rows that fit one panel under the limits; 0: not even a group does. */
uint32_t matrix_panel_rows(const vka_caps *caps, uint32_t depth, vka_dtype dtype);

/* `shape` says rows, depth, type and, where there are some, block_rows: a multiple of MATRIX_GROUP that fits a panel.
 */
vka_status matrix_create(weight_matrix *out, gpu_device *device, const weight_matrix *shape, const char *name,
                         matrix_row_fn fill, void *user, const vka_allocator *allocator, vka_error *error);
void matrix_destroy(weight_matrix *matrix, const vka_allocator *allocator);

#endif
