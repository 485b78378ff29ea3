/* What a case computes and moves, by definition: multiply-adds count twice, attention counts visible pairs of query and
 * key only, every operand is read once and every result written once. Pure. */
#ifndef VKA_BENCH_WORK_H
#define VKA_BENCH_WORK_H

#include "bench/name.h"

typedef struct bench_work {
    double flops; /* 0: not what the case is about */
    double bytes;
} bench_work;

/* Attention, projections, exchange (every partial read, every sum written) and memcpy (read and written). Layers and
 * peaks count their own: zeros. */
bench_work bench_work_of(const bench_case *of);

/* Pairs of query and key that see each other: all, or with `causal` key j <= query i + keys - rows. */
double bench_visible_pairs(uint32_t rows, uint32_t keys, bool causal);

#endif
