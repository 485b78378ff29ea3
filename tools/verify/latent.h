/* The stages of a layer with latent attention, from one traced chunk. What is checked is handed to a function of the
 * caller, array by array, since results are counted by stage and place there. */
#ifndef VKA_VERIFY_LATENT_H
#define VKA_VERIFY_LATENT_H

#include "verify/verify.h"
#include "vkattn/forward.h"

typedef enum verify_latent_stage {
    VERIFY_LATENT_QKV,       /* projections from hidden states and from Q's latent */
    VERIFY_LATENT_EPILOGUE,  /* norms, RoPE, queries that have taken W_uk in, and what the cache holds */
    VERIFY_LATENT_ATTENTION, /* sums of latents, and values from them */
} verify_latent_stage;

/* `columns` columns from `column` on of the rows from `row` on of the chunk. */
typedef void (*verify_latent_note)(void *user, verify_latent_stage stage, size_t row, size_t column, size_t columns,
                                   const verify_result *result);

typedef struct verify_latent_params {
    const vka_layer_desc *desc; /* resolved */
    const vka_layer_weights *weights;
    vka_dtype stored; /* weights as the device holds them */
    const vka_trace *trace;
    verify_mutant mutant;
    verify_latent_note note;
    void *user;
} verify_latent_params;

/* The rows of one sequence in the chunk. */
typedef struct verify_latent_rows {
    size_t row, rows;      /* of the chunk */
    size_t keys;           /* of the sequence, those of its last row included */
    uint32_t position;     /* of the first row, among the keys */
    const int32_t *turned; /* [rows] position for RoPE */
    const float *k;        /* [keys, kv_lora_rank + rotary_dim] as read back from the cache */
    vka_dtype cache;       /* its type */
} verify_latent_rows;

/* What needs no cache: every projection. */
vka_status verify_latent_matrices(const verify_latent_params *params, vka_error *error);
/* Norms, RoPE, the cache and attention. */
vka_status verify_latent_sequence(const verify_latent_params *params, const verify_latent_rows *rows, vka_error *error);

/* Columns of trace->qkv; elements noted as VERIFY_LATENT_ATTENTION per row and head. */
size_t verify_latent_qkv_columns(const vka_layer_desc *desc, uint32_t q_heads);
size_t verify_latent_attention_elements(const vka_layer_desc *desc);

#endif
