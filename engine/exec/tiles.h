/* The attention work of one chunk on one device: tiles for the prefill and decode kernels, cut where a key range would
 * cross a cache slab or where one row's keys are split over workgroups, and the combine rows that join what was cut.
 * Pure: no device. */
#ifndef VKA_EXEC_TILES_H
#define VKA_EXEC_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "vkattn/status.h"

/* A row at position p sees key j iff p - j < left and j - p < right. */
typedef struct key_limits {
    uint32_t left, right; /* at most ATTENTION_NO_LIMIT: none */
} key_limits;

/* Windows of 0 are none; causal is a right window of one key. */
key_limits key_limits_of(bool causal, uint32_t window, uint32_t window_right);

/* Rows of one sequence in the chunk. */
typedef struct tile_source {
    uint32_t row; /* of the chunk: the first */
    uint32_t rows;
    int32_t position;      /* of the first row; negative rows see nothing */
    uint32_t keys;         /* keys that are there */
    const uint32_t *pages; /* physical pages in order of position */
    uint32_t pages_offset; /* words: where the call buffer holds their slab-local numbers */
} tile_source;

typedef struct tile_config {
    uint32_t page_size;
    uint32_t pages_per_slab;
    key_limits keys;
    uint32_t prefill_rows;      /* tile_rows of the prefill variant */
    uint32_t decode_workgroups; /* wanted in flight: rows with fewer head records are split over keys */
    uint32_t decode_records;    /* head records per decode tile */
    uint32_t max_splits;        /* of one row, slab borders not counted */
} tile_config;

/* Tiles first .. first + count - 1 run as one dispatch. */
typedef struct tile_launch {
    vka_kernel kernel; /* VKA_KERNEL_PREFILL or VKA_KERNEL_DECODE */
    uint32_t slab;
    bool partial; /* writes to the split buffer, to be combined */
    uint32_t first, count;
} tile_launch;

typedef struct planned_tile {
    tile_launch key; /* first, count unused */
    uint32_t order;
    attention_tile tile;
} planned_tile;

/* Arrays are kept from call to call and only grow. */
typedef struct tile_plan {
    const vka_allocator *allocator;
    planned_tile *tiles;
    uint32_t tile_count, tile_capacity;
    tile_launch *launches;
    uint32_t launch_count, launch_capacity;
    combine_row *rows;
    uint32_t row_count, row_capacity;
    uint64_t slots; /* of the split buffer */
} tile_plan;

vka_status tile_plan_build(tile_plan *plan, const tile_config *config, const tile_source *sources, uint32_t count,
                           vka_error *error);
void tile_plan_destroy(tile_plan *plan);

/* Rows of one sequence from which on a chunk uses the prefill kernel for them. */
#define TILE_PREFILL_MIN_ROWS 4u
/* A decode split holds at least this many keys. */
#define TILE_SPLIT_MIN_KEYS 128u

/* Tiles of one launch at most: the workgroup count that every device allows on an axis. */
#define TILE_LAUNCH_MAX 65535u

/* Head records for a kernel that packs up to `pack` query heads of one KV head: writes them (when out != NULL) and
 * returns their number. kv_q_begin as in vka_shard. */
uint32_t tile_head_records(uint32_t kv_heads, const uint32_t *kv_q_begin, uint32_t pack, attention_heads *out);

#endif
