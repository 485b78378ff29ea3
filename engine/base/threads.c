/* A parallel loop: threads are made per call and take pieces from one atomic counter, so that a slow core delays the
 * others by at most one piece. */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 64, PIECES_PER_THREAD = 4 };

typedef struct loop {
    void (*body)(void *user, size_t begin, size_t end);
    void *user;
    size_t count;
    size_t piece;  /* elements per piece, a multiple of the grain */
    size_t pieces; /* piece * (pieces - 1) < count <= piece * pieces */
    atomic_size_t next;
} loop;

static void *work(void *argument)
{
    loop *shared = argument;
    size_t index;

    while ((index = atomic_fetch_add_explicit(&shared->next, 1, memory_order_relaxed)) < shared->pieces) {
        size_t begin = index * shared->piece;
        size_t end = shared->count - begin < shared->piece ? shared->count : begin + shared->piece;

        shared->body(shared->user, begin, end);
    }
    return NULL;
}

static size_t ceil_divide(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static size_t core_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1)
        return 1;
    return cores < MAX_THREADS ? (size_t)cores : MAX_THREADS;
}

void vka_parallel_for(size_t count, size_t grain, void (*body)(void *user, size_t begin, size_t end), void *user)
{
    loop shared = {.body = body, .user = user, .count = count};
    pthread_t threads[MAX_THREADS];
    size_t cores = core_count();
    size_t grains;
    size_t made = 0;

    if (count == 0)
        return;
    if (grain == 0)
        grain = 1;
    grains = ceil_divide(count, grain);
    shared.piece = ceil_divide(grains, cores * PIECES_PER_THREAD) * grain;
    shared.pieces = ceil_divide(count, shared.piece);
    atomic_init(&shared.next, 0);
    while (made + 1 < cores && made + 1 < shared.pieces && pthread_create(&threads[made], NULL, work, &shared) == 0)
        made++;
    work(&shared);
    while (made > 0)
        pthread_join(threads[--made], NULL);
}

const void *vka_thread_self(void)
{
    static _Thread_local const char self; /* holds nothing, only its address counts */

    return &self;
}
