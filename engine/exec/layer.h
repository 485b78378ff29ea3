/* A layer on the devices: each device's shard of the weights, cut by head. */
#ifndef VKA_EXEC_LAYER_H
#define VKA_EXEC_LAYER_H

#include <stdbool.h>

#include "exec/context.h"
#include "exec/matrix.h"
#include "layout/latent.h"
#include "vkattn/layer.h"

typedef struct layer_device {
    vka_shard shard;
    weight_matrix qkv; /* rows: local Q heads (qk_pad each), their gates (v_pad), K heads (qk_pad), V heads (v_pad) */
    weight_matrix kv;  /* K and V heads, if not causal: their rows are projected apart, and qkv holds Q heads only */
    weight_matrix output;           /* rows: hidden; columns: local Q heads (o_pad each) */
    weight_matrix q_up, k_up, v_up; /* latent attention only: see latent.h, as for the order of qkv and constants */
    gpu_buffer *constants; /* biases in the order and padding of qkv's rows, then q norm, k norm, k_out norm (qk_pad
                              each, or that for each head where norms go over the full width) */
    float *sinks, *slopes; /* by local query head, on the host: they go with each call's parameters; NULL: none */
} layer_device;

struct vka_layer {
    vka_context *context;
    vka_layer_desc desc; /* resolved */
    vka_rank *ranks;
    uint32_t rank_count;
    bool reproducible;
    vka_dtype weight_dtype;
    uint32_t hidden_pad;
    uint32_t qk_pad, v_pad; /* vectors as attention takes them: of Q and K, of V and its result */
    uint32_t v_stored;      /* of V in the cache and in qkv: v_pad, or 0 where V is part of K (latent attention) */
    uint32_t o_pad;         /* one head of what the output projection takes */
    uint32_t k_dim, v_dim;  /* elements of a K and V vector in the cache */
    vka_latent latent;      /* zeros: not latent attention */
    uint32_t hidden_stride; /* floats between rows of hidden states on a device */
    uint32_t kv_hidden_pad, kv_hidden_stride; /* those of what K and V are projected from */
    bool has_bias;
    float *output_bias; /* [hidden], or NULL; added once, after the sum */
    layer_device *devices;
    const float **partials; /* room for the host addresses of all partials of a call */
};

/* Columns of the qkv rows of `device`: Q at 0, gates behind it, K and V at the returned offsets. */
uint32_t layer_k_column(const vka_layer *layer, const vka_shard *shard);
uint32_t layer_v_column(const vka_layer *layer, const vka_shard *shard);
uint32_t layer_qkv_columns(const vka_layer *layer, const vka_shard *shard);
/* The norm weights of K in constants. */
uint32_t layer_k_norm(const vka_layer *layer, const vka_shard *shard);
/* Floats of the norm weights of `heads` heads of Q or K. */
uint32_t layer_norm_floats(const vka_layer *layer, uint32_t heads);
/* Floats of all constants of a device. */
uint64_t layer_constants(const vka_layer *layer, const vka_shard *shard);
/* Floats between rows of attention outputs on the device, and of what the output projection takes. */
uint32_t layer_attention_stride(const vka_layer *layer, const vka_shard *shard);
/* Floats of a row of gates on the device, heads v_pad apart; 0 without a gate. The rows lie in EXEC_SCRATCH_Q behind
 * all rows of queries, since attention reads both from one buffer. */
uint32_t layer_gate_columns(const vka_layer *layer, const vka_shard *shard);
uint32_t layer_values_stride(const vka_layer *layer, const vka_shard *shard);
/* Partial sums that a device hands over: one, or one per rank when reproducible; 0 for an idle device. */
uint32_t layer_partials(const vka_layer *layer, const vka_shard *shard);

static inline bool layer_is_latent(const vka_layer *layer)
{
    return layer->latent.latent > 0;
}

vka_status exec_layer_create(vka_layer **out, vka_context *context, const vka_layer_params *params, vka_error *error);
void exec_layer_destroy(vka_layer **layer);

#endif
