/* The few things from POSIX threads that the engine and the tools need. */
#ifndef VKA_BASE_THREADS_H
#define VKA_BASE_THREADS_H

#include <stddef.h>

/* Calls body(user, begin, end) over disjoint pieces that cover [0, count), on up to one thread per online core, the
 * caller included; pieces are multiples of `grain` (except the last). Returns when all are done. Falls back to fewer
 * threads when none can be made. */
void vka_parallel_for(size_t count, size_t grain, void (*body)(void *user, size_t begin, size_t end), void *user);

/* An address that no other living thread has: tells threads apart. */
const void *vka_thread_self(void);

#endif
