/* The projection step alone: y = x W^T on one device. */
#ifndef VKATTN_PROJECTION_H
#define VKATTN_PROJECTION_H

#include "vkattn/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix W [cols of y, depth] in the memory of one device. Belongs to the caller, who destroys it before the
 * context. Same thread-safety as the context. */
typedef struct vka_matrix vka_matrix;

/* Uploads `weights` to device `device` of the context, converted to `stored` (default: the type of `weights`). Read
 * during the call only. A matrix over the device's buffer limits is cut in row panels. */
VKA_API vka_status vka_matrix_create(vka_matrix **out, vka_context *context, uint32_t device, const vka_tensor *weights,
                                     vka_dtype stored, vka_error *error);
VKA_API void vka_matrix_destroy(vka_matrix **matrix);

/* x and y are dense F32 where they are buffers, and lie on the device of `weights`. */
typedef struct vka_projection_params {
    uint32_t struct_size; /* sizeof(vka_projection_params) */
    uint32_t rows; /* of x and y, at least 1; few rows run the matrix-vector kernel, many the matrix-matrix one */
    const vka_matrix *weights;
    vka_tensor x;         /* [rows, depth] in host memory; or data == NULL and x_buffer set */
    vka_buffer *x_buffer; /* [rows, depth] */
    uint64_t x_offset;    /* bytes into x_buffer, a multiple of 4 */
    vka_tensor_out y;     /* [rows, cols] in host memory; data == NULL: not wanted */
    vka_buffer *y_buffer; /* [rows, cols]; NULL: not wanted */
    uint64_t y_offset;    /* bytes into y_buffer, a multiple of 4 */
    uint32_t repeat;      /* how often the kernel runs, for timing; 0: once. A submission's time budget is that of a
                             single run */
    double *gpu_ms;       /* of one run, the mean of `repeat`; NULL: not wanted; -1 where there are no timestamps */
    double *wall_ms;      /* host time of one run, from recording to the end of the wait; NULL: not wanted */
    const char **variant; /* name of the kernel variant that ran, static storage; NULL: not wanted */
} vka_projection_params;

/* At least one of y and y_buffer is set; x and y must not overlap. Many rows are cut in several submissions, so that
 * each stays inside its time budget. */
VKA_API vka_status vka_projection(vka_context *context, const vka_projection_params *params, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
