/* See all_reduce.h. A block is small enough to stay in the first-level cache while it is added and handed out, so each
 * array crosses the memory bus once. */
#include "exchange/all_reduce.h"

#include <string.h>

#include "base/threads.h"

#define BLOCK           2048
#define BLOCKS_PER_TASK 16

static void add(float *restrict sum, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum[i] = a[i] + b[i];
    }
}

static void add_to(float *restrict sum, const float *restrict partial, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum[i] += partial[i];
    }
}

static void reduce_block(const exchange_all_reduce_job *job, size_t first, size_t count)
{
    float sum[BLOCK];

    if (job->count == 1) {
        memcpy(sum, job->partials[0] + first, count * sizeof(float));
    } else {
        add(sum, job->partials[0] + first, job->partials[1] + first, count);
    }
    for (size_t p = 2; p < job->count; p++) {
        add_to(sum, job->partials[p] + first, count);
    }
    for (size_t s = 0; s < job->sum_count; s++) {
        memcpy(job->sums[s] + first, sum, count * sizeof(float));
    }
}

static void reduce_blocks(void *user, size_t begin, size_t end)
{
    const exchange_all_reduce_job *job = user;

    for (size_t block = begin; block < end; block++) {
        size_t first = block * BLOCK;
        reduce_block(job, first, job->values - first < BLOCK ? job->values - first : BLOCK);
    }
}

void exchange_all_reduce(const exchange_all_reduce_job *job)
{
    exchange_all_reduce_job shared = *job;
    size_t blocks = job->values / BLOCK + (job->values % BLOCK != 0);

    vka_parallel_for(blocks, BLOCKS_PER_TASK, reduce_blocks, &shared);
}
