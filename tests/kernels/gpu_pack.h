/* Packing on the device, checked. */
#ifndef VKA_TEST_KERNELS_GPU_PACK_H
#define VKA_TEST_KERNELS_GPU_PACK_H

#include "kernels/rig.h"

void check_packing(test_rig *rig, const vka_variant *variant);

#endif
