/* Names of benchmark cases. A name says all that there is to a case, so that one can be asked for that no list holds:
 *
 *   attention.prefill.h32.kv8.d128.q512.k512[.causal].f16   heads, KV heads, head size, queries, keys, cache type
 *   attention.decode.h32.kv8.d128.q1.k4096.f16              up to 3 queries; causal does not matter
 *   gemm.m512.k4096.n6144.f16, gemv.m1.k4096.n6144.f16      rows, depth, columns, type of the weights
 *   layer.decode.llama3.1-8b.tp8[.k1024]                    preset, ranks, keys in the cache before the step
 *   layer.prefill.llama3.1-8b.tp1.m128                      rows
 *   layer.first.llama3.1-8b.tp1                             opening a context and a layer, and its first call
 *   exchange.sum.2dev.16MiB                                 devices, bytes of one partial sum
 *   memcpy.16MiB                                            on the host
 *   peak.fma.f32, peak.read, peak.copy
 *
 * Pure: no device, no memory. */
#ifndef VKA_BENCH_NAME_H
#define VKA_BENCH_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "vkattn/peak.h"

typedef enum bench_kind {
    BENCH_ATTENTION_PREFILL,
    BENCH_ATTENTION_DECODE,
    BENCH_GEMM,
    BENCH_GEMV,
    BENCH_LAYER_DECODE,
    BENCH_LAYER_PREFILL,
    BENCH_LAYER_FIRST,
    BENCH_EXCHANGE,
    BENCH_MEMCPY,
    BENCH_PEAK,
} bench_kind;

enum { BENCH_NAME = 128, BENCH_PRESET = 64, BENCH_DEFAULT_KEYS = 64 };

/* What does not belong to the kind is 0. */
typedef struct bench_case {
    char name[BENCH_NAME];
    bench_kind kind;
    uint32_t heads, kv_heads, head_dim; /* attention */
    uint32_t rows;                      /* attention: queries; projections and layers: rows of a call */
    uint32_t keys;                      /* attention; decoding of a layer: before the step */
    uint32_t depth, cols;               /* projections */
    uint32_t causal;                    /* attention: nonzero for the bottom-right alignment */
    vka_dtype dtype;                    /* of the cache, or of the weights */
    char preset[BENCH_PRESET];          /* layers; it may be that there is none of this name */
    uint32_t tp;
    uint32_t devices; /* exchange */
    uint64_t bytes;   /* exchange, memcpy */
    vka_peak_kind peak;
} bench_case;

/* False when `name` does not follow the grammar, or a number makes no sense; *out is then unspecified. */
bool bench_case_parse(const char *name, bench_case *out);

/* Whether `name` matches `pattern`, in which * stands for anything and ? for one character. */
bool bench_glob(const char *pattern, const char *name);

#endif
