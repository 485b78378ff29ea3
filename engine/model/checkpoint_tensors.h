/* From the tensors of a checkpoint to weights in the engine's order. */
#ifndef VKA_MODEL_CHECKPOINT_TENSORS_H
#define VKA_MODEL_CHECKPOINT_TENSORS_H

#include "model/checkpoint.h"
#include "model/tensor_names.h"

enum { VKA_TENSOR_NAME_BYTES = 128 };

typedef struct vka_found_tensor {
    const vka_slot *slot; /* NULL: not there */
    vka_arrangement arrangement;
} vka_found_tensor;

typedef struct vka_found_tensors {
    const vka_tensor_names *names;
    char prefix[VKA_TENSOR_NAME_BYTES / 2];
    vka_found_tensor tensors[VKA_WEIGHT_COUNT];
    char texts[VKA_WEIGHT_COUNT][VKA_TENSOR_NAME_BYTES]; /* names for messages */
} vka_found_tensors;

/* Fills out->weights by views, or by copies that out->owned holds; out->desc is resolved. ALiBi slopes, which no
 * checkpoint holds, are computed. VKA_ERR_FORMAT names a merged tensor of a wrong shape. */
vka_status vka_order_tensors(const vka_found_tensors *found, vka_model_layer *out, vka_error *error);

#endif
