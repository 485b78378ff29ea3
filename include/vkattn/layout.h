/* Layout: which logical rank owns which heads (partition), on which device each rank lives (placement), and what that
 * costs. Pure arithmetic: no Vulkan, no allocation, no globals; every function here is thread-safe. */
#ifndef VKATTN_LAYOUT_H
#define VKATTN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/layer_desc.h"
#include "vkattn/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tp head shards x cp KV-sequence shards x dp batch shards; tp*cp*dp logical ranks. 0 means 1. */
typedef struct vka_grid {
    uint32_t tp;
    uint32_t cp;
    uint32_t dp;
} vka_grid;

/* One logical rank. rank = (d*cp + c)*tp + t. */
typedef struct vka_rank {
    uint32_t rank;
    uint32_t t, c, d;  /* coordinates in the grid */
    uint32_t q_begin;  /* first query head */
    uint32_t q_count;  /* whole query heads owned */
    uint32_t kv_begin; /* first KV head */
    uint32_t kv_count; /* whole KV heads owned (at least 1) */
    uint32_t replica;  /* which copy of its KV heads this rank holds, 0 .. replicas - 1 */
    uint32_t replicas; /* ranks (of one c, d) that hold the same KV heads: 1, or tp / kv_heads */
    uint32_t device;   /* index in a device list, set by placement; 0 until then */
} vka_rank;

/* The rule a layout failed. */
typedef enum vka_layout_rule {
    VKA_RULE_NONE = 0,          /* accepted */
    VKA_RULE_GROUP = 1,         /* heads % kv_heads != 0: query heads do not form whole groups */
    VKA_RULE_QUERY_HEADS = 2,   /* heads % tp != 0 */
    VKA_RULE_KV_HEADS = 3,      /* kv_heads % tp != 0 and tp % kv_heads != 0: a KV head would be cut */
    VKA_RULE_KV_REPLICATED = 4, /* tp % kv_heads == 0, but policy strict forbids replicas */
    VKA_RULE_GRID = 5,          /* tp*cp*dp exceeds VKA_MAX_RANKS */
} vka_layout_rule;

/* "group", "query_heads", "kv_heads", "kv_replicated", "grid"; "none" otherwise. Never NULL. */
VKA_API const char *vka_layout_rule_name(vka_layout_rule rule);

#define VKA_MAX_RANKS 4096u
#define VKA_MAX_VALID_TP 64u

/* The answer for one layer and grid, accepted or not. */
typedef struct vka_verdict {
    vka_layout_rule rule; /* VKA_RULE_NONE: accepted */
    uint32_t replicas;    /* accepted: ranks per KV head */
    uint32_t valid_strict_count;
    uint32_t valid_strict[VKA_MAX_VALID_TP]; /* every valid tp under strict, ascending */
    uint32_t valid_replicate_count;
    uint32_t valid_replicate[VKA_MAX_VALID_TP]; /* every valid tp under replicate, ascending */
} vka_verdict;

/* Every function below takes VKA_KV_DEFAULT as the policy of the description.
 *
 * Judges a layout without refusing: fills *verdict. `desc` must be resolved. Fails only on bad arguments. The list of
 * valid sizes is all valid `tp` for the layer (the query function for schedulers). */
VKA_API vka_status vka_layout_judge(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy,
                                    vka_verdict *verdict, vka_error *error);

/* Number of ranks of a grid (zeros counted as 1), or 0 when it exceeds VKA_MAX_RANKS. */
VKA_API uint32_t vka_grid_ranks(vka_grid grid);

/* Fills ranks[0 .. vka_grid_ranks(grid)). VKA_ERR_LAYOUT carries the refusal: the numbers, the rule that failed, why it
 * matters, the valid sizes under each policy, and what else would work. `capacity` counts entries of `ranks`. */
VKA_API vka_status vka_partition(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy, vka_rank *ranks,
                                 uint32_t capacity, vka_error *error);

/* Sets ranks[i].device for `device_count` devices. spec == NULL: balanced contiguous blocks (sizes differ by at most
 * one, larger blocks first). Otherwise "DEVICE*COUNT,DEVICE*COUNT,..." in rank order ("*COUNT" may be left out for 1);
 * DEVICE is a position in the chosen device list; the counts must add up to rank_count. */
VKA_API vka_status vka_place(vka_rank *ranks, uint32_t rank_count, uint32_t device_count, const char *spec,
                             vka_error *error);

/* What one device holds and moves. */
typedef struct vka_device_cost {
    uint32_t device;
    uint32_t ranks;    /* logical ranks placed here */
    uint32_t q_heads;  /* distinct query heads */
    uint32_t kv_heads; /* distinct KV heads (a KV head replicated on ranks of one device counts once); with latent
                          attention 1 on every device with ranks: the latent, which each holds whole */
    uint64_t weight_bytes;             /* projections as stored (padded head sizes) */
    uint64_t cache_bytes_per_token;    /* K and V of one token that lives here, as stored (padded head sizes) */
    uint64_t upload_bytes_per_token;   /* hidden states in, F32 */
    uint64_t download_bytes_per_token; /* partial sum out, F32 */
    uint64_t norm_bytes_per_token;     /* QK-norm over the full width: sums of squares out, factors in, F32; else 0 */
    uint64_t exchanges;                /* how often a call waits for all devices, per chunk: for partial sums, and before
                                          that for the sums of squares of such a norm */
} vka_device_cost;

/* Fills costs[0 .. device_count) for placed ranks; an idle device costs nothing. dtypes: VKA_DTYPE_DEFAULT means F16 weights and F16 cache. */
VKA_API vka_status vka_placement_cost(const vka_layer_desc *desc, const vka_rank *ranks, uint32_t rank_count,
                                      uint32_t device_count, vka_dtype weight_dtype, vka_dtype cache_dtype,
                                      vka_device_cost *costs, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
