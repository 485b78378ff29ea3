/* Adding up partial sums that lie in host memory, the sum going to several places. */
#ifndef VKA_EXCHANGE_ALL_REDUCE_H
#define VKA_EXCHANGE_ALL_REDUCE_H

#include <stddef.h>

typedef struct exchange_all_reduce_job {
    const float *const *partials; /* [count] arrays of `values` */
    size_t count;                 /* at least 1 */
    float *const *sums;           /* [sum_count] arrays of `values`; each may be one of the partials */
    size_t sum_count;
    size_t values;
} exchange_all_reduce_job;

/* Every sum = partials[0] + partials[1] + ..., added in that order in F32. Blocks are shared out over threads; the
 * result does not depend on how many. */
void exchange_all_reduce(const exchange_all_reduce_job *job);

#endif
