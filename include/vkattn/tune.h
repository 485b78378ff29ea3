/* Tuning: measures the kernel variants that a device can run, on request only, and remembers the fastest.
 *
 * Without tuning a device runs the variant of highest priority. vka_tune() times every variant that the device can run,
 * for each kernel and class of shapes that calls of a layer use, and keeps what was faster by 3 % or more: in the
 * context, which runs it from the next call on, and in the file of the device (vka_context_params.tuning_cache_dir),
 * which contexts made later read. Given that file, selection is deterministic. It holds for one device, driver version
 * and version of this library. Forced variants (vka_context_params.variants) come before tuned ones, and layers that
 * are `reproducible` never run tuned ones. */
#ifndef VKATTN_TUNE_H
#define VKATTN_TUNE_H

#include "vkattn/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One variant that could run. */
typedef struct vka_tune_result {
    const char *kernel;  /* "gemm"; all texts here are static storage */
    const char *dtype;   /* of weights or cache: "F16" */
    const char *shape;   /* the class of shapes that the choice is for: "rows=5-32", "head=65-128" */
    const char *variant; /* "gemm_f16_floor" */
    uint32_t rows;       /* with which it was measured */
    uint32_t keys;       /* likewise; 0 for projections */
    uint32_t samples;    /* runs, or groups of runs, that were timed; 0: the only one that can run, not measured */
    uint32_t gpu_clock;  /* nonzero: times are the GPU's own; else the host's */
    double median_ms, min_ms, max_ms; /* of one run */
    uint32_t standard; /* nonzero: what runs without tuning */
    uint32_t chosen;   /* nonzero: what runs from now on */
} vka_tune_result;

/* Called for all variants of a kernel and class one after the other, when all of them have been measured. The context
 * must not be used inside. */
typedef void (*vka_tune_result_fn)(void *user, const vka_tune_result *result);

/* Called before a kernel and class is measured: the `done`-th (from 0) of `total`. */
typedef void (*vka_tune_progress_fn)(void *user, uint32_t done, uint32_t total, const char *kernel, const char *shape);

typedef struct vka_tune_params {
    uint32_t struct_size;     /* sizeof(vka_tune_params) */
    uint32_t device;          /* position in the context's device list */
    uint32_t heads, kv_heads; /* of the layer, or of what the device holds of it */
    uint32_t head_dim;        /* 1 to 576 */
    uint32_t v_head_dim;      /* 0: head_dim */
    uint32_t hidden_size;     /* 0: attention only, no projections */
    uint32_t rows;            /* most rows of a call, up to 2^20; 0: 256 */
    uint32_t keys;            /* of decoding, up to 2^20; 0: 1024 */
    vka_dtype weight_dtype;   /* default: F16 */
    vka_dtype cache_dtype;    /* F32 or F16; default: F16 */
    uint32_t budget_ms;       /* 0: 5000. Every variant runs twice, and those that are not far behind three times,
                                 whatever that takes; the rest of the budget goes into more samples */
    vka_tune_progress_fn progress; /* NULL: none */
    void *progress_user;
} vka_tune_params;

/* Blocking; takes about budget_ms, and longer where compiling the variants or a few runs of each takes longer.
 * `results` may be NULL. On failure nothing is changed. Contexts with no_tuning_cache or `pretend` keep the choices to
 * themselves and write no file. */
VKA_API vka_status vka_tune(vka_context *context, const vka_tune_params *params, vka_tune_result_fn results,
                            void *results_user, vka_error *error);

/* Forgets all choices for a device and removes its file (likewise not with no_tuning_cache or `pretend`). */
VKA_API vka_status vka_tune_forget(vka_context *context, uint32_t device, vka_error *error);

/* ---- what a context knows ---- */

typedef struct vka_tuned_info {
    const char *kernel, *dtype, *shape, *variant; /* as in vka_tune_result */
    uint32_t runs; /* nonzero: the device can run it. It may not when the context pretends */
} vka_tuned_info;

/* Writes up to `capacity` choices for a device and sets *count to how many there are. */
VKA_API vka_status vka_tuned_list(const vka_context *context, uint32_t device, vka_tuned_info *choices,
                                  uint32_t capacity, uint32_t *count, vka_error *error);

/* Where choices for a device are kept, whether or not the file exists; NULL: nowhere, or no such device. Belongs to the
 * context. */
VKA_API const char *vka_tuning_file(const vka_context *context, uint32_t device);

#ifdef __cplusplus
}
#endif

#endif
