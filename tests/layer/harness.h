/* A layer under test: generated weights, hidden states that follow from (stream, position), and a check of every stage
 * of every call against float64, computed from the device's own input to that stage.
 *
 * Everything here fails the running test when the engine does, unless a function says otherwise. */
#ifndef VKA_TESTS_LAYER_HARNESS_H
#define VKA_TESTS_LAYER_HARNESS_H

#include <stdbool.h>

#include "support/devices.h"
#include "support/require.h"
#include "verify/verify.h"
#include "vkattn/vkattn.h"

/* ---- the context that all tests of a program share ---- */

/* Three opened devices: one kind of device three times (lavapipe or SwiftShader), or lavapipe, SwiftShader, lavapipe.
 * Made on first use. */
enum { HARNESS_DEVICES = 3 };
vka_context *harness_context(void);
const support_devices *harness_devices(void);
/* Device list of the shared context, e.g. "0,1,0". */
const char *harness_grammar(void);
/* Parameters that every context of a test begins with: neither cache on disk, validation as support/validation.h
 * says, the rest default. */
vka_context_params harness_params(void);
/* At the end of main(): destroys the context. */
void harness_close(void);

/* ---- a layer and its cache ---- */

typedef struct layer_case {
    const char *name;
    vka_layer_desc desc; /* struct_size is filled in */
    uint32_t tp;         /* 0: 1 */
    const char *place;   /* NULL: balanced over all devices of the context */
    vka_dtype weights;   /* as generated; default F32 */
    vka_dtype stored;    /* as the device stores them; default: as generated */
    vka_dtype cache;     /* default F32 */
    bool qkv_bias, o_bias, reproducible;
    uint32_t page_size, pages, cache_layers; /* 0: 16, 64, 1 */
} layer_case;

enum { RIG_SEQUENCES = 16 };

typedef struct layer_rig {
    layer_case setup;
    vka_context *context;
    vka_generated_weights *generated;
    vka_layer_weights weights;
    vka_layer *layer;
    vka_cache *cache;
    vka_layer_desc desc; /* resolved */
    uint32_t devices;
    uint32_t stream[RIG_SEQUENCES]; /* of each sequence: which hidden states it gets; its id by default */
} layer_rig;

void rig_open(layer_rig *out, vka_context *context, const layer_case *setup);
/* The same without failing the test: for calls that are meant to fail. Half-made objects are released. */
vka_status rig_try_open(layer_rig *out, vka_context *context, const layer_case *setup, vka_error *error);
void rig_close(layer_rig *rig);

uint32_t rig_sequence(layer_rig *rig); /* a new one */
uint32_t rig_length(const layer_rig *rig, uint32_t sequence, uint32_t cache_layer);
/* Streams of what must not spread: NaN, infinities of both signs, 1e30 of both signs. */
enum { STREAM_NAN = 1000, STREAM_INFINITY, STREAM_HUGE };
/* Hidden state of the token at `position` of `stream`: hidden_size values. */
void rig_hidden(const layer_rig *rig, uint32_t stream, uint32_t position, float *out);
/* The same of the other sequence in cross attention: kv_hidden_size values. */
void rig_kv_hidden(const layer_rig *rig, uint32_t stream, uint32_t position, float *out);

/* ---- calls ---- */

typedef struct rig_call {
    const vka_batch_entry *entries;
    uint32_t count;
    uint32_t cache_layer;
    vka_dtype input, output;           /* of host memory; default F32 */
    uint32_t input_gap, output_gap;    /* elements between the end of a row and the next; NaN in, guarded out */
    vka_buffer *const *input_buffers;  /* instead of host memory */
    vka_buffer *const *output_buffers; /* beside host memory */
    vka_tensor_out k_output, v_output; /* data == NULL: not wanted */
    const uint32_t *kv_tokens;         /* [count] rows of kv_input that each entry appends; NULL: none */
    const int32_t *positions;          /* for RoPE; NULL: places in the sequences */
    uint32_t position_rows;            /* 1 or 3; 0 without positions */
    bool unchecked;                    /* only run */
    float *result;                     /* [rows, hidden], as F32; NULL: not wanted */
    vka_timing *timing;
    struct stage_report *report; /* NULL, or judged here instead of failing the test: see check.h */
} rig_call;

uint32_t rig_rows(const rig_call *call);
uint32_t rig_kv_rows(const rig_call *call);
void rig_forward(layer_rig *rig, const rig_call *call);
vka_status rig_try_forward(layer_rig *rig, const rig_call *call, vka_error *error);

/* One sequence, checked: `tokens` more of it; `result` may be NULL. */
void rig_extend(layer_rig *rig, uint32_t sequence, uint32_t tokens, float *result);
/* The same, not checked. */
void rig_run(layer_rig *rig, uint32_t sequence, uint32_t tokens, float *result);

#endif
