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

/* Rows of a causal layer see no key of a later row, so each chunk may append its keys and attend at once. Elsewhere all
 * keys of a call are appended before any row attends: in one chunk, or in a pass of its own. */
typedef enum forward_pass {
    FORWARD_WHOLE,  /* append and attend, chunk by chunk */
    FORWARD_APPEND, /* K and V only */
    FORWARD_ATTEND, /* the rest */
} forward_pass;

typedef struct forward_call {
    const vka_forward_params *params;
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t rows;    /* of the whole call */
    uint32_t kv_rows; /* tokens that it appends */
    forward_pass pass;
    bool appended;                            /* by a pass before this one */
    forward_device devices[EXEC_MAX_DEVICES]; /* [context->device_count] */
    chunk_planner planner;
    call_timing timing;
} forward_call;

vka_status exec_forward(const vka_forward_params *params, vka_error *error);
vka_status exec_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error);

/* forward_batch.c: the sequences of the call take pages for all their tokens; */
vka_status forward_enter(forward_call *call, vka_error *error);
/* end the call, after a failure as they were before it; */
void forward_leave(forward_call *call, bool failed);
/* are listed in context->call.sequences for the pass, all with rows in it; returns how many; */
uint32_t forward_list_sequences(forward_call *call);
/* and hold the rows of a finished chunk, or all tokens of the call. */
void forward_grow(forward_call *call, const forward_chunk *chunk);
void forward_grow_all(forward_call *call);

/* forward_check.c: VKA_ERR_ARGUMENT unless tensors and buffers fit the batch that was entered. */
vka_status forward_check(const forward_call *call, vka_error *error);

/* forward_epilogue.c: what the epilogues of a layer do, and the epilogues of a chunk. */
void forward_epilogue_kinds(const vka_layer *layer, epilogue_kind kinds[EPILOGUE_PARTS]);
vka_status forward_record_epilogue(forward_call *call, const forward_chunk *chunk, forward_device *device,
                                   recorder *rec, vka_error *error);

/* What the epilogues of K and of V have beside what all of a chunk share. */
epilogue_push forward_k_push(const forward_call *call, const forward_device *device, epilogue_push shared);
epilogue_push forward_v_push(const forward_call *call, const forward_device *device, epilogue_push shared);

/* forward_kv.c: whether the pass hands K and V to the caller; bytes of a device's rows; the epilogues that make them,
 * *step being set but for its part, target and push; and their way out, after the wait. */
bool forward_gives_kv(const forward_call *call);
uint64_t forward_kv_bytes(const forward_call *call, const vka_shard *shard, uint32_t rows);
vka_status forward_record_kv(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                             epilogue_step *step, vka_error *error);
vka_status forward_give_kv(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* forward_norm.c: whether Q and K wait for sums over all heads; bytes of a device's sums; the dispatches that make
 * them; and, after the wait, the factors that go into the call parameters of the chunk. */
bool forward_norms_rows(const vka_layer *layer);
uint64_t forward_squares_bytes(const forward_call *call, const vka_shard *shard, uint32_t rows);
vka_status forward_record_squares(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                  vka_error *error);
vka_status forward_exchange_squares(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* Steps of a chunk that run as one submission. */
typedef enum forward_part {
    FORWARD_PART_ALL,
    FORWARD_PART_SQUARES, /* up to the sums of squares of Q and K, */
    FORWARD_PART_REST,    /* and what waits for all of them */
} forward_part;

/* forward_chunk.c: uploads, records and submits a part of the chunk that the planner holds on one device; nothing is
 * waited for. */
vka_status forward_submit(forward_call *call, forward_chunk *chunk, forward_device *device, forward_part part,
                          vka_error *error);

/* forward_exchange.c: after all devices are done: adds the partials and hands the rows out. */
vka_status forward_exchange(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* forward_trace.c */
vka_status forward_trace(forward_call *call, const forward_chunk *chunk, vka_error *error);

/* forward_limits.c: what a chunk may hold, and how attention is cut on a device. When reproducible, both follow from
 * the whole layer and one rank's shape, never from the shard. */
chunk_limits forward_chunk_limits(const forward_call *call);
planned_device forward_plan_device(const forward_call *call, const forward_device *device);

/* A tensor's copy that the chunk uses. */
gpu_buffer *forward_scratch(const forward_device *device, const forward_chunk *chunk, exec_scratch which);

/* The rows of a pass: hidden states, or those of the other sequence. */
static inline bool forward_reads_kv_input(const forward_call *call)
{
    return call->pass == FORWARD_APPEND && call->layer->desc.attend == VKA_ATTEND_CROSS;
}

static inline bool forward_idle(const forward_device *device)
{
    return device->shard->shard.ranks == 0;
}

#endif
