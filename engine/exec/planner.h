/* Walks a ragged call chunk by chunk: takes rows, writes their records and page tables, plans the attention of every
 * device, and halves the chunk until everything fits the devices' buffer limits. */
#ifndef VKA_EXEC_PLANNER_H
#define VKA_EXEC_PLANNER_H

#include "exec/call.h"

typedef struct planned_device {
    exec_device *device; /* NULL: idle */
    call_heads heads;
    tile_config tiles;
    uint64_t slot_bytes; /* of one split slot */
} planned_device;

typedef struct chunk_planner {
    /* set by the caller; the sequences of the call are context->call.sequences */
    vka_context *context;
    uint32_t sequence_count;
    call_records records; /* first_row is set for each chunk */
    uint32_t page_size, pages_per_slab;
    chunk_limits limits;
    bool append_only;                         /* rows run no attention */
    planned_device devices[EXEC_MAX_DEVICES]; /* [context->device_count] */

    /* the chunk at hand; its sources are context->call.sources, its tiles each device's plan */
    chunk_cursor begin;  /* where it begins: its sources are this sequence and those that follow */
    chunk_cursor cursor; /* where the next one begins */
    uint32_t rows;       /* 0: the end */
    uint32_t source_count;
    uint32_t shared_words;
} chunk_planner;

/* Bytes of one split slot: unnormalised output, maximum and sum of every head. */
uint64_t exec_slot_bytes(uint32_t q_heads, uint32_t v_pad);

/* How attention is cut on a device, from its type, its limits and its variants; page geometry and key limits are the
 * caller's to set. `decode_records`: head records per decode tile. */
tile_config exec_tile_config(const exec_device *device, const pipeline_set *set, uint32_t decode_records,
                             uint64_t slot_bytes);

/* VKA_ERR_LIMIT when not even one row fits. */
vka_status planner_next(chunk_planner *planner, vka_error *error);

#endif
