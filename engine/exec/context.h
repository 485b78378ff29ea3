/* The context and its opened devices, as the rest of exec sees them. */
#ifndef VKA_EXEC_CONTEXT_H
#define VKA_EXEC_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/log.h"
#include "exec/chunk.h"
#include "exec/staged.h"
#include "exec/tiles.h"
#include "kernels/tuning.h"
#include "vk/gpu.h"

/* Scratch tensors of one device, shared by all layers, grown when a call needs more and kept for the next. Those that
 * the host touches exist once per slot, so that it can fill or read one while the device works on the other. */
typedef enum exec_scratch {
    EXEC_SCRATCH_CALL,      /* per-call parameter buffer: row records, tiles, page tables */
    EXEC_SCRATCH_HIDDEN,    /* [rows, hidden_pad] */
    EXEC_SCRATCH_QKV,       /* [rows, qkv columns] */
    EXEC_SCRATCH_SQUARES,   /* [rows, q_heads + kv_heads], with a QK-norm over the full width */
    EXEC_SCRATCH_KV,        /* [rows, kv_heads*(qk_pad + v_pad)], when the caller wants K and V */
    EXEC_SCRATCH_Q,         /* [rows, q_heads*qk_pad] */
    EXEC_SCRATCH_ATTENTION, /* [rows, q_heads*v_pad], then the log-sum-exp when it is wanted */
    EXEC_SCRATCH_Q_LATENT,  /* latent attention: [rows, rank], */
    EXEC_SCRATCH_Q_UP,      /* [rows, q_heads*(plain + rotary)], */
    EXEC_SCRATCH_VALUES,    /* and [rows, q_heads*o_pad] */
    EXEC_SCRATCH_SPLIT,     /* partial attention of split keys */
    EXEC_SCRATCH_PARTIAL,   /* [partials, rows, hidden_pad] */
    EXEC_SCRATCH_COUNT
} exec_scratch;

#define EXEC_MAX_DEVICES 64u
#define EXEC_SLOTS       2u

typedef struct exec_device {
    gpu_device *gpu;
    staged_tensor scratch[EXEC_SCRATCH_COUNT][EXEC_SLOTS]; /* device-only ones use slot 0 */
    tile_plan plan;
    uint64_t pending; /* ticket of the last submission not yet waited for; 0: none */
    tuning_table tuned;
    char *tuning_path; /* where its choices are kept, or NULL: nowhere */
} exec_device;

/* Host memory of a call, kept for the next one and only grown. */
typedef struct call_memory {
    call_sequence *sequences; /* [capacity] */
    tile_source *sources;     /* [capacity] */
    uint32_t capacity;
    uint32_t *words; /* what every device's parameter buffer starts with */
    size_t word_capacity;
    float *result; /* summed rows on their way back to the devices */
    size_t result_capacity;
} call_memory;

struct vka_context {
    vka_allocator allocator;
    vka_log log;
    gpu_instance *instance;
    exec_device *devices;
    uint32_t device_count;
    uint32_t submit_budget_ms; /* 0: by device type */
    char *variants;            /* forced variants, or NULL */
    char *tuning_dir;          /* folder of tuning files, or NULL: neither read nor written */
    bool pretends;             /* its devices pretend to be lesser ones: tuning files are read only */
    call_memory call;
    _Atomic(const void *) tracer; /* the thread that is inside a trace callback and may read the cache; NULL: none */
    atomic_flag busy;
};

vka_status exec_context_create(vka_context **out, const vka_context_params *params, vka_error *error);
void exec_context_destroy(vka_context **context);

/* Makes scratch tensor `which` hold at least `bytes`; contents are lost when it grows, after a wait for the device. */
vka_status exec_scratch_reserve(exec_device *device, exec_scratch which, uint32_t slot, uint64_t bytes,
                                vka_error *error);

/* Waits for one submission. */
vka_status exec_wait(exec_device *device, uint64_t ticket, vka_error *error);

/* Waits for every device's pending submission; keeps going after a failure and reports the first. */
vka_status exec_wait_all(vka_context *context, vka_error *error);

/* Floating-point operations that one submission to `device` may hold: a fixed rate per device type times the budget, so
 * that the cut into chunks, and with it every bit of the result, does not depend on anything measured. */
double exec_submit_flops(const vka_context *context, const exec_device *device);

/* The variant for (kernel, dtype) on `device`: the context's forced names come first, then `tuned` (NULL: none). */
vka_status exec_variant(const vka_context *context, const exec_device *device, vka_kernel kernel, vka_dtype dtype,
                        const vka_variant *tuned, const vka_variant **out, vka_error *error);

#endif
