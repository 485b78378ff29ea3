/* The attention step alone: Q, K, V in; O and optionally the log-sum-exp out.
 *
 * O[b,i,h] = sum_j p_j V[b,j,h/group], p = softmax over visible j of scale * Q[b,i,h] . K[b,j,h/group].
 * A row that sees nothing gives 0 and log-sum-exp -inf (with a sink: the sink). Log-sum-exp is in natural base. Options
 * change a score s of query head h, query at position p and key j in this order: softcap, ALiBi, mask. */
#ifndef VKATTN_ATTENTION_H
#define VKATTN_ATTENTION_H

#include "vkattn/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vka_causal {
    VKA_CAUSAL_NONE = 0,
    VKA_CAUSAL_BOTTOM_RIGHT = 1, /* query i sees keys j <= i + kv_len - q_len */
    VKA_CAUSAL_TOP_LEFT = 2,     /* query i sees keys j <= i */
} vka_causal;

/* Position of query i among the keys where nothing is causal: what windows are counted from. */
typedef enum vka_align {
    VKA_ALIGN_BOTTOM_RIGHT = 0, /* i + kv_len - q_len */
    VKA_ALIGN_TOP_LEFT = 1,     /* i */
} vka_align;

/* Host memory or a device buffer: exactly one of `host` and `buffer` is set. Element order [batch, length, heads, dim];
 * dense. F32 everywhere on the device; host tensors may be F32, F16 or BF16. */
typedef struct vka_attention_tensor {
    void *host;
    vka_dtype dtype;    /* of host data; default F32 */
    vka_buffer *buffer; /* on `device`, F32 */
    uint64_t offset;    /* bytes into buffer, a multiple of 4 */
} vka_attention_tensor;

/* Mask of rank 1 to 4, the last dimensions of [batch, heads, q_len, kv_len]; one of size 1 serves all (as in numpy).
 * The last may be shorter than kv_len: keys past it are hidden. */
typedef struct vka_attention_mask {
    uint32_t rank; /* 0: no mask */
    uint32_t shape[4];
    const uint8_t *keep; /* host memory, dense: 0 hides the key; or NULL, and */
    vka_attention_tensor
        added; /* is added to the score; -inf hides the key. Host memory or a buffer as other tensors */
} vka_attention_mask;

typedef struct vka_attention_params {
    uint32_t struct_size; /* sizeof(vka_attention_params) */
    uint32_t device;      /* position in the context's device list */
    uint32_t batch;
    uint32_t heads, kv_heads;
    uint32_t head_dim;
    uint32_t v_head_dim; /* 0: head_dim */
    uint32_t q_len, kv_len;
    double scale; /* 0: 1 / sqrt(head_dim) */
    vka_causal causal;
    vka_align align;        /* without causal only */
    uint32_t window;        /* W: a query at position p sees key j only if p - j < W; 0: none */
    uint32_t window_right;  /* R: ... only if j - p < R; 0: none */
    vka_dtype cache_dtype;  /* K and V as the kernel reads them: F32 (default) or F16 */
    vka_attention_tensor q; /* [batch, q_len, heads, head_dim] */
    vka_attention_tensor k; /* [batch, kv_len, kv_heads, head_dim] */
    vka_attention_tensor v; /* [batch, kv_len, kv_heads, v_head_dim] */
    double softcap;         /* 0: none; s becomes softcap * tanh(s / softcap) */
    const float *alibi;     /* [heads], or NULL; alibi[h] * (j - p) is added to s; p as windows count it */
    const float *sinks;     /* [heads], or NULL; the score of one more key, which has no value */
    vka_attention_mask mask;
    vka_attention_tensor o;   /* [batch, q_len, heads, v_head_dim] */
    vka_attention_tensor lse; /* [batch, q_len, heads], F32; both members NULL: not wanted */
    double *gpu_ms;           /* NULL: not wanted; -1 where the device has no timestamps */
    uint32_t repeat; /* how often the kernels run, for timing; 0: once. gpu_ms and wall_ms are those of one run, the
                        mean. A submission's time budget is that of a single run */
    double *wall_ms; /* NULL: not wanted; host time of one run, from recording to the end of the wait: without what
                        makes K and V ready or brings results to the host */
    const char **variant; /* NULL: not wanted; name of the kernel variant (prefill or decode) that the first rows ran,
                             static storage */
} vka_attention_params;

VKA_API vka_status vka_attention(vka_context *context, const vka_attention_params *params, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
