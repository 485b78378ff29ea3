/* Small layers and random numbers for the tests of layouts. */
#ifndef VKA_TESTS_LAYOUT_SUPPORT_H
#define VKA_TESTS_LAYOUT_SUPPORT_H

#include <stdint.h>

#include "vkattn/layout.h"

/* A resolved-enough layer: hidden size 100 divides by no head count of interest, so head_dim is given. */
static inline vka_layer_desc layer_of(uint32_t heads, uint32_t kv_heads)
{
    return (vka_layer_desc){
        .struct_size = sizeof(vka_layer_desc),
        .hidden_size = 100,
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = 64,
    };
}

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003): 0 .. below - 1 from a state that is not 0. */
static inline uint32_t random_below(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % below;
}

#endif
