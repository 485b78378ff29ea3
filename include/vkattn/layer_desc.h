/* Layer description: geometry and options of one attention block. Plain data, no Vulkan. */
#ifndef VKATTN_LAYER_DESC_H
#define VKATTN_LAYER_DESC_H

#include <stdint.h>

#include "vkattn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKA_MAX_HEAD_DIM 576u
#define VKA_MAX_HEADS 4096u

typedef enum vka_rope_type {
    VKA_ROPE_DEFAULT = 0, /* inv_i = theta^(-2i/rotary_dim), i = 0 .. rotary_dim/2 - 1 (Su et al., RoFormer) */
    VKA_ROPE_NONE = 1,    /* no rotary embedding */
} vka_rope_type;

typedef enum vka_rope_pairing {
    VKA_ROPE_HALF_SPLIT = 0, /* element i turns with element i + rotary_dim/2 (NeoX, Hugging Face Llama) */
} vka_rope_pairing;

typedef enum vka_qk_norm {
    VKA_QK_NORM_NONE = 0,
    VKA_QK_NORM_PER_HEAD = 1, /* RMSNorm over head_dim with weight [head_dim], before RoPE (Qwen3) */
} vka_qk_norm;

typedef struct vka_layer_desc {
    uint32_t struct_size; /* sizeof(vka_layer_desc) */
    uint32_t hidden_size; /* elements of a hidden state; 1 .. 2^31 - 1 */
    uint32_t heads;       /* query heads of the whole layer, 1 .. VKA_MAX_HEADS */
    uint32_t kv_heads;    /* KV heads of the whole layer, at most heads; whole groups are a rule of the layout */
    uint32_t head_dim;    /* elements of one Q or K head, 1 .. VKA_MAX_HEAD_DIM; 0: hidden_size / heads */
    uint32_t v_head_dim;  /* elements of one V head, 1 .. VKA_MAX_HEAD_DIM; 0: head_dim */
    double scale;         /* softmax scale; 0: 1 / sqrt(head_dim) */
    vka_rope_type rope_type;
    vka_rope_pairing rope_pairing;
    uint32_t rotary_dim; /* leading elements of a head that turn, even; 0: head_dim; set to 0 without RoPE */
    double rope_theta;   /* base; 0: 10000 */
    vka_qk_norm qk_norm;
    double norm_eps; /* of the QK-norm; 0: 1e-6 */
    uint32_t window; /* sliding window W: key j is visible to query i iff 0 <= i - j < W; 0: no window */
} vka_layer_desc;

/* Fills every defaulted field of *desc in place and checks the geometry. VKA_ERR_ARGUMENT names the field, its value
 * and what was expected. A head_dim of 0 that hidden_size / heads does not divide evenly is such an error (the head
 * size never depends on the number of ranks). Thread-safe. */
VKA_API vka_status vka_layer_desc_resolve(vka_layer_desc *desc, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
