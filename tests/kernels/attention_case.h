/* One attention problem: data with planted keys, run on the device clean and poisoned, checked against float64. */
#ifndef VKA_TEST_KERNELS_ATTENTION_CASE_H
#define VKA_TEST_KERNELS_ATTENTION_CASE_H

#include "kernels/rig.h"

/* Additive masks with holes of -inf, and rows in which nothing is seen. */
typedef enum case_masks {
    MASK_NONE,
    MASK_FULL, /* [heads, rows, keys], the second of two batches */
    MASK_KEYS, /* [1, 1, keys - 3]: the last three are hidden; K and V of what it hides are NaN */
    MASK_ROWS, /* [1, rows, 1] */
} case_masks;

typedef struct attention_case {
    uint32_t qk_dim, v_dim, kv_heads, group, page_size;
    uint32_t rows, keys;
    int32_t position; /* of the first row */
    bool causal;
    uint32_t window, window_right; /* 0: none */
    bool v_in_k;                   /* V is the first v_dim elements of K; v_dim is a multiple of 8 */
    uint32_t splits;               /* 1: results straight away; more: partials, then the combine kernel */
    float amplitude;               /* of Q and K; 0: 1 */
    bool equal_keys;               /* all keys the same */
    uint32_t bad_key;              /* its values are NaN; 0: none */
    float softcap;                 /* 0: none */
    bool sinks, alibi, gate;
    case_masks mask;
} attention_case;

/* Checks O and log-sum-exp, that guards stand, that poison outside of the valid data changes no bit, and that planted
 * bugs are found (not for cases in which rows see too little for that: large amplitudes, equal keys, nothing). */
void check_attention(test_rig *rig, const vka_variant *variant, const attention_case *c);

/* The result: O [rows, heads, v_dim], then log-sum-exp [rows, heads]. `first` .. first+rows-1 are the rows of the case
 * to compute, in tiles that begin at `first`. The caller frees it. */
float *run_attention(test_rig *rig, const vka_variant *variant, const attention_case *c, uint32_t first, uint32_t rows,
                     bool poisoned);

#endif
