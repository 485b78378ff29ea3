/* See work.h. */
#include "bench/work.h"

double bench_visible_pairs(uint32_t rows, uint32_t keys, bool causal)
{
    double all = (double)rows * keys;
    double hidden;

    if (!causal)
        return all;
    if (keys >= rows) /* row i misses the last rows - 1 - i keys */
        return all - (double)rows * (rows - 1) / 2;
    hidden = rows - keys; /* those rows see nothing */
    return all - hidden * keys - (double)keys * (keys - 1) / 2;
}

static bench_work attention(const bench_case *of)
{
    double pairs = bench_visible_pairs(of->rows, of->keys, of->causal != 0);
    double query_bytes = (double)of->rows * of->heads * of->head_dim * sizeof(float);
    double key_bytes = (double)of->keys * of->kv_heads * of->head_dim * (double)vka_dtype_size(of->dtype);

    return (bench_work){4.0 * pairs * of->heads * of->head_dim, 2 * query_bytes + 2 * key_bytes};
}

static bench_work projection(const bench_case *of)
{
    double weights = (double)of->cols * of->depth;
    double floats = (double)of->rows * ((double)of->depth + of->cols);

    return (bench_work){2.0 * of->rows * weights, weights * (double)vka_dtype_size(of->dtype) + floats * sizeof(float)};
}

bench_work bench_work_of(const bench_case *of)
{
    switch (of->kind) {
    case BENCH_ATTENTION_PREFILL:
    case BENCH_ATTENTION_DECODE:
        return attention(of);
    case BENCH_GEMM:
    case BENCH_GEMV:
        return projection(of);
    case BENCH_EXCHANGE:
        return (bench_work){0, 2.0 * of->devices * (double)of->bytes};
    case BENCH_MEMCPY:
        return (bench_work){0, 2.0 * (double)of->bytes};
    default:
        return (bench_work){0};
    }
}
