/* Where layers come from: presets by name, checkpoints on disk, tensor files, generated weights. No Vulkan. */
#ifndef VKATTN_MODEL_H
#define VKATTN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/layer_desc.h"
#include "vkattn/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weights of one attention block as the layer description orders them: q [heads*head_dim, hidden] (with a gate
 * [heads*2*head_dim, hidden], per head [query | gate]), k [kv_heads*head_dim, hidden], v [kv_heads*v_head_dim, hidden],
 * o [hidden, heads*v_head_dim]; k and v have kv_hidden_size columns in cross attention. Biases and norm weights are one
 * row. Absent tensors have data == NULL. Views only; the owner is documented where they come from.
 *
 * Latent attention (kv_lora_rank > 0): kv_a [kv_lora_rank + rotary_dim, hidden] gives latent | rotary part of K;
 * kv_b [heads*(head_dim - rotary_dim + v_head_dim), kv_lora_rank] gives, per head, the rest of K | V, from the normed
 * latent; k and v are absent. With q_lora_rank, q_a [q_lora_rank, hidden] gives Q's latent and q has q_lora_rank
 * columns. */
typedef struct vka_layer_weights {
    uint32_t struct_size; /* sizeof(vka_layer_weights) */
    vka_tensor q, k, v, o;
    vka_tensor q_bias, k_bias, v_bias, o_bias; /* optional */
    vka_tensor q_norm, k_norm; /* iff qk_norm: [head_dim], or full width [heads*head_dim] and [kv_heads*head_dim] */
    vka_tensor k_out_norm;     /* [head_dim], iff k_out_norm */
    vka_tensor sinks;          /* [heads], iff sinks */
    vka_tensor alibi_slopes;   /* [heads], iff alibi */
    vka_tensor q_a, q_a_norm;  /* q_a_norm: [q_lora_rank]; iff q_lora_rank */
    vka_tensor kv_a, kv_a_norm, kv_b; /* kv_a_norm: [kv_lora_rank]; iff kv_lora_rank */
} vka_layer_weights;

/* Checks every shape of `weights` against a resolved `desc` and each value's presence; VKA_ERR_FORMAT names the tensor,
 * its shape and the expected one. */
VKA_API vka_status vka_layer_weights_check(const vka_layer_weights *weights, const vka_layer_desc *desc,
                                           vka_error *error);

/* ---- presets: head layouts of public models ---- */

typedef struct vka_preset {
    const char *name;    /* e.g. "llama3.1-8b" */
    vka_layer_desc desc; /* resolved geometry */
    const char *note;    /* NULL: runs as is; otherwise what of the real model is laid out but not modelled here */
} vka_preset;

VKA_API size_t vka_preset_count(void);
VKA_API const vka_preset *vka_preset_at(size_t index); /* NULL past the end; static storage */

/* VKA_ERR_ARGUMENT names near matches. */
VKA_API vka_status vka_preset_find(const char *name, const vka_preset **preset, vka_error *error);

/* ---- checkpoints: a GGUF file, or a folder with config.json and safetensors files ----
 *
 * Families, and what of each runs: the table in README.md; all keys are those of Hugging Face transformers 5.24, in the
 * spellings of its versions 4 and 5. Where a model has a text_config, that is read, and the blocks of that text model.
 *
 * Cosmos3 has no configuration class there. These keys are read (as public inference engines name them): model_type
 * "cosmos3", hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim, rope_theta (required),
 * rope_scaling.mrope_section (absent: 24, 20, 20), qk_norm_for_text (norm_q and norm_k of the understanding pathway;
 * absent: true), use_und_k_norm_for_gen (k_norm_und_for_gen, the norm of keys that are handed on; absent: false; not
 * both). VKA_BLOCK_SELF is layers.N.self_attn, causal, VKA_BLOCK_CROSS gen_layers.N.cross_attention, which sees the
 * keys handed on and all of its own; each has to_qkv or to_q, to_k and to_v, and to_out or to_out.0. Norms have an eps
 * of 1e-6. */

typedef struct vka_model vka_model;

/* Which attention block of a layer. Layers are counted in the stack that has the block. */
typedef enum vka_block {
    VKA_BLOCK_SELF = 0,    /* self attention: of a decoder, or of an encoder that has no decoder (BERT) */
    VKA_BLOCK_CROSS = 1,   /* cross attention of a decoder (T5, Whisper); the cross pathway of Cosmos3 */
    VKA_BLOCK_ENCODER = 2, /* self attention of the encoder where there is a decoder too (Whisper) */
} vka_block;

typedef struct vka_model_info {
    char architecture[64]; /* e.g. "LlamaForCausalLM" */
    char model_type[32];   /* e.g. "llama" */
    uint32_t layers;       /* that have blocks of the kind asked for; of an open model: VKA_BLOCK_SELF */
    uint32_t has_weights;  /* nonzero: a folder or a GGUF file, to be opened; 0: a configuration alone */
    const char *not_run;   /* NULL; or why layers of this architecture are laid out only (static storage) */
} vka_model_info;

