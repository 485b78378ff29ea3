/* See steps.h. */
#include "exec/steps.h"

/* GEMV for few rows, GEMM for many: a fixed border, so that a row's result does not depend on anything measured. */
static const kernel_pipeline *projection_kernel(const pipeline_set *set, uint32_t rows)
{
    return &set->kernel[rows <= vka_gemv_max_rows() ? VKA_KERNEL_GEMV : VKA_KERNEL_GEMM];
}

vka_status step_projection(recorder *rec, const pipeline_set *set, const projection_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = projection_kernel(set, step->rows);
    const weight_matrix *weights = step->weights;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < weights->panels; i++) {
        uint32_t first = i * weights->panel_rows, left = weights->rows - first, groups[3];
        gemm_push push = {.rows = step->rows,
                          .cols = left < weights->panel_rows ? left : weights->panel_rows,
                          .depth = step->depth,
                          .x_offset = step->x_column,
                          .x_stride = step->x_stride,
                          .w_offset = step->w_column,
                          .w_stride = weights->depth,
                          .y_offset = step->y_offset + first,
                          .y_stride = step->y_stride};
        const step_buffer buffers[3] = {{step->x, HAZARD_WHOLE, false},
                                        {weights->panel[i], HAZARD_WHOLE, false},
                                        {step->y, step->y_part + i, true}};
        vka_groups_gemm(kernel->variant, &push, groups);
        status = recorder_dispatch(rec, kernel->pipeline, buffers, 3, &push, sizeof(push), groups, error);
    }
    return status;
}

vka_status step_epilogue(recorder *rec, const pipeline_set *set, const epilogue_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = &set->kernel[VKA_KERNEL_EPILOGUE];
    const step_buffer buffers[4] = {{step->call, HAZARD_WHOLE, false},
                                    {step->constants, HAZARD_WHOLE, false},
                                    {step->source, HAZARD_WHOLE, false},
                                    {step->target, step->target_part, true}};
    uint32_t groups[3];

    vka_groups_epilogue(kernel->variant, &step->push, groups);
    return recorder_dispatch(rec, kernel->pipeline, buffers, 4, &step->push, sizeof(step->push), groups, error);
}

/* Launches write disjoint rows or slots of one buffer, so each has a hazard part of its own. */
static vka_status launch_tiles(recorder *rec, const pipeline_set *set, const attention_step *step, uint32_t index,
                               vka_error *error)
{
    const tile_launch *launch = &step->plan->launches[index];
    const kernel_pipeline *kernel = &set->kernel[launch->kernel];
    bool prefill = launch->kernel == VKA_KERNEL_PREFILL;
    attention_push push = step->push;
    const step_buffer buffers[4] = {{step->call, HAZARD_WHOLE, false},
                                    {step->q, HAZARD_WHOLE, false},
                                    {step->slabs[launch->slab], HAZARD_WHOLE, false},
                                    {launch->partial ? step->split : step->out, index + 1, true}};
    uint32_t groups[3];

    push.tile_offset = step->tiles_offset + launch->first * (uint32_t)(sizeof(attention_tile) / sizeof(uint32_t));
    push.heads_offset = prefill ? step->prefill_heads_offset : step->decode_heads_offset;
    vka_groups_attention(kernel->variant, launch->count, prefill ? step->prefill_records : step->decode_records,
                         groups);
    return recorder_dispatch(rec, kernel->pipeline, buffers, 4, &push, sizeof(push), groups, error);
}

static vka_status combine_splits(recorder *rec, const pipeline_set *set, const attention_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = &set->kernel[VKA_KERNEL_COMBINE];
    const combine_push push = {.entry_offset = step->combine_offset,
                               .heads = step->push.heads,
                               .v_pad = step->v_pad,
                               .out_stride = step->push.out_stride,
                               .lse_offset = step->push.lse_offset};
    const step_buffer buffers[3] = {{step->call, HAZARD_WHOLE, false},
                                    {step->split, HAZARD_WHOLE, false},
                                    {step->out, step->plan->launch_count + 1, true}};
    uint32_t groups[3];

    vka_groups_combine(kernel->variant, step->plan->row_count, push.heads, groups);
    return recorder_dispatch(rec, kernel->pipeline, buffers, 3, &push, sizeof(push), groups, error);
}

vka_status step_attention(recorder *rec, const pipeline_set *set, const attention_step *step, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < step->plan->launch_count; i++) {
        status = launch_tiles(rec, set, step, i, error);
    }
    if (status == VKA_OK && step->plan->row_count > 0) {
        status = combine_splits(rec, set, step, error);
    }
    return status;
}

vka_status step_pack(recorder *rec, const pipeline_set *set, const pack_push *push, gpu_buffer *source,
                     gpu_buffer *target, uint32_t target_part, vka_error *error)
{
    const kernel_pipeline *kernel = &set->kernel[VKA_KERNEL_PACK];
    const step_buffer buffers[2] = {{source, HAZARD_WHOLE, false}, {target, target_part, true}};
    uint32_t groups[3];

    vka_groups_pack(kernel->variant, push, groups);
    return recorder_dispatch(rec, kernel->pipeline, buffers, 2, push, sizeof(*push), groups, error);
}
