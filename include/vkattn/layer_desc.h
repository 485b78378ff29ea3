/* Layer description: geometry and options of one attention block. Plain data, no Vulkan. */
#ifndef VKATTN_LAYER_DESC_H
#define VKATTN_LAYER_DESC_H

#include <stdint.h>

#include "vkattn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKA_MAX_HEAD_DIM 576u
#define VKA_MAX_HEADS    4096u

/* Inverse frequencies inv_i, i = 0 .. rotary_dim/2 - 1, d = rotary_dim; position p turns pair i by p * inv_i. */
typedef enum vka_rope_type {
    VKA_ROPE_DEFAULT = 0,  /* theta^(-2i/d) (Su et al., RoFormer) */
    VKA_ROPE_NONE = 1,     /* no rotary embedding */
    VKA_ROPE_LINEAR = 2,   /* default / factor (Chen et al., position interpolation) */
    VKA_ROPE_NTK = 3,      /* theta * factor^(d/(d-2)) instead of theta */
    VKA_ROPE_DYNAMIC = 4,  /* theta * (factor*L/context - (factor-1))^(d/(d-2)), L = max(length, context) */
    VKA_ROPE_YARN = 5,     /* ramp between default and default / factor (Peng et al., YaRN); see vka_rope_scaling */
    VKA_ROPE_LONGROPE = 6, /* default / long_factor[i] past original_context, else / short_factor[i] (Ding et al.) */
    VKA_ROPE_LLAMA3 = 7,   /* by wavelength bands, as Llama 3.1 */
} vka_rope_type;

typedef enum vka_rope_pairing {
    VKA_ROPE_HALF_SPLIT = 0,  /* element i turns with element i + rotary_dim/2 (NeoX, Hugging Face Llama) */
    VKA_ROPE_INTERLEAVED = 1, /* element 2i turns with element 2i + 1 (GPT-J, DeepSeek, GGUF's Llama family) */
} vka_rope_pairing;

/* Parameters of the scaled RoPE types; a field that a type does not use is 0. */
typedef struct vka_rope_scaling {
    double factor;             /* all but DEFAULT, NONE and LONGROPE; LONGROPE: context / original_context when 0 */
    uint32_t context;          /* DYNAMIC: the length up to which nothing is scaled (max_position_embeddings) */
    uint32_t original_context; /* YARN, LONGROPE, LLAMA3: length the model was first trained for */
    double low_freq_factor;    /* LLAMA3 */
    double high_freq_factor;   /* LLAMA3 */
    double beta_fast;          /* YARN; 0: 32 */
    double beta_slow;          /* YARN; 0: 1 */
    uint32_t no_truncate;      /* YARN: nonzero: the ramp's ends are not rounded to whole pairs */
    double mscale;             /* YARN: with mscale_all_dim: cos and sin times get(factor, mscale) /
                                  get(factor, mscale_all_dim), get(s, m) = 0.1 m ln s + 1 */
    double mscale_all_dim;
    double attention_factor;                  /* YARN, LONGROPE: cos and sin are multiplied by it; 0: YARN as above, or
                                                 0.1 ln factor + 1; LONGROPE sqrt(1 + ln factor / ln original_context) */
    float short_factor[VKA_MAX_HEAD_DIM / 2]; /* LONGROPE: rotary_dim/2 divisors each */
    float long_factor[VKA_MAX_HEAD_DIM / 2];
} vka_rope_scaling;

typedef enum vka_qk_norm {
    VKA_QK_NORM_NONE = 0,
    VKA_QK_NORM_PER_HEAD = 1, /* RMSNorm over head_dim with weight [head_dim], before RoPE (Qwen3) */
    VKA_QK_NORM_FULL_WIDTH =
        2, /* RMSNorm over all heads together, weights [heads*head_dim], [kv_heads*head_dim], before
              RoPE (OLMo 2). With more than one device the sums of squares are exchanged first. */
} vka_qk_norm;

/* What a row sees. p: position of a row in its sequence; j: position of a key. */
typedef enum vka_attend {
    VKA_ATTEND_CAUSAL = 0, /* j <= p */
    VKA_ATTEND_FULL = 1,   /* every key of the sequence: those cached before the call and all of the call's own */
    VKA_ATTEND_CROSS = 2,  /* every key of another sequence: K and V come from vka_forward_params.kv_input, appended by
                              the calls that bring some, and stay in the cache for those that do not; no RoPE */
} vka_attend;

