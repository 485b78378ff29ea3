/* A call: hidden states in, hidden states out, over all devices of the layer.
 *
 * Rows of the batch are sequences one after the other. Row r of sequence s has position past + r, where past is the
 * length of s in the cache before the call; it sees keys 0 .. its own position (bottom-right causal alignment), or what
 * vka_attend and the windows of the description say. */
#ifndef VKATTN_FORWARD_H
#define VKATTN_FORWARD_H

#include "vkattn/buffer.h"
#include "vkattn/cache.h"
#include "vkattn/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vka_batch_entry {
    uint32_t sequence;   /* of the cache; a sequence may appear once */
    uint32_t new_tokens; /* rows of this sequence, >= 1; prefill and decoding may be mixed */
} vka_batch_entry;

typedef struct vka_batch {
    const vka_batch_entry *entries;
    uint32_t count;
} vka_batch;

/* Where the time of a call went. Stages of one device, in execution order. */
typedef enum vka_stage {
    VKA_STAGE_UPLOAD = 0, /* hidden states and parameters to the device */
    VKA_STAGE_QKV,        /* QKV projection */
    VKA_STAGE_EPILOGUE,   /* bias, QK-norm, RoPE, cache append */
    VKA_STAGE_ATTENTION,  /* attention, combine included */
    VKA_STAGE_OUTPUT,     /* output projection */
    VKA_STAGE_DOWNLOAD,   /* partial sum to cached host memory (0 when added in place) */
    VKA_STAGE_ADD,        /* sum over devices on the host; the same value for all devices */
    VKA_STAGE_RETURN,     /* result back up to the devices, when asked for */
    VKA_STAGE_COUNT
} vka_stage;

VKA_API const char *vka_stage_name(vka_stage stage); /* "upload", "qkv", ... */

typedef struct vka_stage_time {
    double wall_ms; /* host clock, for what the host does (upload, add, return); 0 for the rest */
    double gpu_ms;  /* GPU timestamps; -1 where the device has none or the stage is host work */
    double flops;   /* multiply-adds counted twice; attention counts visible pairs only */
    double bytes;   /* moved by definition: operands once, results once */
} vka_stage_time;

/* Filled per device; `devices` is caller-owned with room for vka_context_device_count(). */
typedef struct vka_timing {
    double wall_ms;  /* the whole call */
    double first_ms; /* of it: making pipelines and scratch memory; close to 0 in the steady state */
    uint32_t chunks; /* submissions per device */
    vka_stage_time (*devices)[VKA_STAGE_COUNT];
} vka_timing;

/* What a device computed in one chunk, copied to the host: the input and output of every stage, for checks that want
 * to judge each stage from the device's own input. Columns of padded heads are left out. Valid during the callback. */
typedef struct vka_trace {
    uint32_t struct_size;
    uint32_t device;
    uint32_t first_row, rows;     /* rows of the whole batch that this chunk computes */
    uint32_t q_heads, kv_heads;   /* on this device */
    const uint32_t *q_head;       /* [q_heads] numbers in the whole layer, ascending */
    const uint32_t *kv_head;      /* [kv_heads] numbers in the whole layer, ascending */
    const float *hidden;          /* [rows, hidden] what was uploaded */
    const float *qkv;             /* [rows, q_heads*head_dim + kv_heads*head_dim + kv_heads*v_head_dim], Q | K | V; with
                                     a gate Q | gates [q_heads*v_head_dim] | K | V */
    const float *norm_factor;     /* [rows, 2] QK-norm over the full width: 1 / root mean square of Q and of K; else NULL */
    const float *q;               /* [rows, q_heads*head_dim] after bias, norm, RoPE */
    const float *gate;            /* [rows, q_heads*v_head_dim] sigmoid of the gates; NULL without */
    const float *attention;       /* [rows, q_heads*v_head_dim] */
    uint32_t partials;            /* 1, or the number of ranks on this device when reproducible */
    const uint32_t *partial_rank; /* [partials] the rank, or UINT32_MAX for the sum over the device's ranks */
    const float *partial;         /* [partials, rows, hidden] */
    /* Cross attention: nonzero for chunks of kv_input. Then rows and first_row count there, hidden is
     * [rows, kv_hidden_size], Q's columns of qkv hold nothing, q, attention and partial are NULL, and partials is 0; in
     * the other chunks K's and V's columns of qkv hold nothing. */
    uint32_t appends;

    /* Latent attention, with plain = head_dim - rotary_dim; NULL for other layers. There
     *   kv_heads is 1: the latent;
     *   qkv is [rows, Q | kv_lora_rank | rotary_dim], Q the latent of Q or, without q_lora_rank, [q_heads*plain |
     *     q_heads*rotary_dim];
     *   q is [rows, q_heads*(kv_lora_rank + rotary_dim)]: what attention multiplies with the vectors in the cache. */
    const float *q_latent; /* [rows, q_lora_rank] normed; NULL without */
    const float *q_up;     /* [rows, q_heads*plain | q_heads*rotary_dim] Q from its latent; NULL without */
    const float *latents;  /* [rows, q_heads*kv_lora_rank] what attention returns; `attention` is made from it */
} vka_trace;

