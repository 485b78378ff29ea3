/* The options that say which layer and which layout, shared by the commands that take them. */
#ifndef VKA_TOOLS_LAYOUT_ARGS_H
#define VKA_TOOLS_LAYOUT_ARGS_H

#include "args.h"
#include "vkattn/layout.h"

typedef struct layout_args {
    const char *model; /* NULL: the geometry below */
    uint32_t layer;
    int block;                                              /* vka_block */
    uint32_t heads, kv_heads, head_dim, v_head_dim, hidden; /* 0: not given */
    uint32_t tp, cp, dp;                                    /* 0: not given, 1 */
    int kv_policy;                                          /* vka_kv_policy */
    const char *place;                                      /* NULL: balanced */
    int weight_dtype, cache_dtype;                          /* vka_dtype */
} layout_args;

/* What commands run that are given no layer. */
#define LAYOUT_DEFAULT_MODEL "qwen3-0.6b"

/* The rows for all of them, relative to a layout_args: first those of the layer, last those of the types. --devices is
 * each command's own: not all of them open devices. */
enum { LAYOUT_ARGS_LAYER = 8, LAYOUT_ARGS_TYPES = 2, LAYOUT_ARGS_COUNT = 15 };
extern const args_option layout_args_options[LAYOUT_ARGS_COUNT];

/* What --model or the geometry stands for. */
typedef struct layout_source {
    vka_layer_desc desc; /* resolved */
    const char *name;    /* as given, or NULL for a bare geometry */
    const char *note;    /* of a preset: what of the real model is not modelled; or NULL */
    const char *not_run; /* NULL, or why the layer is laid out only */
    bool has_weights;    /* a checkpoint, of which more than the configuration is there */
    uint32_t layers;     /* of a checkpoint or its configuration; 0: there is none, weights can only be generated */
} layout_source;

/* Reads config.json at most: no weights, no devices. */
vka_status layout_args_source(const layout_args *args, layout_source *source, vka_error *error);

/* Refuses what is laid out only, for commands that run it. */
vka_status layout_args_runs(const layout_source *source, vka_error *error);

/* The grid that was asked for, ones filled in. */
vka_grid layout_args_grid(const layout_args *args);

#endif
