/* See sum.h. Columns go in blocks that stay in the first-level cache. */
#include "exchange/sum.h"

#include <string.h>

#include "base/half.h"
#include "base/threads.h"

#define BLOCK             1024
#define ELEMENTS_PER_TASK 65536

static void add_block(float *sum, const float *partial, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum[i] += partial[i];
    }
}

static void sum_block(const exchange_sum_job *job, size_t row, size_t col, size_t count)
{
    float sum[BLOCK];
    unsigned char *out = job->out;
    size_t at = row * job->partial_stride + col;

    if (job->count == 0) {
        memset(sum, 0, count * sizeof(float));
    } else {
        memcpy(sum, job->partials[0] + at, count * sizeof(float));
    }
    for (size_t p = 1; p < job->count; p++) {
        add_block(sum, job->partials[p] + at, count);
    }
    if (job->bias != NULL) {
        add_block(sum, job->bias + col, count);
    }
    vka_convert(out + (row * job->out_stride + col) * vka_dtype_size(job->out_dtype), job->out_dtype, sum, VKA_F32,
                count);
}

static void sum_rows(void *user, size_t begin, size_t end)
{
    const exchange_sum_job *job = user;

    for (size_t row = begin; row < end; row++) {
        for (size_t col = 0; col < job->cols; col += BLOCK) {
            sum_block(job, row, col, job->cols - col < BLOCK ? job->cols - col : BLOCK);
        }
    }
}

void exchange_sum(const exchange_sum_job *job)
{
    exchange_sum_job shared = *job;
    size_t grain = ELEMENTS_PER_TASK / (job->cols > 0 ? job->cols : 1) + 1;

    vka_parallel_for(job->rows, grain, sum_rows, &shared);
}
