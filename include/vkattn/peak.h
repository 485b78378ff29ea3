/* What a device reaches at best, measured with small shaders of our own: the yardstick for everything else. */
#ifndef VKATTN_PEAK_H
#define VKATTN_PEAK_H

#include "vkattn/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vka_peak_kind {
    VKA_PEAK_FMA_F32 = 0, /* independent chains of F32 multiply-adds, no memory */
    VKA_PEAK_READ = 1,    /* reading a buffer that is larger than caches, once */
    VKA_PEAK_COPY = 2,    /* copying such a buffer to another, by a shader or by the device's own copy command */
    VKA_PEAK_COUNT
} vka_peak_kind;

VKA_API const char *vka_peak_name(vka_peak_kind kind); /* "fma.f32", "read", "copy"; "unknown" otherwise */

#define VKA_PEAK_RUNS 10

typedef struct vka_peak {
    const char *variant; /* the fastest of those that the device can run, or "vkCmdCopyBuffer"; static storage */
    uint32_t runs;       /* 1 .. VKA_PEAK_RUNS; few on a device that is so slow that more would take seconds */
    double work;         /* of one run: FLOP (a multiply-add counts as two), or bytes read and written */
    double gpu_ms[VKA_PEAK_RUNS];  /* [runs] in their order; -1 where the device has no timestamps */
    double wall_ms[VKA_PEAK_RUNS]; /* the same on the host's clock, from submission to the end of the wait */
    double rate;                   /* work per second of the median run, by GPU time where there is one */
} vka_peak;

/* Takes some hundred milliseconds, on slow devices seconds, and, for READ and COPY, up to 512 MiB of device memory,
 * which is given back. */
VKA_API vka_status vka_measure_peak(vka_context *context, uint32_t device, vka_peak_kind kind, vka_peak *peak,
                                    vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
