/* Small layers for the tests of layouts. */
#ifndef VKA_TESTS_LAYOUT_SUPPORT_H
#define VKA_TESTS_LAYOUT_SUPPORT_H

#include <stdint.h>

#include "support/random.h"
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

#endif
