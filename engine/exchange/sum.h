/* Adding up partial sums that lie in host memory. */
#ifndef VKA_EXCHANGE_SUM_H
#define VKA_EXCHANGE_SUM_H

#include <stddef.h>

#include "vkattn/tensor.h"

typedef struct exchange_sum_job {
    const float *const *partials; /* [count], each rows x cols */
    size_t count;                 /* 0: the sum is zero */
    size_t partial_stride;        /* floats between rows of a partial */
    size_t rows, cols;
    const float *bias; /* [cols], added once; NULL: none */
    void *out;         /* rows x cols of out_dtype */
    vka_dtype out_dtype;
    size_t out_stride; /* elements between rows */
} exchange_sum_job;

/* out = partials[0] + partials[1] + ... + bias, added in that order in F32 and rounded once to out_dtype. Rows are
 * shared out over threads; the result does not depend on how many. */
void exchange_sum(const exchange_sum_job *job);

#endif
