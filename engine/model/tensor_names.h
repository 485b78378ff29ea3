/* Under which names, and in which order of rows, checkpoints hold the tensors of an attention block. */
#ifndef VKA_MODEL_TENSOR_NAMES_H
#define VKA_MODEL_TENSOR_NAMES_H

#include "model/weights.h"

typedef enum vka_arrangement {
    VKA_AS_IS,
    VKA_TRANSPOSED,       /* a matrix that lies [columns, rows] (GPT-2's Conv1D) */
    VKA_Q_K_V,            /* rows [all of Q | all of K | all of V] */
    VKA_Q_K_V_TRANSPOSED, /* the same of a matrix that lies [columns, rows] */
    VKA_GROUPS,           /* rows, for each KV head, [its Q heads | K | V] */
    VKA_IGNORED,          /* not of the block, or following from the configuration */
} vka_arrangement;

/* `weight`: of Q_K_V and GROUPS that of Q (VKA_WEIGHT_Q or VKA_WEIGHT_Q_BIAS). Several rows may name one weight: a
 * checkpoint has one of them. */
typedef struct vka_tensor_row {
    const char *name; /* NULL ends the rows */
    int weight;
    vka_arrangement arrangement;
} vka_tensor_row;

static inline bool vka_is_merged(vka_arrangement arrangement)
{
    return arrangement == VKA_Q_K_V || arrangement == VKA_Q_K_V_TRANSPOSED || arrangement == VKA_GROUPS;
}

/* Full names: some root (see checkpoint_layer.c), `before`, the number of the layer, `after`, the row's name. */
typedef struct vka_tensor_names {
    const char *before, *after;
    vka_tensor_row rows[24];
} vka_tensor_names;

extern const vka_tensor_names vka_names_llama; /* q_proj, k_proj, v_proj, o_proj; norms, sinks */
extern const vka_tensor_names vka_names_phi3;  /* qkv_proj */
extern const vka_tensor_names vka_names_phi;   /* dense */
extern const vka_tensor_names vka_names_neox;  /* query_key_value per head */
extern const vka_tensor_names vka_names_gpt2;
extern const vka_tensor_names vka_names_gptj;
extern const vka_tensor_names vka_names_bigcode;
extern const vka_tensor_names vka_names_dbrx;
extern const vka_tensor_names vka_names_falcon;
extern const vka_tensor_names vka_names_bert;
extern const vka_tensor_names vka_names_distilbert;
extern const vka_tensor_names vka_names_t5_cross;
extern const vka_tensor_names vka_names_whisper_self;
extern const vka_tensor_names vka_names_whisper_cross;
extern const vka_tensor_names vka_names_whisper_encoder;
extern const vka_tensor_names vka_names_deepseek;
extern const vka_tensor_names vka_names_cosmos3_self;
extern const vka_tensor_names vka_names_cosmos3_cross;
extern const vka_tensor_names vka_names_gguf; /* of every architecture */

#endif
