/* Element types of GGUF tensors: plain ones, and quantised ones, whose elements come in blocks that share scales. */
#ifndef VKA_MODEL_BLOCKS_H
#define VKA_MODEL_BLOCKS_H

#include <stdint.h>

#include "vkattn/tensor.h"

typedef void (*vka_block_decoder)(float *out, const unsigned char *block);

typedef struct vka_block_format {
    const char *name;         /* "Q4_K" */
    uint32_t id;              /* in the file */
    uint32_t elements, bytes; /* of a block; plain types have one element */
    vka_dtype dtype;          /* of plain types that are computed with as they are; else VKA_DTYPE_DEFAULT */
    vka_block_decoder decode; /* NULL: plain, or not computed with */
} vka_block_format;

/* NULL: a type that is not known. */
const vka_block_format *vka_block_format_find(uint32_t id);

/* Decodes `blocks` blocks that follow each other into F32, with the value the format defines, rounded as a chain of F32
 * operations (as the gguf package does). */
void vka_blocks_decode(float *out, const vka_block_format *format, const void *data, uint64_t blocks);

#endif
