/* A weight matrix on one device, cut in row panels so that each fits the device's buffer limits. */
#ifndef VKA_EXEC_MATRIX_H
#define VKA_EXEC_MATRIX_H

#include "base/alloc.h"
#include "vk/gpu.h"
#include "vkattn/tensor.h"

typedef struct weight_matrix {
    uint32_t rows;
    uint32_t depth; /* elements per row, a multiple of 8 */
    vka_dtype dtype;
    uint32_t panel_rows;
    uint32_t panels;
    gpu_buffer **panel; /* [panels] */
} weight_matrix;

/* Writes row `row` as `depth` elements of the matrix's dtype to `target`. May be called by several threads at once. */
typedef void (*matrix_row_fn)(void *user, uint32_t row, void *target);

/* Rows that fit one panel under the limits; 0: not even one does. */
uint32_t matrix_panel_rows(const vka_caps *caps, uint32_t depth, vka_dtype dtype);

vka_status matrix_create(weight_matrix *out, gpu_device *device, uint32_t rows, uint32_t depth, vka_dtype dtype,
                         const char *name, matrix_row_fn fill, void *user, const vka_allocator *allocator,
                         vka_error *error);
void matrix_destroy(weight_matrix *matrix, const vka_allocator *allocator);

#endif
