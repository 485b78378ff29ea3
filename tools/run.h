/* vkattn run, in parts: the layer (made or loaded), the rows that go through it, passes over the devices, verification,
 * and the report. cmd_run.c puts them together. */
#ifndef VKA_TOOLS_RUN_H
#define VKA_TOOLS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "layout_args.h"
#include "vkattn/vkattn.h"

typedef struct run_options {
    layout_args layout;
    const char *devices, *pretend, *variants;
    uint32_t tokens, sequences; /* 0: not given */
    uint32_t decode;            /* UINT32_MAX: not given */
    uint32_t page_size;
    uint64_t seed;
    const char *input, *output;
    bool reproducible, no_tuning, verify, validation, json;
} run_options;

/* ---- run_layer.c: description and weights ---- */

typedef struct run_layer {
    layout_source source;
    vka_layer_weights weights; /* views of what one of those below owns */
    vka_model *checkpoint;
    vka_model_layer *loaded;
    vka_generated_weights *generated;
} run_layer;

/* Adds the weights to layer->source: those of the checkpoint, or generated ones where there is none. */
vka_status run_layer_load(run_layer *layer, const run_options *options, vka_error *error);
void run_layer_close(run_layer *layer);

/* ---- run_rows.c: hidden states in and out ---- */

/* First the prefill rows, sequence after sequence; then, for every decoding step, one row of each sequence. */
typedef struct run_rows {
    uint32_t sequences;
    uint32_t *prefill; /* [sequences] tokens of each */
    uint32_t prefill_rows;
    uint32_t decode; /* steps */
    uint32_t rows;   /* all */
    uint32_t hidden;
    float *input;    /* [rows, hidden] */
    float *kv_input; /* cross attention: [prefill_rows, kv_hidden], other sequences that are as long; or NULL */
    uint32_t kv_hidden;
} run_rows;

vka_status run_rows_make(run_rows *out, const run_options *options, const vka_layer_desc *desc, vka_error *error);
vka_status run_rows_write(const run_rows *rows, const float *output, const char *path, vka_error *error);
void run_rows_free(run_rows *rows);

/* ---- run_engine.c: devices, and passes of all rows over them ---- */

typedef struct run_engine {
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t devices;
    double prewarm_ms;
    uint32_t validation_messages;
} run_engine;

/* Times of one pass; those of decoding are sums over the steps. */
typedef struct run_times {
    double prefill_ms, decode_ms;
    double first_ms;                            /* of both: making pipelines and scratch memory */
    uint32_t chunks;                            /* submissions per device */
    vka_stage_time (*prefill)[VKA_STAGE_COUNT]; /* [devices] */
    vka_stage_time (*decode)[VKA_STAGE_COUNT];  /* [devices] */
    void *storage;
} run_times;

/* What a pass tells a checker: a finished call, with what its devices said of it. */
typedef struct run_call {
    const run_engine *engine;
    const vka_batch_entry *entries; /* [sequences] ids in the cache and new tokens */
    uint32_t sequences;
    const uint32_t *past; /* [sequences] tokens before the call */
    const float *input;   /* [rows, hidden] */
    const float *output;  /* [rows, hidden] */
    uint32_t rows;
} run_call;

/* `trace` is handed to vka_forward(); `done` follows each call that succeeded. Both NULL: a plain pass. */
typedef struct run_observer {
    vka_trace_fn trace;
    vka_status (*done)(void *user, const run_call *call, vka_error *error);
    void *user;
} run_observer;

vka_status run_engine_open(run_engine *out, const run_options *options, const run_layer *layer, const run_rows *rows,
                           vka_error *error);
void run_engine_close(run_engine *engine);
vka_status run_times_make(run_times *out, uint32_t devices, vka_error *error);
void run_times_free(run_times *times);
/* All rows once, into output [rows, hidden], on new sequences that are freed at the end. `times` starts anew. */
vka_status run_pass(run_engine *engine, const run_rows *rows, float *output, const run_observer *observer,
                    run_times *times, vka_error *error);

#endif
