/* Mistakes to plant in a block of tests/data/hf before it runs. */
#ifndef VKA_TESTS_LAYER_HF_MISTAKES_H
#define VKA_TESTS_LAYER_HF_MISTAKES_H

#include "layer/hf_block.h"

typedef struct hf_mistake {
    const char *name;
    /* Makes the mistake; false where it would change nothing. Memory that the weights need then goes to *owned. */
    bool (*plant)(hf_block *block, void **owned);
} hf_mistake;

extern const hf_mistake hf_mistakes_of_options[]; /* in the description, and the weights that an option needs */
extern const size_t hf_mistakes_of_options_count;
extern const hf_mistake hf_mistakes_of_rope[];
extern const size_t hf_mistakes_of_rope_count;
extern const hf_mistake hf_mistakes_of_weights[];
extern const size_t hf_mistakes_of_weights_count;

#endif
