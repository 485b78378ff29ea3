/* Every stage of every call against float64 computed from the device's own input to that stage. */
#ifndef VKA_TOOLS_RUN_VERIFY_H
#define VKA_TOOLS_RUN_VERIFY_H

#include "run.h"

typedef enum run_check {
    RUN_CHECK_UPLOAD,    /* the hidden states on the device are the call's own, bit by bit */
    RUN_CHECK_QKV,       /* projection, from the hidden states on the device */
    RUN_CHECK_EPILOGUE,  /* bias, norm and RoPE: Q, and K and V as the cache holds them, from the projection */
    RUN_CHECK_ATTENTION, /* from Q and the cache */
    RUN_CHECK_OUTPUT,    /* output projection: the partials, from the attention */
    RUN_CHECK_SUM,       /* the result, from the partials of all devices */
    RUN_CHECK_COUNT
} run_check;

const char *run_check_name(run_check check);

/* The element of a stage whose error is largest beside its bound. */
typedef struct run_worst {
    double ratio; /* |got - want| / bound; infinite for what is not a number */
    double got, want, bound;
    uint32_t device, row, column; /* row of the call; column of the stage's own matrix on that device */
    bool decoding;
} run_worst;

typedef struct run_verdict {
    uint64_t elements[RUN_CHECK_COUNT];
    run_worst worst[RUN_CHECK_COUNT];
    double max_error_over_bound; /* infinite when something was left unchecked */
    double nmse;                 /* of all results against a float64 chain from the first input on; informative */
} run_verdict;

typedef struct run_verifier run_verifier;

/* `layer` and `engine` must outlive the verifier. */
vka_status run_verifier_create(run_verifier **out, const run_layer *layer, const run_engine *engine, vka_error *error);
void run_verifier_destroy(run_verifier **verifier);
/* What to hand to run_pass(). */
run_observer run_verifier_observer(run_verifier *verifier);
/* After the pass: the verdict over all its calls, whose results are output [rows, hidden]. */
vka_status run_verifier_verdict(run_verifier *verifier, const run_rows *rows, const float *output, run_verdict *out,
                                vka_error *error);

#endif
