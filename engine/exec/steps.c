/* See steps.h. */
#include "exec/steps.h"

#include <string.h>

static gpu_texel_format texel_format(const vka_variant *variant, uint32_t k)
{
    return k == 0 && variant->dtype != VKA_F32 ? GPU_TEXEL_RGBA32UI : GPU_TEXEL_RGBA32F;
}

vka_status step_dispatch(recorder *rec, const kernel_pipeline *kernel, const step_buffer *storage, const void *push,
                         uint32_t push_bytes, const uint32_t groups[3], vka_error *error)
{
    const vka_variant *variant = kernel->variant;
    step_buffer buffers[GPU_MAX_BINDINGS];
    uint32_t count = variant->storage_bindings;

    memcpy(buffers, storage, count * sizeof(*buffers));
    for (uint32_t k = 0; k < variant->texel_bindings; k++) {
        buffers[count] = storage[vka_texel_operand(variant->kernel, k)];
        buffers[count++].texel = texel_format(variant, k);
    }
    return recorder_dispatch(rec, kernel->pipeline, buffers, count, push, push_bytes, groups, error);
}

const kernel_pipeline *step_projection_kernel(const pipeline_set *set, uint32_t rows)
{
    return &set->projection[tuning_rows_class(rows)];
}

static uint32_t panel_rows(const weight_matrix *weights, uint32_t panel)
{
    uint32_t left = weights->rows - panel * weights->panel_rows;

    return left < weights->panel_rows ? left : weights->panel_rows;
}

/* The product of one panel, or those of its blocks. */
static gemm_push panel_push(const projection_step *step, uint32_t panel)
{
    const weight_matrix *weights = step->weights;
    uint32_t first = panel * weights->panel_rows, block = weights->block_rows;
    uint32_t x_first = block > 0 ? first / block * step->x_step : 0;
    uint32_t y_first = block > 0 ? first / block * step->y_step : first;

    return (gemm_push){.rows = step->rows,
                       .cols = block > 0 ? block : panel_rows(weights, panel),
                       .depth = step->depth,
                       .x_offset = step->x_column + x_first,
                       .x_stride = step->x_stride,
                       .w_offset = step->w_column,
                       .w_stride = weights->depth,
                       .y_offset = step->y_offset + y_first,
                       .y_stride = step->y_stride,
                       .x_step = step->x_step,
                       .w_step = block / MATRIX_GROUP * weights->depth,
                       .y_step = step->y_step};
}

vka_status step_projection(recorder *rec, const pipeline_set *set, const projection_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = step_projection_kernel(set, step->rows);
    const weight_matrix *weights = step->weights;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < weights->panels; i++) {
        const gemm_push push = panel_push(step, i);
        const step_buffer buffers[3] = {reads(step->x), reads(weights->panel[i]), writes(step->y, step->y_part + i)};
        uint32_t groups[3];
        vka_groups_gemm(kernel->variant, &push, groups);
        groups[2] = panel_rows(weights, i) / push.cols;
        status = step_dispatch(rec, kernel, buffers, &push, sizeof(push), groups, error);
    }
    return status;
}

vka_status step_epilogue(recorder *rec, const pipeline_set *set, const epilogue_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = &set->epilogue[step->part];
    const step_buffer buffers[4] = {reads(step->call), reads(step->constants), reads(step->source),
                                    writes(step->target, step->target_part)};
    uint32_t groups[3];

    vka_groups_epilogue(kernel->variant, &step->push, groups);
    return step_dispatch(rec, kernel, buffers, &step->push, sizeof(step->push), groups, error);
}

/* Launches write disjoint rows or slots of one buffer, so each has a hazard part of its own. */
static vka_status launch_tiles(recorder *rec, const pipeline_set *set, const attention_step *step, uint32_t index,
                               vka_error *error)
{
    const tile_launch *launch = &step->plan->launches[index];
    const kernel_pipeline *kernel = &set->kernel[launch->kernel];
    bool prefill = launch->kernel == VKA_KERNEL_PREFILL;
    attention_push push = step->push;
    const step_buffer buffers[4] = {reads(step->call), reads(step->q), reads(step->slabs[launch->slab]),
                                    writes(launch->partial ? step->split : step->out, index + 1)};
    uint32_t groups[3];

    push.tile_offset = step->tiles_offset + launch->first * (uint32_t)(sizeof(attention_tile) / sizeof(uint32_t));
    push.sinks_offset = step->sinks_offset;
    push.slopes_offset = step->slopes_offset;
    push.heads_offset = prefill ? step->prefill_heads_offset : step->decode_heads_offset;
    vka_groups_attention(kernel->variant, launch->count, prefill ? step->prefill_records : step->decode_records,
                         groups);
    return step_dispatch(rec, kernel, buffers, &push, sizeof(push), groups, error);
}

static vka_status combine_splits(recorder *rec, const pipeline_set *set, const attention_step *step, vka_error *error)
{
    const kernel_pipeline *kernel = &set->kernel[VKA_KERNEL_COMBINE];
    const combine_push push = {.entry_offset = step->combine_offset,
                               .heads = step->push.heads,
                               .v_pad = step->v_pad,
                               .out_stride = step->push.out_stride,
                               .lse_offset = step->push.lse_offset,
                               .sinks_offset = step->sinks_offset,
                               .gate_offset = step->push.gate_offset,
                               .gate_stride = step->push.gate_stride};
    const step_buffer buffers[4] = {reads(step->call), reads(step->split),
                                    writes(step->out, step->plan->launch_count + 1), reads(step->q)};
    uint32_t groups[3];

    vka_groups_combine(kernel->variant, step->plan->row_count, push.heads, groups);
    return step_dispatch(rec, kernel, buffers, &push, sizeof(push), groups, error);
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
    const step_buffer buffers[2] = {reads(source), writes(target, target_part)};
    uint32_t groups[3];

    vka_groups_pack(kernel->variant, push, groups);
    return step_dispatch(rec, kernel, buffers, push, sizeof(*push), groups, error);
}
