/* The projection step alone, over the same matrix and kernels as a layer call. */
#ifndef VKA_EXEC_PROJECTION_H
#define VKA_EXEC_PROJECTION_H

#include "exec/context.h"
#include "exec/matrix.h"
#include "vkattn/projection.h"

struct vka_matrix {
    vka_context *context;
    uint32_t device;
    uint32_t depth; /* without the padding that weights.depth has */
    weight_matrix weights;
};

vka_status exec_matrix_create(vka_matrix **out, vka_context *context, uint32_t device, const vka_tensor *weights,
                              vka_dtype stored, vka_error *error);
void exec_matrix_destroy(vka_matrix **matrix);

/* `candidate` (NULL: none) runs instead of what is selected for its kernel. */
vka_status exec_projection(vka_context *context, const vka_projection_params *params, const vka_variant *candidate,
                           vka_error *error);

#endif
