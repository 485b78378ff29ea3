/* See session.h. A context of one device each keeps the others out of the way: no pipelines are made and no memory is
 * taken where nothing is measured. */
#include "bench/session.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "progress.h"

static void print_warning(void *user, int level, const char *message)
{
    (void)user;
    if (level <= 1)
        fprintf(stderr, "vkattn: %s\n", message);
}

static vka_status open_context(const bench_options *options, const char *devices, vka_context **out, vka_error *error)
{
    const vka_context_params params = {
        .struct_size = sizeof(params),
        .devices = devices,
        .variants = options->variants,
        .pretend = options->pretend,
        .no_pipeline_cache = 1, /* what a first call costs is measured, too */
        .log = print_warning,
    };

    return vka_context_create(out, &params, error);
}

vka_status bench_session_open(bench_session *out, const bench_options *options, vka_error *error)
{
    vka_context *all = NULL;
    vka_status status = open_context(options, options->devices, &all, error);

    if (status != VKA_OK)
        return status;
    memset(out, 0, sizeof(*out));
    out->options = *options;
    out->devices = vka_context_device_count(all);
    for (uint32_t d = 0; d < out->devices && d < BENCH_MAX_DEVICES; d++)
        out->info[d] = *vka_context_device(all, d);
    vka_context_destroy(&all);
    if (out->devices > BENCH_MAX_DEVICES)
        return vka_fail(error, VKA_ERR_ARGUMENT, "--devices chooses %u devices; expected at most %d", out->devices,
                        (int)BENCH_MAX_DEVICES);
    return VKA_OK;
}

void bench_session_close(bench_session *session)
{
    for (uint32_t d = 0; d < BENCH_MAX_DEVICES; d++)
        vka_context_destroy(&session->context[d]);
    vka_weights_free(&session->weights);
}

vka_status bench_open_context(const bench_session *session, uint32_t first, uint32_t count, vka_context **out,
                              vka_error *error)
{
    char devices[12 * BENCH_MAX_DEVICES];
    vka_text text = {devices, sizeof(devices), 0};

    for (uint32_t d = first; d < first + count; d++)
        vka_append(&text, "%s%u", text.used ? "," : "", session->info[d].index);
    return open_context(&session->options, devices, out, error);
}

vka_status bench_context(bench_session *session, uint32_t device, vka_context **out, vka_error *error)
{
    vka_status status = VKA_OK;

    if (!session->context[device])
        status = bench_open_context(session, device, 1, &session->context[device], error);
    if (status == VKA_OK)
        *out = session->context[device];
    return status;
}

vka_status bench_peak_rate(bench_session *session, uint32_t device, vka_peak_kind kind, double *rate, vka_error *error)
{
    vka_context *context = NULL;
    vka_peak peak;
    vka_status status;

    if (session->peak_rate[device][kind] == 0) {
        progress_show("measuring peak.%s of %s", vka_peak_name(kind), session->info[device].name);
        status = bench_context(session, device, &context, error);
        if (status == VKA_OK)
            status = vka_measure_peak(context, 0, kind, &peak, error);
        if (status != VKA_OK)
            return status;
        session->peak_rate[device][kind] = peak.rate;
    }
    *rate = session->peak_rate[device][kind];
    return VKA_OK;
}

vka_status bench_weights(bench_session *session, const vka_preset *preset, const vka_layer_weights **weights,
                         vka_error *error)
{
    vka_status status;

    if (!session->weights || strcmp(session->preset, preset->name) != 0) {
        vka_weights_free(&session->weights);
        progress_show("generating weights of %s", preset->name);
        status = vka_weights_generate(&session->weights, &preset->desc, NULL, error);
        if (status != VKA_OK)
            return status;
        snprintf(session->preset, sizeof(session->preset), "%s", preset->name);
    }
    *weights = vka_weights_view(session->weights);
    return VKA_OK;
}
