/* Element types and views of host memory. */
#ifndef VKATTN_TENSOR_H
#define VKATTN_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vka_dtype {
    VKA_DTYPE_DEFAULT = 0, /* "as documented at the parameter" */
    VKA_F32 = 1,           /* IEEE 754 binary32 */
    VKA_F16 = 2,           /* IEEE 754 binary16 */
    VKA_BF16 = 3,          /* upper half of a binary32 */
} vka_dtype;

/* Bytes per element; 0 for VKA_DTYPE_DEFAULT and unknown values. */
VKA_API size_t vka_dtype_size(vka_dtype dtype);

/* "F32", "F16", "BF16", as in safetensors; "default" or "unknown" otherwise. Never NULL. */
VKA_API const char *vka_dtype_name(vka_dtype dtype);

/* A view of a row-major matrix in host memory, native byte order. A vector is one row. The view owns nothing; `data`
 * must stay valid and unchanged while a call uses it and, for views returned by the library, lives as long as the
 * object documented there. data == NULL means "absent". `data` may be unaligned when it points into a mapped file. */
typedef struct vka_tensor {
    const void *data;
    vka_dtype dtype;
    uint64_t rows;
    uint64_t cols;
    uint64_t row_stride; /* elements between rows; 0 means `cols` */
} vka_tensor;

/* The same, writable. */
typedef struct vka_tensor_out {
    void *data;
    vka_dtype dtype;
    uint64_t rows;
    uint64_t cols;
    uint64_t row_stride; /* elements between rows; 0 means `cols` */
} vka_tensor_out;

#ifdef __cplusplus
}
#endif

#endif
