/* What most layer tests do with a layer: some calls that mix prefill and decoding, every stage checked. */
#ifndef VKA_TESTS_LAYER_SCRIPT_H
#define VKA_TESTS_LAYER_SCRIPT_H

#include "layer/harness.h"

/* A representative list of layers, placements, types and cache geometries for the devices of the shared context, of
 * which 0 and 2 are of one kind. Head sizes are few, since each costs a compilation. */
enum {
    SCRIPT_ONE_RANK,
    SCRIPT_ONE_DEVICE,
    SCRIPT_BALANCED,
    SCRIPT_REPLICATED,
    SCRIPT_IDLE,
    SCRIPT_REPRODUCIBLE,
    SCRIPT_FEW, /* those before run the same kernels */
    SCRIPT_ONE_KV_HEAD = SCRIPT_FEW,
    SCRIPT_QK_NORM,
    SCRIPT_HEAD_64,
    SCRIPT_LATENT,
    SCRIPT_CASES
};
extern const layer_case script_cases[SCRIPT_CASES];

/* How hidden states lie in host memory. */
typedef struct script_tensors {
    vka_dtype input, output;
    uint32_t input_gap, output_gap;
} script_tensors;

/* Three sequences: prefill beside a first token, decoding beside prefill, decoding of all; few rows and many. */
void run_script(layer_rig *rig, const script_tensors *tensors);

/* Opens, runs the script with F32 tensors, closes. */
void run_case(vka_context *context, const layer_case *setup);

#endif