/* Opens `dir` (config.json; model.safetensors, or model.safetensors.index.json with its shards), memory-mapped. Only
 * headers are read. An architecture or option that is not understood is refused by name. The object is immutable
 * after creation and may be shared by threads. */
VKA_API vka_status vka_model_open(vka_model **out, const char *dir, vka_error *error);
VKA_API void vka_model_close(vka_model **model);
VKA_API const vka_model_info *vka_model_get_info(const vka_model *model); /* lives as long as the model */

/* Description from config.json alone (needs no weight files; `path` is the folder or the file itself). `desc`
 * (resolved) and `info` may be NULL. An architecture, a RoPE type or an option that may change attention and is not
 * known is VKA_ERR_UNSUPPORTED, with its name; so is a layer that has no softmax attention. A malformed configuration
 * is VKA_ERR_FORMAT, a block or layer that the model does not have VKA_ERR_ARGUMENT. With info->not_run the description
 * has the geometry only: what such a layer computes is not read. */
VKA_API vka_status vka_model_read_config(const char *path, vka_block block, uint32_t layer, vka_layer_desc *desc,
                                         vka_model_info *info, vka_error *error);

/* One layer as loaded: views into the mapped files where the file holds a tensor as the engine orders it, copies where
 * it had to be reordered, computed or dequantised. Immutable; lives on its own memory, but not longer than `model`.
 */
typedef struct vka_model_layer vka_model_layer;

/* Loads one layer, description and weights cross-checked against each other: VKA_ERR_FORMAT names the tensor, its shape
 * and the expected one; a tensor of the block that is not understood, or an architecture that is laid out only, is
 * VKA_ERR_UNSUPPORTED. */
VKA_API vka_status vka_model_layer_load(vka_model_layer **out, const vka_model *model, vka_block block, uint32_t layer,
                                        vka_error *error);
VKA_API void vka_model_layer_free(vka_model_layer **layer);
VKA_API const vka_layer_desc *vka_model_layer_desc(const vka_model_layer *layer); /* resolved */
VKA_API const vka_layer_weights *vka_model_layer_weights(const vka_model_layer *layer);

/* ---- single safetensors files ---- */

typedef struct vka_tensor_file vka_tensor_file; /* immutable after opening; may be shared by threads */

typedef struct vka_named_tensor {
    const char *name;
    vka_dtype dtype; /* VKA_DTYPE_DEFAULT: some other type of the format (I64, U8, ...), not computed with */
    uint32_t dims;   /* 0 .. 8 */
    uint64_t shape[8];
    const void *data; /* row-major, native byte order, maybe unaligned */
} vka_named_tensor;

/* Maps the file and checks its header. Names and data live as long as the object. */
VKA_API vka_status vka_tensor_file_open(vka_tensor_file **out, const char *path, vka_error *error);
VKA_API void vka_tensor_file_close(vka_tensor_file **file);
VKA_API size_t vka_tensor_file_count(const vka_tensor_file *file);
/* In the order of names; NULL past the end. */
VKA_API const vka_named_tensor *vka_tensor_file_at(const vka_tensor_file *file, size_t index);
VKA_API const vka_named_tensor *vka_tensor_file_find(const vka_tensor_file *file, const char *name); /* or NULL */

/* Writes `count` tensors to `path` atomically (a temporary file in the same folder, then rename). Names are UTF-8 and
 * differ; types are F32, F16 or BF16. */
VKA_API vka_status vka_tensor_file_write(const char *path, const vka_named_tensor *tensors, size_t count,
                                         vka_error *error);

/* ---- generated data ---- */

/* value(seed, stream, index): uniform in [-1, 1), a pure function of its arguments (counter-based, Philox 4x32-10;
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), so any part can be made again alone. */
VKA_API float vka_random_value(uint64_t seed, uint32_t stream, uint64_t index);

/* out[i] = amplitude * value(seed, stream, first + i), i = 0 .. count - 1 */
VKA_API void vka_random_fill(float *out, size_t count, double amplitude, uint64_t seed, uint32_t stream,
                             uint64_t first);

typedef struct vka_generated_weights vka_generated_weights;

typedef struct vka_generate_params {
    uint32_t struct_size;
    vka_dtype dtype; /* of q, k, v, o; default F16; biases and norm weights are F32 */
    uint64_t seed;
    uint32_t qkv_bias; /* nonzero: make q, k, v biases */
    uint32_t o_bias;   /* nonzero: make an o bias */
} vka_generate_params;

/* Weights for any description (resolved or not), scaled so that activations keep their size: q, k, v and o are uniform
 * with the variance 1 / columns, biases lie in [-0.5, 0.5), norm weights in [0.5, 1.5). `params` may be NULL. */
VKA_API vka_status vka_weights_generate(vka_generated_weights **out, const vka_layer_desc *desc,
                                        const vka_generate_params *params, vka_error *error);
VKA_API const vka_layer_weights *vka_weights_view(const vka_generated_weights *weights);
VKA_API void vka_weights_free(vka_generated_weights **weights);

#ifdef __cplusplus
}
#endif

#endif
