/* The tensors of one attention block as a table: name, place in vka_layer_weights, and the shape that a description
 * asks for. The checks, the generator and the checkpoint loader all walk it. */
#ifndef VKA_MODEL_WEIGHTS_H
#define VKA_MODEL_WEIGHTS_H

#include <stdbool.h>

#include "vkattn/model.h"

enum {
    VKA_WEIGHT_Q,
    VKA_WEIGHT_K,
    VKA_WEIGHT_V,
    VKA_WEIGHT_O,
    VKA_WEIGHT_Q_BIAS,
    VKA_WEIGHT_K_BIAS,
    VKA_WEIGHT_V_BIAS,
    VKA_WEIGHT_O_BIAS,
    VKA_WEIGHT_Q_NORM,
    VKA_WEIGHT_K_NORM,
    VKA_WEIGHT_K_OUT_NORM,
    VKA_WEIGHT_SINKS,
    VKA_WEIGHT_ALIBI_SLOPES,
    VKA_WEIGHT_Q_A,
    VKA_WEIGHT_Q_A_NORM,
    VKA_WEIGHT_KV_A,
    VKA_WEIGHT_KV_A_NORM,
    VKA_WEIGHT_KV_B,
    VKA_WEIGHT_COUNT
};

typedef enum vka_weight_need { VKA_NEED_OPTIONAL, VKA_NEED_REQUIRED, VKA_NEED_FORBIDDEN } vka_weight_need;

/* What a tensor is: decides its size when generated and its type on a device. */
typedef enum vka_weight_kind {
    VKA_KIND_MATRIX,
    VKA_KIND_BIAS,
    VKA_KIND_NORM,
    VKA_KIND_LOGIT,
    VKA_KIND_SLOPE
} vka_weight_kind;

typedef struct vka_weight_shape {
    const char *name;  /* "q", "k_bias", ... */
    const char *names; /* the shape in words, e.g. "[kv_heads * head_dim, hidden_size]" */
    uint64_t rows;     /* 1 for biases and norm weights */
    uint64_t cols;
    vka_weight_need need;
    vka_weight_kind kind;
} vka_weight_shape;

/* `desc` is resolved. */
vka_weight_shape vka_weight_shape_of(const vka_layer_desc *desc, int weight);

vka_tensor *vka_weight_at(vka_layer_weights *weights, int weight);

/* vka_layer_weights_check() with the names of the caller's tensors; names NULL: those of the table. */
vka_status vka_weights_check_named(const vka_layer_weights *weights, const vka_layer_desc *desc,
                                   const char *const *names, vka_error *error);

#endif
