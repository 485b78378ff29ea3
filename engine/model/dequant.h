/* The element types of GGML (as GGUF files number them), and the decoding of those that the engine takes as weights.
 * Values are those that the reference decoder of the `gguf` package computes in float32, bit for bit. */
#ifndef VKA_MODEL_DEQUANT_H
#define VKA_MODEL_DEQUANT_H

#include <stdint.h>

#include "vkattn/tensor.h"

typedef struct vka_ggml_type {
    uint32_t number;
    const char *name;     /* "Q4_K" */
    uint32_t block;       /* elements of a block; rows are whole blocks */
    uint32_t block_bytes; /* size of one */
    vka_dtype dtype;      /* the engine's own type, when it is one: nothing is decoded */
    void (*decode)(float *out, const unsigned char *block); /* one block; NULL: not decoded here */
} vka_ggml_type;

/* NULL: a number that is not known. */
const vka_ggml_type *vka_ggml_type_of(uint32_t number);

/* Decodes `blocks` whole blocks, on several threads where that pays; type->decode is set. */
void vka_dequantise(float *out, const vka_ggml_type *type, const void *data, uint64_t blocks);

#endif
