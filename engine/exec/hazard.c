/* See hazard.h. A barrier is global (all memory, all stages used so far), so it empties the list of pending accesses.
 */
#include "exec/hazard.h"

static bool conflicts(const hazard_access *a, const hazard_access *b)
{
    if (a->resource != b->resource || (!a->write && !b->write)) {
        return false;
    }
    return a->part == b->part || a->part == HAZARD_WHOLE || b->part == HAZARD_WHOLE;
}

static bool needs_barrier(const hazard_tracker *tracker, const hazard_access *accesses, uint32_t count)
{
    if (tracker->overflow) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < tracker->count; j++) {
            if (conflicts(&accesses[i], &tracker->pending[j])) {
                return true;
            }
        }
    }
    return false;
}

static void remember(hazard_tracker *tracker, const hazard_access *access)
{
    if (tracker->count == HAZARD_MAX_PENDING) {
        tracker->overflow = true;
        return;
    }
    tracker->pending[tracker->count++] = *access;
}

uint32_t hazard_step(hazard_tracker *tracker, uint32_t stage, const hazard_access *accesses, uint32_t count)
{
    uint32_t from = 0;

    if (needs_barrier(tracker, accesses, count)) {
        from = tracker->stages;
        tracker->count = 0;
        tracker->stages = 0;
        tracker->overflow = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        remember(tracker, &accesses[i]);
    }
    tracker->stages |= stage;
    return from;
}
