/* config.json of a checkpoint -> what the attention blocks of a model are, as Hugging Face transformers computes them.
 * A configuration is kept as parsed text; each description is worked out from it when it is asked for. */
#ifndef VKA_MODEL_CONFIG_H
#define VKA_MODEL_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/family.h"
#include "vkattn/model.h"

/* What a GGUF file says of its tensors and a config.json does not: names NULL for the latter. */
typedef struct vka_gguf_facts {
    const vka_tensor_names *names;
    bool interleaved;    /* rows of Q and K are permuted so that RoPE turns neighbours */
    uint32_t rotary_dim; /* 0: as the family says */
} vka_gguf_facts;

typedef struct vka_config {
    const vka_family *family;
    char architecture[64]; /* "LlamaForCausalLM" */
    json_t *root;
    json_t *keys; /* where the keys of attention stand: root, or its text_config */
    uint32_t layers;
    vka_gguf_facts gguf;
} vka_config;

#define VKA_MAX_LAYERS 65536u

/* Parses the text of a config.json and describes its first layer with attention. vka_config_free() takes a zeroed or
 * half-built object. */
vka_status vka_config_parse(vka_config *out, const void *data, size_t size, const char *label, vka_error *error);
vka_status vka_config_read(vka_config *out, const char *path, vka_error *error);
/* The same of keys that stand in no file; takes `root` over, also when it fails. `gguf` may be NULL. */
vka_status vka_config_from_json(vka_config *out, json_t *root, const vka_gguf_facts *gguf, const char *label,
                                vka_error *error);
void vka_config_free(vka_config *config);

/* How many layers have such a block; 0 when `block` is none of the family's. */
uint32_t vka_config_layers(const vka_config *config, vka_block block);

/* The resolved description of one layer. `label` is the file. */
vka_status vka_config_layer(const vka_config *config, vka_block block, uint32_t layer, vka_layer_desc *desc,
                            const char *label, vka_error *error);

/* The projections of a block that have biases: VKA_BIAS_Q | ... */
vka_status vka_config_layer_biases(const vka_config *config, vka_block block, unsigned *biases, const char *label,
                                   vka_error *error);

/* ---- the parts, each in a file of its own ---- */

typedef enum vka_layer_kind { VKA_LAYER_FULL, VKA_LAYER_SLIDING, VKA_LAYER_LINEAR } vka_layer_kind;

typedef struct vka_config_source {
    const vka_family *family;
    const json_t *keys;
    const char *label;
    vka_error *error;
    vka_block block;
    uint32_t layers, layer;
    vka_layer_kind kind;
} vka_config_source;

/* Refuses the absence of a key (null is not absence); for keys whose absence stands for a number of one model. */
vka_status vka_config_require(const vka_config_source *source, const char *key);

/* A required number, in a configuration or in an object of one. */
vka_status vka_config_count(const vka_config_source *source, const json_t *object, const char *key, uint32_t most,
                            uint32_t *out);

/* Sets family, architecture and keys; an unknown one is VKA_ERR_UNSUPPORTED (config_family.c). */
vka_status vka_config_find_family(vka_config *config, const char *label, vka_error *error);
/* Refuses keys about attention that are not understood and hold more than null, false or nothing, and keys whose value
 * the family cannot have (config_keys.c). */
vka_status vka_config_check_keys(const vka_config_source *source, const json_t *object);
/* Hidden size, heads and head sizes (config_geometry.c). */
vka_status vka_config_geometry(const vka_config_source *source, vka_layer_desc *desc);
/* The projections that have biases: VKA_BIAS_Q | ... (config_geometry.c). */
vka_status vka_config_biases(const vka_config_source *source, unsigned *biases);
/* RoPE; head sizes are set already (config_rope.c). */
vka_status vka_config_rope(const vka_config_source *source, vka_layer_desc *desc);
/* What a RoPE type makes of its object; rotary_dim is set already (config_rope_types.c). */
vka_status vka_config_rope_type(const vka_config_source *source, const char *where, const json_t *rope,
                                vka_layer_desc *desc);
/* Checks the keys about kinds of layers, and sets the kind of source->layer (config_layers.c). */
vka_status vka_config_layer_kind(const vka_config_source *source, vka_layer_kind *kind);
/* Checks the same, and sets *layer to the first that has softmax attention, 0 when none has. */
vka_status vka_config_first_attention(const vka_config_source *source, uint32_t *layer);
/* Sets the window of a layer of source->kind (config_layers.c). */
vka_status vka_config_window(const vka_config_source *source, vka_layer_desc *desc);

#endif
