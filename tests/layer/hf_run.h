/* Runs a block of tests/data/hf on devices, in the calls that its reference was made with. */
#ifndef VKA_TESTS_LAYER_HF_RUN_H
#define VKA_TESTS_LAYER_HF_RUN_H

#include "layer/hf_block.h"

/* Every promised device once; made by the first call. */
vka_context *hf_context(void);
void hf_context_close(void);

/* Prefill, then decoding with the cache: the largest difference of any output from the reference, in units of the
 * largest output of its call; infinity where one is not a number. */
double hf_run(const hf_block *block, uint32_t tp, const char *place);

/* How far the outputs may be off: see test_hf.c. */
#define HF_TOLERANCE 5e-6

#endif
