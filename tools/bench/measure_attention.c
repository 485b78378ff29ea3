/* The attention step: K and V lie in host memory in the cache's own type, so that what surrounds the timed part is a
 * plain copy. */
#include <stdlib.h>

#include "base/error.h"
#include "bench/measure.h"
#include "bench/work.h"
#include "vkattn/attention.h"

typedef struct attention_run {
    vka_context *context;
    vka_attention_params params;
    double gpu_ms, wall_ms;
    const char *variant;
} attention_run;

static vka_status sample(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    attention_run *run = user;

    run->params.repeat = repeat;
    vka_status status = vka_attention(run->context, &run->params, error);
    *gpu_ms = run->gpu_ms;
    *wall_ms = run->wall_ms;
    return status;
}

static vka_status make_operands(attention_run *run, const bench_case *of, vka_error *error)
{
    size_t q = (size_t)of->rows * of->heads * of->head_dim, k = (size_t)of->keys * of->kv_heads * of->head_dim;
    vka_attention_params *p = &run->params;

    *p = (vka_attention_params){.struct_size = sizeof(*p),
                                .batch = 1,
                                .heads = of->heads,
                                .kv_heads = of->kv_heads,
                                .head_dim = of->head_dim,
                                .q_len = of->rows,
                                .kv_len = of->keys,
                                .causal = of->causal ? VKA_CAUSAL_BOTTOM_RIGHT : VKA_CAUSAL_NONE,
                                .cache_dtype = of->dtype,
                                .gpu_ms = &run->gpu_ms,
                                .wall_ms = &run->wall_ms,
                                .variant = &run->variant};
    p->q.host = bench_random(q, VKA_F32, 1);
    p->k.host = bench_random(k, of->dtype, 2);
    p->v.host = bench_random(k, of->dtype, 3);
    p->o.host = malloc(q * sizeof(float));
    p->k.dtype = p->v.dtype = of->dtype;
    if (!p->q.host || !p->k.host || !p->v.host || !p->o.host)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu queries and %zu keys and values", q, k);
    return VKA_OK;
}

vka_status bench_measure_attention(bench_session *session, bench_result *result, vka_error *error)
{
    const bench_work work = bench_work_of(result->of);
    attention_run run = {.context = NULL};
    vka_status status = bench_context(session, (uint32_t)result->device, &run.context, error);

    if (status == VKA_OK)
        status = make_operands(&run, result->of, error);
    if (status == VKA_OK)
        status = bench_sample(&session->options.limits, BENCH_BATCH, sample, &run, &result->samples, error);
    free(run.params.q.host);
    free(run.params.k.host);
    free(run.params.v.host);
    free(run.params.o.host);
    if (status != VKA_OK)
        return status;
    result->flops = work.flops;
    result->bytes = work.bytes;
    result->peak = result->of->kind == BENCH_ATTENTION_PREFILL ? VKA_PEAK_FMA_F32 : VKA_PEAK_READ;
    bench_add_variant(result, run.variant);
    return VKA_OK;
}
