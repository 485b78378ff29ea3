/* The float64 reference: recomputes one stage of a layer from the device's own input to it, and judges every element of
 * the device's output by a bound of its own. Shares no code with the engine but threads, errors and memory, so that a
 * mistake there cannot hide here.
 *
 * u = 2^-24 is the unit roundoff of F32 arithmetic. Every bound is a worst case over the order of additions and over
 * the precision that Vulkan promises for exp, log, division and inverse square root; correct kernels stay far below 1,
 * the planted bugs (verify_mutant) go far above it.
 *
 * All functions are thread-safe and use up to all cores. They fail only with VKA_ERR_ARGUMENT or VKA_ERR_HOST_MEMORY;
 * an error over the bound is not a failure of the call but a result. */
#ifndef VKA_VERIFY_H
#define VKA_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vkattn/layer_desc.h"
#include "vkattn/tensor.h"

/* The largest error relative to its bound and where it is. Zero-initialise; calls add to what is there. */
typedef struct verify_result {
    double max_ratio; /* |got - want| / bound; above 1: failed; INFINITY for NaN, Inf or an error of an exact 0 */
    size_t index;     /* of that element in the array that was checked */
    double got, want, bound; /* of that element */
    size_t nonfinite;        /* elements that are NaN or Inf and should not be */
    size_t elements;         /* checked so far */
} verify_result;

/* Something was checked, and everything is within its bound. */
bool verify_passed(const verify_result *result);
/* Adds one element. */
void verify_element(verify_result *result, size_t index, double got, double want, double bound);
/* Adds another result; the first of equally bad elements stays. */
void verify_merge(verify_result *result, const verify_result *other);

/* Normalised mean square error: sum (got - want)^2 / sum want^2. For information only, it never decides. */
double verify_nmse(size_t count, const float *got, const double *want);

/* Planted bugs: the reference is made wrong in this way, and the check of a correct device must then fail. */
typedef enum verify_mutant {
    VERIFY_CORRECT = 0,
    VERIFY_WRONG_SCALE,        /* attention: scale 1 % too large */
    VERIFY_DROPPED_KEY,        /* attention: the middle one of the keys that a row sees is left out */
    VERIFY_MASK_OFF_BY_ONE,    /* attention: the last key that a row sees is left out */
    VERIFY_WRONG_KV_HEAD,      /* attention: the next KV head; no change where there is only one */
    VERIFY_WRONG_ROPE_PAIRING, /* epilogue: the other pairing */
    VERIFY_PARTIAL_TWICE,      /* sum: the last partial is counted twice */
    VERIFY_MUTANT_COUNT
} verify_mutant;

const char *verify_mutant_name(verify_mutant mutant);

/* ---- projection: y = x W^T ---- */

typedef struct verify_projection_params {
    size_t rows, cols, depth;
    const float *x;     /* [rows, depth] */
    size_t x_stride;    /* elements between rows */
    vka_tensor weights; /* [cols, depth] */
    vka_dtype stored;   /* as the device holds them: rounded from the view's type to this one, to nearest even */
    const float *y;     /* [rows, cols], the device's result */
    size_t y_stride;
} verify_projection_params;

/* Bound: (depth + 2) u sum |x||w|, the classical one for a dot product in any order (Higham, Accuracy and Stability of
 * Numerical Algorithms, 3.1), and depth * 2^-126 for products that are flushed to zero. */
vka_status verify_projection(const verify_projection_params *params, verify_result *result, vka_error *error);

/* ---- RoPE: pair i of a row is turned by its position on an axis * inverse ---- */

/* In a sequence of `length` tokens. */
double verify_rope_inverse(const vka_layer_desc *desc, uint32_t length, uint32_t pair);
/* What cosine and sine are multiplied by. */
double verify_rope_factor(const vka_layer_desc *desc);
/* 0 temporal, 1 height, 2 width */
uint32_t verify_rope_axis(const vka_layer_desc *desc, uint32_t pair);

/* ---- epilogue: bias, clipping, RMSNorm, RoPE or sigmoid, rounding to the cache's type ---- */

