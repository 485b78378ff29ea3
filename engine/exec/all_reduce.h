/* The exchange alone, over callers' buffers. */
#ifndef VKA_EXEC_ALL_REDUCE_H
#define VKA_EXEC_ALL_REDUCE_H

#include "exec/context.h"
#include "vkattn/exchange.h"

vka_status exec_all_reduce(vka_context *context, const vka_all_reduce_params *params, vka_error *error);

#endif
