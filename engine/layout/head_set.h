/* A set of heads, small enough for the stack. */
#ifndef VKA_LAYOUT_HEAD_SET_H
#define VKA_LAYOUT_HEAD_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "vkattn/layer_desc.h"

typedef struct vka_head_set {
    uint64_t words[VKA_MAX_HEADS / 64];
} vka_head_set;

static inline bool vka_head_set_has(const vka_head_set *set, uint32_t head)
{
    return set->words[head / 64] >> (head % 64) & 1u;
}

/* Adds `count` heads from `begin` on; returns how many of them are new. */
static inline uint32_t vka_head_set_add(vka_head_set *set, uint32_t begin, uint32_t count)
{
    uint32_t added = 0;

    for (uint32_t head = begin; head < begin + count; head++) {
        added += !vka_head_set_has(set, head);
        set->words[head / 64] |= (uint64_t)1 << (head % 64);
    }
    return added;
}

#endif
