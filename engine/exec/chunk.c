/* See chunk.h. */
#include "exec/chunk.h"

uint32_t chunk_visible_keys(const call_sequence *sequence, const chunk_limits *limits, uint32_t row)
{
    int64_t position = sequence->position + row;
    int64_t end = position + limits->keys.right;
    int64_t begin = position + 1 - limits->keys.left;

    end = end > (int64_t)sequence->keys ? (int64_t)sequence->keys : end;
    begin = begin < 0 ? 0 : begin;
    return end > begin ? (uint32_t)(end - begin) : 0;
}

/* Rows of the sequence from `row` on that fit into what is left of the budget, at most `most`. */
static uint32_t affordable_rows(const call_sequence *sequence, const chunk_limits *limits, uint32_t row, uint32_t most,
                                double *budget)
{
    uint32_t taken = 0;

    while (taken < most) {
        double cost = limits->row_share + limits->key_share * chunk_visible_keys(sequence, limits, row + taken);
        if (cost > *budget) {
            break;
        }
        *budget -= cost;
        taken++;
    }
    return taken;
}

uint32_t chunk_next(const call_sequence *sequences, uint32_t sequence_count, const chunk_limits *limits,
                    uint32_t max_rows, chunk_cursor *cursor, tile_source *sources, uint32_t *count)
{
    double budget = 1.0;
    uint32_t rows = 0;

    *count = 0;
    while (cursor->sequence < sequence_count && rows < max_rows) {
        const call_sequence *sequence = &sequences[cursor->sequence];
        uint32_t left = sequence->rows - cursor->row;
        uint32_t most = left < max_rows - rows ? left : max_rows - rows;
        uint32_t taken = affordable_rows(sequence, limits, cursor->row, most, &budget);
        if (taken == 0 && rows > 0) {
            break;
        }
        if (taken == 0) { /* a row over the budget goes alone */
            taken = 1;
            max_rows = 1;
        }
        sources[(*count)++] = (tile_source){.row = rows,
                                            .rows = taken,
                                            .position = (int32_t)(sequence->position + cursor->row),
                                            .keys = sequence->keys,
                                            .pages = sequence->pages};
        rows += taken;
        cursor->row += taken;
        cursor->total += taken;
        if (cursor->row < sequence->rows) {
            break;
        }
        cursor->sequence++;
        cursor->row = 0;
    }
    return rows;
}
