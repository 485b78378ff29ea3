/* config.json of a checkpoint -> what the attention blocks of a model are. Four families are recognised: Llama,
 * Mistral, Qwen2 and Qwen3, each as Hugging Face transformers computes it. */
#ifndef VKA_MODEL_CONFIG_H
#define VKA_MODEL_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "vkattn/model.h"

/* Which projections have a bias. */
typedef enum vka_bias_rule {
    VKA_BIAS_NEVER,
    VKA_BIAS_QKV,    /* always on q, k and v, never on o; no key says so */
    VKA_BIAS_OPTION, /* attention_bias: on q, k, v and o */
} vka_bias_rule;

/* Which layers have a sliding window. */
typedef enum vka_window_rule {
    VKA_WINDOW_NEVER,
    VKA_WINDOW_ALL,    /* sliding_window, null for none */
    VKA_WINDOW_LAYERS, /* use_sliding_window, then layer_types, or layers from max_window_layers on */
} vka_window_rule;

typedef struct vka_family {
    const char *model_type; /* "llama" */
    const char *name;       /* what its architectures begin with: "Llama" */
    vka_bias_rule bias;
    vka_window_rule window;
    vka_qk_norm qk_norm;
    bool needs_kv_heads; /* see vka_config_require() */
    bool needs_head_dim;
} vka_family;

typedef struct vka_config {
    const vka_family *family;
    char architecture[64]; /* "LlamaForCausalLM" */
    uint32_t layers;
    vka_layer_desc desc; /* resolved; of a layer without a window */
    uint32_t window;     /* of the layers that have one; 0: no layer has */
    bool *sliding;       /* [layers] */
    bool qkv_bias, o_bias;
} vka_config;

#define VKA_MAX_LAYERS 65536u

/* Parses the text of a config.json. vka_config_free() takes a zeroed or half-built object. */
vka_status vka_config_parse(vka_config *out, const void *data, size_t size, const char *label, vka_error *error);
vka_status vka_config_read(vka_config *out, const char *path, vka_error *error);
void vka_config_free(vka_config *config);

/* The resolved description of one layer. `label` is the file. */
vka_status vka_config_layer(const vka_config *config, vka_block block, uint32_t layer, vka_layer_desc *desc,
                            const char *label, vka_error *error);

/* ---- the parts of parsing, each in a file of its own; `root` is the whole object ---- */

typedef struct vka_config_source {
    json_t *root;
    const char *label;
    vka_error *error;
} vka_config_source;

/* Refuses the absence of a key (null is not absence); for keys whose absence stands for a number of one model. */
vka_status vka_config_require(const vka_config_source *source, const char *key);

/* Sets family and architecture; an unknown one is VKA_ERR_UNSUPPORTED (config_family.c). */
vka_status vka_config_family(const vka_config_source *source, vka_config *config);
/* Refuses keys about attention that are not understood and hold more than null, false or nothing (config_keys.c). */
vka_status vka_config_keys(const vka_config_source *source);
/* Sets rope_theta and rotary_dim; desc.head_dim is set already (config_rope.c). */
vka_status vka_config_rope(const vka_config_source *source, vka_config *config);
/* Sets window and sliding; layers is set already (config_window.c). */
vka_status vka_config_window(const vka_config_source *source, vka_config *config);

#endif
