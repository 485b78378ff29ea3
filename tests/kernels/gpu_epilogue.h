/* One epilogue on the device, checked. */
#ifndef VKA_TEST_KERNELS_GPU_EPILOGUE_H
#define VKA_TEST_KERNELS_GPU_EPILOGUE_H

#include "kernels/rig.h"

typedef struct epilogue_shape {
    uint32_t rows, heads, head_dim, rotary_dim;
    bool bias, norm;
    bool paged; /* into a cache of the variant's type; else to float rows */
    uint32_t rotary_offset;
    bool interleaved;
    uint32_t norm_dim; /* 0: head_dim */
    float clip;
    bool sigmoid;
} epilogue_shape;

void check_epilogue(test_rig *rig, const vka_variant *variant, const epilogue_shape *shape);

#endif
