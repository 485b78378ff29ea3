/* Measuring the variants of a device on request: see vkattn/tune.h. */
#ifndef VKA_EXEC_TUNE_H
#define VKA_EXEC_TUNE_H

#include "exec/context.h"
#include "vkattn/tune.h"

vka_status exec_tune(vka_context *context, const vka_tune_params *params, vka_tune_result_fn results,
                     void *results_user, vka_error *error);

#endif