typedef enum vka_gate {
    VKA_GATE_NONE = 0,
    VKA_GATE_SIGMOID =
        1, /* q has 2*head_dim rows per head, [query | gate]; the output of the head is multiplied by
              sigmoid(gate) before the output projection; the gate gets no norm and no RoPE (Qwen3-Next) */
} vka_gate;

typedef enum vka_kv_policy {
    VKA_KV_DEFAULT = 0,   /* that of the layer description; there: replicate */
    VKA_KV_REPLICATE = 1, /* KV heads are sharded, or each lives on tp / kv_heads ranks when that is whole */
    VKA_KV_STRICT = 2,    /* KV heads are sharded only: kv_heads % tp == 0 */
} vka_kv_policy;

typedef struct vka_layer_desc {
    uint32_t struct_size;    /* sizeof(vka_layer_desc) */
    uint32_t hidden_size;    /* elements of a hidden state; 1 .. 2^31 - 1 */
    uint32_t heads;          /* query heads of the whole layer, 1 .. VKA_MAX_HEADS */
    uint32_t kv_heads;       /* KV heads of the whole layer, at most heads; whole groups are a rule of the layout */
    uint32_t head_dim;       /* elements of one Q or K head, 1 .. VKA_MAX_HEAD_DIM; 0: hidden_size / heads */
    uint32_t v_head_dim;     /* elements of one V head, 1 .. VKA_MAX_HEAD_DIM; 0: head_dim */
    uint32_t kv_hidden_size; /* VKA_ATTEND_CROSS: elements of a row of kv_input; 0: hidden_size */
    vka_kv_policy kv_policy; /* default policy of the family */
    double scale;            /* softmax scale; 0: 1 / sqrt(head_dim) */

    vka_rope_type rope_type;
    vka_rope_pairing rope_pairing;
    uint32_t rotary_dim;    /* elements of a head that turn, even; 0: head_dim - rotary_offset; set to 0 without RoPE */
    uint32_t rotary_offset; /* first of them */
    double rope_theta;      /* base; 0: 10000 */
    vka_rope_scaling rope_scaling;
    uint32_t mrope_section[3];  /* pairs turned by the temporal, height and width position (Qwen2-VL); the sum is
                                   rotary_dim/2, or all are 0: one position for all pairs */
    uint32_t mrope_interleaved; /* nonzero: pairs 1, 4, .. below 3*section[1] take the height, 2, 5, .. below
                                   3*section[2] the width, the rest the temporal position (Qwen3-VL); else in order */

    double clip_qkv; /* 0: none; otherwise Q, K and V are clamped to [-clip, clip] after the bias (DBRX) */
    vka_qk_norm qk_norm;
    double norm_eps;           /* of the QK-norm; 0: 1e-6 */
    uint32_t norm_unit_offset; /* nonzero: norms multiply by 1 + weight (Gemma) */
    uint32_t k_out_norm;       /* nonzero: K given back by a call (k_output) has a norm of its own, weight k_out_norm */

    vka_attend attend;
    uint32_t window;       /* W: key j is visible only if p - j < W; 0: no window */
    uint32_t window_right; /* R: key j is visible only if j - p < R; 0: no window; not with VKA_ATTEND_CAUSAL */
    double softcap; /* 0: none; otherwise scores are softcap * tanh(score / softcap), before mask and sinks (Gemma 2) */
    uint32_t sinks; /* nonzero: each query head has a logit that enters maximum and sum and has no value (gpt-oss) */
    uint32_t alibi; /* nonzero: slope[head] * (j - p) is added to the score, after scale and softcap (Press et al.) */
    vka_gate gate;

    uint32_t kv_lora_rank; /* nonzero: multi-head latent attention (DeepSeek-V2): K and V come from one latent of this
                              size per token, which is what the cache holds; causal, heads == kv_heads, RoPE only on the
                              last rotary_dim elements of a head, one K of them for all heads; the norms of latents use
                              norm_eps; kv_lora_rank + rotary_dim, each rounded up to a multiple of 8, is at most
                              VKA_MAX_HEAD_DIM */
    uint32_t q_lora_rank;  /* with kv_lora_rank: Q comes from a latent too; 0: straight from the hidden state */
} vka_layer_desc;

/* Fills every defaulted field of *desc in place and checks the geometry. VKA_ERR_ARGUMENT names the field, its value
 * and what was expected. A head_dim of 0 that hidden_size / heads does not divide evenly is such an error (the head
 * size never depends on the number of ranks). Thread-safe. */
VKA_API vka_status vka_layer_desc_resolve(vka_layer_desc *desc, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
