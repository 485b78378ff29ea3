/* Which accesses of a recorded call need a barrier before them. Pure bookkeeping over opaque resource addresses: a step
 * declares what it reads and writes, hazard_step() says whether something recorded since the last barrier conflicts
 * (read after write, write after read, write after write) and which stages the barrier must join. */
#ifndef VKA_EXEC_HAZARD_H
#define VKA_EXEC_HAZARD_H

#include <stdbool.h>
#include <stdint.h>

#define HAZARD_WHOLE 0u /* an access to every part of a resource */

typedef struct hazard_access {
    const void *resource;
    uint32_t part; /* HAZARD_WHOLE, or a number > 0; different parts of one resource never overlap */
    bool write;
} hazard_access;

#define HAZARD_MAX_PENDING 64

typedef struct hazard_tracker {
    hazard_access pending[HAZARD_MAX_PENDING]; /* since the last barrier */
    uint32_t count;
    uint32_t stages; /* GPU_STAGE_* of all steps since the last barrier */
    bool overflow;   /* more accesses than fit: the next step takes a barrier */
} hazard_tracker;

/* Records a step of `stage` (one GPU_STAGE_*). Returns the stages that a barrier must wait for before it, 0 for none;
 * the barrier is taken to cover everything recorded so far. */
uint32_t hazard_step(hazard_tracker *tracker, uint32_t stage, const hazard_access *accesses, uint32_t count);

#endif
