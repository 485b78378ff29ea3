/* Device shard: the union of the ranks placed on one device, which is what is really stored and dispatched there. */
#ifndef VKA_LAYOUT_SHARD_H
#define VKA_LAYOUT_SHARD_H

#include <stdint.h>

#include "base/alloc.h"
#include "vkattn/layout.h"

/* Local heads are numbered in ascending order of their number in the whole layer, so the local query heads of one
 * local KV head are contiguous. A head held by several ranks of the device appears once. Latent attention has a single
 * KV head, number 0: the latent, which every device holds whole. */
typedef struct vka_shard {
    uint32_t device;
    uint32_t ranks;         /* ranks placed here; 0 is allowed: an idle device */
    uint32_t *rank;         /* [ranks] their numbers, ascending */
    uint32_t *rank_q_begin; /* [ranks] first local query head of each */
    uint32_t *rank_q_count; /* [ranks] */
    uint32_t q_heads;
    uint32_t *q_head; /* [q_heads] local -> whole layer */
    uint32_t *q_kv;   /* [q_heads] local query head -> local KV head */
    uint32_t kv_heads;
    uint32_t *kv_head;    /* [kv_heads] local -> whole layer */
    uint32_t *kv_q_begin; /* [kv_heads + 1] local KV head -> its first local query head */
    void *storage;        /* one block behind all arrays */
} vka_shard;

/* `ranks` are placed and all of one (c, d) slice. Deterministic. VKA_ERR_HOST_MEMORY only. */
vka_status vka_shard_create(vka_shard *out, const vka_layer_desc *desc, const vka_rank *ranks, uint32_t rank_count,
                            uint32_t device, const vka_allocator *allocator, vka_error *error);
void vka_shard_destroy(vka_shard *shard, const vka_allocator *allocator);

/* Head sizes as stored: the next multiple of 8. */
static inline uint32_t vka_pad8(uint32_t n)
{
    return (n + 7u) & ~7u;
}

#endif
