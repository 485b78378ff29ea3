/* Layers whose Vulkan calls are watched: contexts over the shim of tests/support. One at a time. */
#ifndef VKA_TESTS_LAYER_CALLS_H
#define VKA_TESTS_LAYER_CALLS_H

#include "layer/harness.h"
#include "support/heap.h"
#include "support/shim.h"

/* Parameters over the shim, which was reset; device memory begins as NaN. */
vka_context_params calls_params(void);
/* The shared context's devices over the shim: device d of the context is device d of the events. */
vka_context *calls_context(const vka_context_params *params);
/* Destroys the context and checks that nothing is left. */
void calls_close(vka_context **context);

/* What was recorded on `device` from event `from` on, a letter for each command: D dispatch, C copy, F fill, B barrier;
 * S for a submission, A for the barrier at the beginning of one that follows another which may still run. Barriers are
 * checked on the way: B waits for just the stages that were used since the last. */
void calls_text(int device, uint32_t from, char *out, size_t size);

#endif
