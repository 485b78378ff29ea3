/* Cutting a ragged batch into chunks of rows: one submission per device each, small enough for the time budget and for
 * every scratch tensor to fit the buffer limits. Pure. */
#ifndef VKA_EXEC_CHUNK_H
#define VKA_EXEC_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/tiles.h"

/* One sequence of a call. */
typedef struct call_sequence {
    uint32_t rows;         /* query rows in the whole call */
    int64_t position;      /* of its first row */
    uint32_t keys;         /* keys that are there when its last row runs */
    const uint32_t *pages; /* physical pages in order of position */
} call_sequence;

/* What one row may cost, as shares of the smallest budget among the devices. */
typedef struct chunk_limits {
    uint32_t max_rows;
    double row_share; /* projections of one row */
    double key_share; /* attention of one row with one key */
    key_limits keys;
} chunk_limits;

typedef struct chunk_cursor {
    uint32_t sequence;
    uint32_t row;   /* within the sequence */
    uint32_t total; /* rows of the call already taken */
} chunk_cursor;

/* Takes the next chunk from *cursor: writes sources[0 .. *count) (room for as many as there are sequences) without
 * pages_offset, and returns its number of rows, 0 at the end. `max_rows` may be below limits->max_rows. Always makes
 * progress: a row that exceeds the budget is taken, alone. */
uint32_t chunk_next(const call_sequence *sequences, uint32_t sequence_count, const chunk_limits *limits,
                    uint32_t max_rows, chunk_cursor *cursor, tile_source *sources, uint32_t *count);

/* Keys that row `row` of the sequence sees. */
uint32_t chunk_visible_keys(const call_sequence *sequence, const chunk_limits *limits, uint32_t row);

#endif
