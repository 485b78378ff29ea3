/* What a family of models is to its attention blocks: one row of a table, in which every column is a rule that several
 * families share. What only one family does is a hook. Facts: configuration and modelling files of Hugging Face
 * transformers 5.24 for each model. */
#ifndef VKA_MODEL_FAMILY_H
#define VKA_MODEL_FAMILY_H

#include <stdbool.h>

#include "model/tensor_names.h"
#include "vkattn/model.h"

struct vka_config_source;

/* Names of the geometry's keys; NULL: the family has no such key. */
typedef struct vka_geometry_keys {
    const char *hidden, *layers, *heads, *kv_heads, *head_dim;
} vka_geometry_keys;

/* Numbers that stand for absent keys; 0: the key is required, but for head_dim, which then is hidden / heads. */
typedef struct vka_geometry_defaults {
    uint32_t heads, kv_heads, head_dim;
} vka_geometry_defaults;

/* kv_heads: absent means as many as heads. */
#define VKA_AS_HEADS UINT32_MAX

/* Which projections have a bias. */
enum { VKA_BIAS_Q = 1, VKA_BIAS_K = 2, VKA_BIAS_V = 4, VKA_BIAS_O = 8, VKA_BIAS_QKV = 7, VKA_BIAS_ALL = 15 };

typedef struct vka_bias_rule {
    unsigned always;
    const char *key; /* a flag that switches `keyed` on or off; NULL: there is none */
    unsigned keyed;
    bool on; /* when the key is absent */
} vka_bias_rule;

/* Which layers are what. A full layer sees everything before it; the others have a window, or are no softmax attention
 * at all. */
typedef enum vka_layer_rule {
    VKA_LAYERS_FULL,     /* no windows */
    VKA_LAYERS_WINDOW,   /* sliding_window in all layers, null for none */
    VKA_LAYERS_SWITCHED, /* use_sliding_window, then layer_types, or layers from max_window_layers on */
    VKA_LAYERS_PERIODIC, /* layer_types, or each layer_period-th layer is full and the others have sliding_window */
    VKA_LAYERS_LINEAR,   /* layer_types, or each layer_period-th layer is full and the others are linear attention */
} vka_layer_rule;

enum {
    VKA_ROTARY_NONE = 1,      /* no RoPE */
    VKA_ROTARY_MROPE = 2,     /* mrope_section, interleaved */
    VKA_ROTARY_IN_ORDER = 16, /* with MROPE: sections one after the other */
    VKA_ROTARY_GIVEN = 32,    /* absent parameters stand for those of one model: they must be there */
    VKA_ROTARY_BY_KIND = 4,   /* layers with and without a window have RoPE parameters of their own (Gemma 3) */
    VKA_ROTARY_LONGROPE = 8,  /* no scaled type but longrope, and its trained length stands at the top (Phi 3) */
};

typedef struct vka_rotary_rule {
    unsigned flags;
    double theta;          /* 0: 10000 */
    const char *theta_key; /* NULL: rope_theta */
    double part;           /* 0: 1 */
    const char *part_key;  /* beside partial_rotary_factor; NULL: none */
    const char *dim_key;   /* the number of elements itself; null means all; NULL: there is no such key */
    vka_rope_pairing pairing;
    uint32_t mrope[3]; /* when mrope_section is absent */
} vka_rotary_rule;

/* A key that may be absent, or must have this value (a number or true or false, as printed; text as it is). */
typedef struct vka_fixed_key {
    const char *key, *value;
} vka_fixed_key;

typedef struct vka_family_block {
    const vka_tensor_names *tensors; /* NULL: layers have no such block */
    const char *refused;             /* why it is not described; NULL: it is */
    const char *layers, *heads;      /* keys, where they are not those of the family */
    vka_attend attend;
} vka_family_block;

enum { VKA_BLOCKS = 3 }; /* of vka_block */

typedef vka_status (*vka_family_hook)(const struct vka_config_source *source, vka_layer_desc *desc);

typedef struct vka_family {
    const char *model_type; /* "llama" */
    const char *name;       /* what its architectures begin with: "Llama" */
    const char *suffix;     /* and end with when none is given; NULL: "ForCausalLM" */
    const char *text_type;  /* model_type of a text model: in text_config, or alone; NULL: there is none */
    const char *not_run;    /* why layers are laid out only; NULL: they run */
    const vka_geometry_keys *keys;
    vka_geometry_defaults defaults;
    bool needs_head_dim; /* its key must be there, if null */
    vka_family_block blocks[VKA_BLOCKS];
    vka_bias_rule bias;
    vka_layer_rule layers;
    uint32_t layer_period;  /* when its key is absent; 0: no layer is full */
    const char *period_key; /* NULL: there is none */
    bool window_optional;   /* WINDOW: sliding_window may be absent, for none */
    vka_rotary_rule rotary;
    vka_qk_norm qk_norm;
    double norm_eps;     /* when rms_norm_eps is absent; 0: 1e-6 */
    bool fixed_eps;      /* rms_norm_eps is about other norms */
    bool unit_offset;    /* of norms */
    bool gate;           /* unless attn_output_gate is false; without that key the shape of q_proj has the last word */
    bool sinks;          /* always */
    bool softcap;        /* attn_logit_softcapping, null for none */
    double query_scalar; /* when query_pre_attn_scalar is absent; scale: query_pre_attn_scalar^-0.5; -1: that key is
                            required; 0: there is no such key */
    double scale;        /* 0: 1 / sqrt(head_dim) */
    vka_kv_policy kv_policy;
    const char *const *known;   /* keys that are read, or change nothing, in this family only; NULL-terminated */
    const vka_fixed_key *fixed; /* ends with a NULL key */
    vka_family_hook geometry;   /* after the keys of the geometry were read; NULL: none */
    vka_family_hook finish;     /* last */
} vka_family;

extern const vka_family vka_families[];
extern const size_t vka_family_count;
/* Laid out, not run. */
extern const vka_family vka_plain_families[];
extern const size_t vka_plain_family_count;

/* ---- hooks ---- */

vka_status vka_falcon_geometry(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_falcon_finish(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_bigcode_geometry(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_dbrx_geometry(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_deepseek_geometry(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_deepseek_finish(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_cosmos3_finish(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_nemotron_nas_geometry(const struct vka_config_source *source, vka_layer_desc *desc);
vka_status vka_chatglm_geometry(const struct vka_config_source *source, vka_layer_desc *desc);

#endif
