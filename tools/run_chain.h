/* The whole layer in float64, from the first input to the last output, for one informative number. */
#ifndef VKA_TOOLS_RUN_CHAIN_H
#define VKA_TOOLS_RUN_CHAIN_H

#include "run_verify_stages.h"

/* Normalised mean square error of output [rows, hidden] against the chain. Weights are rounded as the device stores
 * them; nothing else is rounded, not even the cache. */
vka_status run_chain_nmse(const run_layer *layer, const stage_vectors *vectors, vka_dtype stored, const run_rows *rows,
                          const float *output, double *nmse, vka_error *error);

#endif
