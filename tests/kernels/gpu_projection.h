/* One projection on the device, checked. */
#ifndef VKA_TEST_KERNELS_GPU_PROJECTION_H
#define VKA_TEST_KERNELS_GPU_PROJECTION_H

#include "kernels/rig.h"

typedef struct projection_shape {
    uint32_t rows, cols, depth;
} projection_shape;

void check_projection(test_rig *rig, const vka_variant *variant, projection_shape shape);

#endif
