/* Deep copies of what vka_forward() traces, kept until the call is over: only then can the KV cache be read. */
#ifndef VKA_TOOLS_RUN_TRACE_H
#define VKA_TOOLS_RUN_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "vkattn/forward.h"

typedef struct run_trace {
    vka_trace trace; /* all pointers into `storage` */
    void *storage;
} run_trace;

/* The chunks of one call, in the order in which they were traced. */
typedef struct run_trace_list {
    run_trace *items;
    size_t count, capacity;
} run_trace_list;

/* False when memory is out; the list stays as it was. */
bool run_trace_add(run_trace_list *list, const vka_trace *trace, const vka_layer_desc *desc);
void run_trace_clear(run_trace_list *list);
void run_trace_free(run_trace_list *list);

#endif