typedef struct verify_epilogue_params {
    size_t rows, heads, head_dim;
    const float *raw; /* element i of a head: row*raw_stride + head*head_dim + i; the device's own projection */
    size_t raw_stride;
    const float *bias;          /* [heads, head_dim], or NULL */
    const float *norm;          /* [head_dim], or NULL */
    size_t norm_dim;            /* elements that are normed, the first; 0: head_dim */
    const float *factor;        /* [rows, 2] norm over all heads of a row: by the first of two; NULL: over the head */
    const vka_layer_desc *desc; /* what it says of norms, RoPE and clipping */
    bool turned;                /* by RoPE: Q and K are, V is not */
    bool sigmoid;               /* the gate: neither clipped nor turned */
    const int32_t *position;    /* [rows], the temporal one; may be NULL without RoPE */
    size_t position_stride;     /* from one axis to the next; 0: the same on all */
    uint32_t length;            /* of the sequence, its rows included */
    const float *got;           /* element i of a head: row*got_stride + head*head_dim + i */
    size_t got_stride;
    vka_dtype got_dtype; /* that the device rounded its result to before it was read back: F32 or F16 */
    verify_mutant mutant;
} verify_epilogue_params;

/* Adds the squares of each row, after bias and clipping, to squares[row]. */
void verify_add_squares(const verify_epilogue_params *params, double *squares);
/* Whether `got` is 1 / sqrt(squares / width + eps), within what sums and divisions in F32 may be off by. */
void verify_factor(verify_result *result, size_t index, double got, double squares, size_t width, double eps);

vka_status verify_epilogue(const verify_epilogue_params *params, verify_result *result, vka_error *error);

/* ---- attention: rows of one sequence, one query head ---- */

typedef struct verify_attention_params {
    size_t rows, keys;
    size_t qk_dim, v_dim; /* 1 .. VKA_MAX_HEAD_DIM */
    const float *q;       /* element i: row*q_stride + i */
    size_t q_stride;
    const float *k,
        *v; /* element i of key j, head h: j*key_stride + h*head_stride + i, values as the cache holds them */
    size_t k_key_stride, k_head_stride;
    size_t v_key_stride, v_head_stride;
    size_t kv_head, kv_heads;
    double scale;
    int64_t position;      /* of row 0, where key 0 has position 0; row r sees key j iff, with p = position + r, */
    bool causal;           /* ... j <= p */
    uint32_t window;       /* ... and, unless 0, p - j < window */
    uint32_t window_right; /* ... and, unless 0, j - p < window_right, and the mask is not -inf */
    double softcap;        /* unless 0, a score becomes softcap * tanh(score / softcap) */
    double slope;          /* ... then slope * (j - p) is added */
    const float *mask;     /* ... then element r*mask_row_stride + j*mask_key_stride; NULL: nothing */
    size_t mask_row_stride, mask_key_stride;
    size_t mask_keys;  /* keys from this one on are hidden; with a mask only */
    const float *sink; /* one more score, of no key; NULL: none */
    const float *gate; /* row*gate_stride + i, multiplies O; NULL: none */
    size_t gate_stride;
    size_t rescales;  /* key blocks and merges of splits that the device went through; 0: bounded from `keys` */
    const float *got; /* element i: row*got_stride + i */
    size_t got_stride;
    const float *lse; /* log-sum-exp of row: row*lse_stride; or NULL */
    size_t lse_stride;
    verify_mutant mutant;
} verify_attention_params;

/* Checks O into *result and, where given, the log-sum-exp into *lse_result (NULL: into *result). A row that sees
 * nothing must be exactly 0 and -inf (with a sink: its score). The index of an element is row*v_dim + i, that of a
 * log-sum-exp is the row. */
vka_status verify_attention(const verify_attention_params *params, verify_result *result, verify_result *lse_result,
                            vka_error *error);

/* ---- sum of partials ---- */

typedef struct verify_sum_params {
    size_t partials, count;
    const float *const *partial; /* [partials] arrays of `count` */
    const float *got;            /* [count], converted to F32 */
    vka_dtype got_dtype;         /* that the sum was rounded to */
    verify_mutant mutant;
} verify_sum_params;

/* Bound: (partials - 1) u sum |p|, and the rounding to got_dtype. */
vka_status verify_sum(const verify_sum_params *params, verify_result *result, vka_error *error);

#endif
