/* What the cases of one run of the benchmark share: the chosen devices, a context for each, their measured peaks, and
 * generated weights. Everything is made when it is first asked for. */
#ifndef VKA_BENCH_SESSION_H
#define VKA_BENCH_SESSION_H

#include "bench/result.h"
#include "vkattn/context.h"
#include "vkattn/model.h"

typedef struct bench_options {
    const char *devices, *variants, *pretend; /* as vka_context_params */
    bool quick;                               /* the limits are those of --quick */
    bench_limits limits;
} bench_options;

enum { BENCH_MAX_DEVICES = 16 };

typedef struct bench_session {
    bench_options options;
    uint32_t devices;
    vka_device_info info[BENCH_MAX_DEVICES];
    vka_context *context[BENCH_MAX_DEVICES];             /* NULL: not opened yet */
    double peak_rate[BENCH_MAX_DEVICES][VKA_PEAK_COUNT]; /* 0: not measured yet */
    char preset[BENCH_PRESET];                           /* whose weights these are */
    vka_generated_weights *weights;
} bench_session;

/* Finds out which devices are meant. */
vka_status bench_session_open(bench_session *out, const bench_options *options, vka_error *error);
void bench_session_close(bench_session *session);

/* A new context of `count` devices from `first` on, which belongs to the caller. */
vka_status bench_open_context(const bench_session *session, uint32_t first, uint32_t count, vka_context **out,
                              vka_error *error);

/* The session's own context of one device. */
vka_status bench_context(bench_session *session, uint32_t device, vka_context **out, vka_error *error);

/* The device's rate for `kind` (FLOP/s or bytes/s), measured now unless it was before. */
vka_status bench_peak_rate(bench_session *session, uint32_t device, vka_peak_kind kind, double *rate, vka_error *error);

/* F16 weights of a preset, which live until another preset is asked for. */
vka_status bench_weights(bench_session *session, const vka_preset *preset, const vka_layer_weights **weights,
                         vka_error *error);

#endif