/* Called once per device and chunk after the chunk's exchange. vka_cache_read() is allowed inside, and sees the chunk's
 * own tokens; nothing else of the context may be used. Nonzero return: the call fails with VKA_ERR_ARGUMENT. */
typedef int (*vka_trace_fn)(void *user, const vka_trace *trace);

typedef struct vka_forward_params {
    uint32_t struct_size; /* sizeof(vka_forward_params) */
    vka_layer *layer;
    vka_cache *cache;
    uint32_t cache_layer; /* which layer of the cache */
    vka_batch batch;

    vka_tensor input;                 /* [rows, hidden] in host memory; or data == NULL and input_buffers set */
    vka_buffer *const *input_buffers; /* one per device: F32 [rows, hidden], the same values on all */

    const int32_t *positions; /* for RoPE: [rows], or [3, rows] (temporal, height, width) with mrope sections; NULL:
                                 the position in the sequence. Visibility always goes by the place in the sequence. */
    uint32_t position_rows;   /* 1 or 3; 0 without positions */
    /* VKA_ATTEND_CROSS only: rows of the other sequence, [sum of kv_tokens, kv_hidden_size]; kv_tokens[i] of them
     * belong to entry i and are appended to its keys before attention; 0: it uses the keys it has. NULL: 0 for all. */
    vka_tensor kv_input;
    const uint32_t *kv_tokens; /* [batch.count] */

    vka_tensor_out output;             /* [rows, hidden] in host memory; data == NULL: not wanted */
    vka_buffer *const *output_buffers; /* one per device: F32 [rows, hidden]; NULL: not wanted */

    /* K (normed, turned; with k_out_norm the norm is that one) and V of the new tokens, of all KV heads in order:
     * [rows, kv_heads*head_dim] and [rows, kv_heads*v_head_dim], rounded as the cache holds them; in cross attention the
     * rows are those of kv_input. data == NULL: not wanted. A rank's part is the columns of its KV heads.
     * VKA_ERR_UNSUPPORTED for latent attention, which never makes them. */
    vka_tensor_out k_output, v_output;

    vka_trace_fn trace; /* NULL: none; costs a full read-back */
    void *trace_user;
    vka_timing *timing; /* NULL: not wanted */
} vka_forward_params;

/* On success the sequences have grown by their new tokens. On failure lengths and pages are as before and outputs are
 * unspecified. VKA_ROPE_DYNAMIC and VKA_ROPE_LONGROPE go by each sequence's own length, its new tokens included; a
 * sequence with keys that would cross the limit of its type (context, original_context) is VKA_ERR_ARGUMENT: truncate it
 * to 0 and prefill it again. VKA_ERR_CACHE_FULL says how many pages are missing. VKA_ERR_DEVICE_LOST is final for the context. */
VKA_API vka_status vka_forward(const vka_forward_params *params, vka_error *error);

/* Creates the pipelines that calls of `layer` with `cache` need and issues an empty dispatch of each, since some
 * drivers compile only then. Optional: otherwise the first call does it, and says how long it took in `first_ms`. */
VKA_API vka_status vka_forward_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
