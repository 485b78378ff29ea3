/* One call of a layer: what all its parts share. */
#ifndef VKA_EXEC_FORWARD_H
#define VKA_EXEC_FORWARD_H

#include "exec/cache.h"
#include "exec/planner.h"
#include "exec/timing.h"
#include "vkattn/forward.h"

typedef struct forward_device {
    exec_device *device;
    const layer_device *shard; /* of the layer */
    uint32_t index;
    pipeline_set set;
} forward_device;

/* Rows that run together: one submission per device. Two chunks may be in flight, in different slots. */
typedef struct forward_chunk {
    chunk_cursor begin, end; /* of the call's sequences */
    uint32_t rows;
    uint32_t slot;
    uint64_t tickets[EXEC_MAX_DEVICES]; /* 0: nothing was submitted to this device */
} forward_chunk;

typedef struct forward_call {
    const vka_forward_params *params;
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t rows;                            /* of the whole call */
    forward_device devices[EXEC_MAX_DEVICES]; /* [context->device_count] */
    chunk_planner planner;
    call_timing timing;
} forward_call;

vka_status exec_forward(const vka_forward_params *params, vka_error *error);
vka_status exec_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error);

/* forward_chunk.c: uploads, records and submits the chunk that the planner holds on one device; nothing is waited for.
 */
vka_status forward_submit(forward_call *call, forward_chunk *chunk, forward_device *device, vka_error *error);

/* forward_exchange.c: after all devices are done: adds the partials and hands the rows out. */
vka_status forward_exchange(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* forward_trace.c */
vka_status forward_trace(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* forward_limits.c: what a chunk may hold, and how attention is cut on a device. When reproducible, both follow from
 * the whole layer and one rank's shape, never from the shard. */
chunk_limits forward_chunk_limits(const forward_call *call);
planned_device forward_plan_device(const forward_call *call, const forward_device *device);

static inline bool forward_idle(const forward_device *device)
{
    return device->shard->shard.ranks == 0;
}

#endif
