/* Latent attention (kv_lora_rank > 0): the parts of its vectors, padded to multiples of 8 each, so that every part
 * begins where vectors are loaded whole. */
#ifndef VKA_LAYOUT_LATENT_H
#define VKA_LAYOUT_LATENT_H

#include "layout/shard.h"

typedef struct vka_latent {
    uint32_t rank;   /* Q's latent; 0: Q is projected straight from the hidden state */
    uint32_t plain;  /* elements of a Q head that do not turn */
    uint32_t rotary; /* those that do, and the part of K that all heads share */
    uint32_t latent; /* what K and V of all heads are made from */
    uint32_t value;  /* a V head */
} vka_latent;

/* All zeros for other layers. */
static inline vka_latent vka_latent_of(const vka_layer_desc *desc)
{
    if (desc->kv_lora_rank == 0)
        return (vka_latent){0};
    return (vka_latent){.rank = vka_pad8(desc->q_lora_rank),
                        .plain = vka_pad8(desc->head_dim - desc->rotary_dim),
                        .rotary = vka_pad8(desc->rotary_dim),
                        .latent = vka_pad8(desc->kv_lora_rank),
                        .value = vka_pad8(desc->v_head_dim)};
}

/* KV heads that caches and attention tell apart: latent attention has one for all query heads, on every device. */
static inline uint32_t vka_stored_kv_heads(const vka_layer_desc *desc)
{
    return desc->kv_lora_rank > 0 ? 1 : desc->kv_heads;
}

#endif
