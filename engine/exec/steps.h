/* The steps of a call as dispatches: each turns tensors and sizes into push constants, workgroups and declared reads
 * and writes. */
#ifndef VKA_EXEC_STEPS_H
#define VKA_EXEC_STEPS_H

#include "exec/matrix.h"
#include "exec/pipelines.h"
#include "exec/recorder.h"
#include "exec/tiles.h"

/* Binds the storage buffers of a kernel, and once more as texel views those that its variant wants to see so. */
vka_status step_dispatch(recorder *rec, const kernel_pipeline *kernel, const step_buffer *storage, const void *push,
                         uint32_t push_bytes, const uint32_t groups[3], vka_error *error);

/* y[row, y_column + j] = sum over k of x[row, x_column + k] * w[j, w_column + k], k < depth. With blocks of weights,
 * block b is a product of its own: of x from b*x_step on, into y from b*y_step on. */
typedef struct projection_step {
    gpu_buffer *x;
    uint32_t x_column, x_stride;
    const weight_matrix *weights;
    uint32_t w_column, depth;
    gpu_buffer *y;
    uint32_t y_offset, y_stride;
    uint32_t y_part; /* first hazard part that the panels may use: y_part, y_part + 1, ... */
    uint32_t rows;
    uint32_t x_step, y_step;
} projection_step;
/* What a projection of `rows` rows runs: GEMV for few, GEMM for many. */
const kernel_pipeline *step_projection_kernel(const pipeline_set *set, uint32_t rows);
vka_status step_projection(recorder *rec, const pipeline_set *set, const projection_step *step, vka_error *error);

/* The epilogue of Q, K or V: see epilogue_push in shaders/params.h. */
typedef struct epilogue_step {
    epilogue_part part;
    epilogue_push push;
    gpu_buffer *call, *constants, *source, *target;
    uint32_t target_part; /* hazard part: K and V of one slab are disjoint */
} epilogue_step;
vka_status step_epilogue(recorder *rec, const pipeline_set *set, const epilogue_step *step, vka_error *error);

/* Everything the attention of one chunk needs on one device. */
typedef struct attention_step {
    attention_push push; /* offsets into the call buffer are set per launch */
    const tile_plan *plan;
    uint32_t tiles_offset;                          /* words: planned tiles in the call buffer */
    uint32_t prefill_heads_offset, prefill_records; /* head records of each kernel */
    uint32_t decode_heads_offset, decode_records;
    uint32_t combine_offset;              /* words: combine rows */
    uint32_t sinks_offset, slopes_offset; /* words: by query head */
    uint32_t v_pad;
    gpu_buffer *call, *q, *out, *split;
    gpu_buffer *const *slabs;
} attention_step;
/* All launches, then the combine. */
vka_status step_attention(recorder *rec, const pipeline_set *set, const attention_step *step, vka_error *error);

vka_status step_pack(recorder *rec, const pipeline_set *set, const pack_push *push, gpu_buffer *source,
                     gpu_buffer *target, uint32_t target_part, vka_error *error);

#endif
