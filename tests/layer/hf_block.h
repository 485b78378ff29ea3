/* One attention block of a checkpoint under tests/data/hf, and what it should give (tests/data/README.md). Everything
 * here fails the running test when the engine does. */
#ifndef VKA_TESTS_LAYER_HF_BLOCK_H
#define VKA_TESTS_LAYER_HF_BLOCK_H

#include <stdbool.h>

#include "support/require.h"
#include "vkattn/vkattn.h"

typedef struct hf_case {
    const char *folder; /* of tests/data/hf; or NAME.gguf, a file of tests/data/gguf */
    vka_block block;
    uint32_t layer;
    const char *reference; /* NULL: that of the block, "layer0" */
} hf_case;

extern const hf_case hf_cases[];
extern const size_t hf_case_count;

enum { HF_SEQUENCES = 4 };

/* A tensor of the reference file, or nothing (data NULL). */
typedef struct hf_rows {
    const float *data;
    uint32_t rows, cols;
} hf_rows;

typedef struct hf_block {
    char name[96]; /* for messages: "qwen2 layer1" */
    vka_model *model;
    vka_model_layer *loaded;
    vka_layer_desc desc; /* copies: a test may plant a mistake */
    vka_layer_weights weights;
    vka_tensor_file *reference;
    uint32_t sequences, decode_steps;
    uint32_t length[HF_SEQUENCES], kv_length[HF_SEQUENCES];
    hf_rows prefill_input, prefill_output, decode_input, decode_output, kv_input, k_output, v_output;
    hf_rows cached_k, cached_v; /* keys and values that are there before the prefill */
    uint32_t position_rows;     /* 3 where positions are given, else 0 */
    uint32_t position_count;
    int32_t *positions; /* [3, position_count] */
} hf_block;

/* Is the checkpoint a GGUF file? Its block is one of tests/data/hf/NAME again, or has its reference beside it. */
bool hf_is_gguf(const hf_case *which);

void hf_open(hf_block *block, const hf_case *which);
void hf_close(hf_block *block);

#endif
