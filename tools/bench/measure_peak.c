/* Peaks: the library takes the samples itself. */
#include "bench/measure.h"

vka_status bench_measure_peak(bench_session *session, bench_result *result, vka_error *error)
{
    vka_context *context = NULL;
    vka_peak peak;
    vka_peak_kind kind = result->of->peak;
    vka_status status = bench_context(session, (uint32_t)result->device, &context, error);

    if (status == VKA_OK)
        status = vka_measure_peak(context, 0, kind, &peak, error);
    if (status != VKA_OK)
        return status;
    session->peak_rate[result->device][kind] = peak.rate;
    result->samples.count = peak.runs;
    for (uint32_t i = 0; i < peak.runs; i++) {
        result->samples.gpu_ms[i] = peak.gpu_ms[i];
        result->samples.wall_ms[i] = peak.wall_ms[i];
    }
    if (kind == VKA_PEAK_FMA_F32)
        result->flops = peak.work;
    else
        result->bytes = peak.work;
    bench_add_variant(result, peak.variant);
    return VKA_OK;
}
