/* The pipelines of one layer shape on one device: one variant per kernel and class of shapes, made on first use and
 * warmed by an empty dispatch, since some drivers compile only then. */
#ifndef VKA_EXEC_PIPELINES_H
#define VKA_EXEC_PIPELINES_H

#include "exec/context.h"

typedef struct kernel_pipeline {
    const vka_variant *variant;
    gpu_pipeline *pipeline;
} kernel_pipeline;

/* What an epilogue is applied to. */
typedef enum epilogue_part {
    EPILOGUE_Q,
    EPILOGUE_K,
    EPILOGUE_V,
    EPILOGUE_K_ROWS, /* K and V for the caller, to float rows */
    EPILOGUE_V_ROWS,
    EPILOGUE_Q_LATENT, /* latent attention: what Q is projected from */
    EPILOGUE_GATE,     /* sigmoid of the gates, to float rows */
    EPILOGUE_SQUARES,  /* sums of squares of Q or K, for a norm over the full width */
    EPILOGUE_PARTS
} epilogue_part;

typedef struct pipeline_set {
    kernel_pipeline kernel[VKA_KERNEL_COUNT];       /* all but GEMV and GEMM, */
    kernel_pipeline projection[TUNING_ROW_CLASSES]; /* which are here, by the class of rows that they run for, */
    kernel_pipeline epilogue[EPILOGUE_PARTS];       /* and EPILOGUE */
} pipeline_set;

/* Which kernels a set holds, as bits 1 << vka_kernel. */
#define PIPELINES_ATTENTION ((1u << VKA_KERNEL_PREFILL) | (1u << VKA_KERNEL_DECODE) | (1u << VKA_KERNEL_COMBINE))
#define PIPELINES_LAYER                                                                                                \
    (PIPELINES_ATTENTION | (1u << VKA_KERNEL_GEMM) | (1u << VKA_KERNEL_GEMV) | (1u << VKA_KERNEL_EPILOGUE))

typedef struct pipeline_shape {
    uint32_t kernels;
    vka_dtype weight_dtype; /* GEMM, GEMV */
    vka_dtype cache_dtype;  /* EPILOGUE, PREFILL, DECODE */
    vka_dtype pack_dtype;   /* PACK: the destination's */
    attention_kind attention;
    epilogue_kind epilogue[EPILOGUE_PARTS];
    uint32_t epilogues;           /* which of them, as bits 1 << epilogue_part */
    bool reproducible;            /* nothing that was measured has a say: tuned choices are passed over */
    const vka_variant *candidate; /* what its kernel runs, whatever selection says, so that it can be measured; NULL */
} pipeline_shape;

/* The pipeline of one given variant, not warmed. `spec` may be NULL: no specialisation constants. */
vka_status pipelines_make(exec_device *device, const vka_variant *variant, const vka_spec *spec, kernel_pipeline *out,
                          vka_error *error);

/* Selects and creates; new pipelines are warmed before it returns. */
vka_status pipelines_get(vka_context *context, exec_device *device, const pipeline_shape *shape, pipeline_set *out,
                         vka_error *error);

#endif
