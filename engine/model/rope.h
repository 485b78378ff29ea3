/* What RoPE turns the pairs of a head by: the inverse frequencies of every type, and the factor on cosine and sine.
 * In double, where Hugging Face computes inverse frequencies and angles in float32: theirs are off by some 1e-7 of the
 * angle, which is what the references of the tests allow for. */
#ifndef VKA_MODEL_ROPE_H
#define VKA_MODEL_ROPE_H

#include <stdbool.h>

#include "vkattn/layer_desc.h"

typedef struct rope_table {
    uint32_t pairs;                       /* 0: no RoPE */
    double factor;                        /* on cosine and sine */
    double inverse[VKA_MAX_HEAD_DIM / 2]; /* pair i is turned by position * inverse[i], */
    uint8_t axis[VKA_MAX_HEAD_DIM / 2];   /* with this position of a row: 0 temporal, 1 height, 2 width */
} rope_table;

/* For a sequence of `length` tokens, the new ones included; `desc` is resolved. */
void rope_table_make(rope_table *out, const vka_layer_desc *desc, uint32_t length);

/* Pairs take positions of different axes. */
static inline bool rope_has_axes(const vka_layer_desc *desc)
{
    return desc->mrope_section[0] != 0 || desc->mrope_section[1] != 0 || desc->mrope_section[2] != 0;
}

/* The length past which a sequence is turned in another way than below it; 0: there is none. */
uint32_t rope_length_limit(const vka_layer_desc *desc);

#endif
