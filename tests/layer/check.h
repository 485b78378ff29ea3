/* The stage checks behind rig_forward(): what the trace callback gets is judged at once, while the cache can be read.
 */
#ifndef VKA_TESTS_LAYER_CHECK_H
#define VKA_TESTS_LAYER_CHECK_H

#include "layer/harness.h"

typedef enum check_stage {
    STAGE_UPLOAD,    /* the hidden states on the device are the caller's, bit by bit */
    STAGE_QKV,       /* projection, from the hidden states on the device */
    STAGE_EPILOGUE,  /* Q, and K and V in the cache, from the projection */
    STAGE_ATTENTION, /* from Q and the cache */
    STAGE_OUTPUT,    /* the partials, from attention */
    STAGE_SUM,       /* the result, from all partials */
    STAGE_COUNT
} check_stage;

const char *stage_name(check_stage which);

typedef struct stage_report {
    verify_mutant mutant; /* the reference is made wrong in this way */
    verify_result stages[STAGE_COUNT];
} stage_report;

/* All partials of the rows of one chunk, from all devices. */
typedef struct check_chunk {
    uint32_t first_row, rows, partials;
    double *squares; /* [2, rows] of Q and of K, with a norm over the full width */
    float *factors;  /* [rows, 2] that the devices used */
    float **partial; /* [partials] arrays of rows * hidden */
} check_chunk;

typedef struct stage_checker {
    layer_rig *rig;
    const rig_call *call;
    const float *input;    /* [rows, hidden] as F32 */
    const float *kv_input; /* [kv rows, kv_hidden] */
    uint32_t past[RIG_SEQUENCES];
    int32_t *positions; /* [axes, rows] */
    stage_report report;
    check_chunk *chunks;
    uint32_t chunk_count;
    bool counted[VKA_MAX_HEADS]; /* KV heads of the chunk at hand whose squares were added */
    vka_error error;             /* of a check that could not be made */
} stage_checker;

/* `past` is read from the cache. */
void check_begin(stage_checker *out, layer_rig *rig, const rig_call *call, const float *input);
int check_trace(void *user, const vka_trace *trace); /* a vka_trace_fn; user is the checker */
/* After the call: checks the sum, and that every row and head was traced. `output` is the result as F32. */
void check_end(stage_checker *checker, const float *output);
void check_free(stage_checker *checker);

/* Fails the test when a stage is over its bound. */
void check_require(const stage_report *report, const char *name);

#endif
