/* The checks behind run_verify.h, stage by stage: from one traced chunk to calls of tools/verify. */
#ifndef VKA_TOOLS_RUN_VERIFY_STAGES_H
#define VKA_TOOLS_RUN_VERIFY_STAGES_H

#include "run_trace.h"
#include "run_verify.h"
#include "verify/latent.h"

/* A layer's vectors as F32; NULL where the layer has none. */
typedef struct stage_vectors {
    float *q_bias, *k_bias, *v_bias, *o_bias, *q_norm, *k_norm, *sinks, *slopes;
} stage_vectors;

/* One traced chunk of a call, and where its results go. */
typedef struct stage_chunk {
    const run_layer *layer;
    const run_engine *engine;
    const stage_vectors *vectors;
    const run_call *call;
    const vka_trace *trace;
    run_verdict *verdict;
} stage_chunk;

/* Where an array that was checked stands: its first row in the chunk, its first column in the stage's matrix, and its
 * own columns. */
typedef struct stage_place {
    size_t row, column, columns;
} stage_place;

/* What the checks of latent attention want to know; they give results to `chunk`. */
verify_latent_params stage_latent_params(const stage_chunk *chunk);

/* Adds a result to the verdict. */
void stage_note(const stage_chunk *chunk, run_check check, stage_place place, const verify_result *result);

/* The first column of K in trace->qkv, behind Q and its gates. */
size_t stage_k_column(const vka_trace *trace, const vka_layer_desc *desc);
/* Columns of trace->qkv. */
size_t stage_qkv_columns(const vka_trace *trace, const vka_layer_desc *desc);

/* Elements of a row and head that the check of attention counts. */
size_t stage_attention_elements(const vka_layer_desc *desc);

vka_status stage_check_upload(const stage_chunk *chunk, vka_error *error);
vka_status stage_check_qkv(const stage_chunk *chunk, vka_error *error);
/* The epilogue of Q, K and V, and attention, which need the same parts of the cache. */
vka_status stage_check_heads(const stage_chunk *chunk, vka_error *error);
vka_status stage_check_output(const stage_chunk *chunk, vka_error *error);
/* With a QK-norm over the full width: the factors of the rows of `chunk`, from the projections of all devices. */
vka_status stage_check_factors(const stage_chunk *chunk, const run_trace_list *all, vka_error *error);
/* The rows of `chunk`, from the partials that all devices have for them. */
vka_status stage_check_sum(const stage_chunk *chunk, const run_trace_list *all, vka_error *error);

#endif
