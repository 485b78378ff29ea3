/* Operands: random, since some hardware is faster on zeros. */
#include <stdlib.h>

#include "base/half.h"
#include "base/threads.h"
#include "bench/measure.h"

enum { BLOCK = 4096 };
static const uint64_t seed = 20;

typedef struct random_job {
    unsigned char *out;
    size_t count;
    vka_dtype dtype;
    uint32_t stream;
} random_job;

static void fill_blocks(void *user, size_t begin, size_t end)
{
    const random_job *job = user;
    float block[BLOCK];

    for (size_t first = begin * BLOCK; first < end * BLOCK && first < job->count; first += BLOCK) {
        size_t count = job->count - first < BLOCK ? job->count - first : BLOCK;

        vka_random_fill(block, count, 1, seed, job->stream, first);
        vka_convert(job->out + first * vka_dtype_size(job->dtype), job->dtype, block, VKA_F32, count);
    }
}

void *bench_random(size_t count, vka_dtype dtype, uint32_t stream)
{
    random_job job = {NULL, count, dtype, stream};

    if (count > SIZE_MAX / vka_dtype_size(dtype))
        return NULL;
    job.out = malloc(count * vka_dtype_size(dtype));
    if (job.out)
        vka_parallel_for((count + BLOCK - 1) / BLOCK, 1, fill_blocks, &job);
    return job.out;
}
