/* What most layer tests do with a layer: some calls that mix prefill and decoding, every stage checked. */
#ifndef VKA_TESTS_LAYER_SCRIPT_H
#define VKA_TESTS_LAYER_SCRIPT_H

#include "layer/harness.h"

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
