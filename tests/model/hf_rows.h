/* What tests/data/README.md says of each attention block under tests/data/hf. */
#ifndef VKA_TESTS_MODEL_HF_ROWS_H
#define VKA_TESTS_MODEL_HF_ROWS_H

#include "model/weights.h"

enum { BIAS_Q = 1, BIAS_K = 2, BIAS_V = 4, BIAS_O = 8, BIAS_QKV = 7, BIAS_ALL = 15 };

typedef struct hf_row {
    const char *folder, *reference, *architecture, *model_type;
    const char *prefix; /* of the block's tensors */
    vka_block block;
    uint32_t layers, layer; /* layers that have blocks of this kind */
    uint32_t tokens, steps; /* rows of the prefill and of all decoding steps; 0: 24 and 6 */
    bool alone;             /* no decoding */
    vka_layer_desc desc;    /* not resolved */
    vka_dtype dtype;        /* of matrices */
    unsigned bias;
    bool by_group;   /* query_key_value holds [queries | key | value] of each group of heads, not of each head */
    bool transposed; /* matrices lie [columns, rows] */
} hf_row;

extern const hf_row hf_rows[];
extern const size_t hf_row_count;

/* Where an element of a tensor of the checkpoint is among the engine's weights. */
enum { HF_NOT_OF_ATTENTION = -1, HF_UNKNOWN = -2 };

typedef struct hf_place {
    int weight;
    uint64_t row;
} hf_place;

/* Element of row `row` of the tensor `name` (without the prefix; of a bias: element `row`); weight -1: the tensor does
 * not belong to attention, -2: no such name. */
hf_place hf_place_of(const hf_row *row, const char *name, uint64_t element);

#endif
