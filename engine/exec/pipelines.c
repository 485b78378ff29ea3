/* See pipelines.h. */
#include "exec/pipelines.h"

#include <string.h>

#include "exec/recorder.h"
#include "exec/steps.h"

#define WARM_BYTES 64

static vka_dtype kernel_dtype(vka_kernel kernel, const pipeline_shape *shape)
{
    switch (kernel) {
    case VKA_KERNEL_GEMM:
    case VKA_KERNEL_GEMV:
        return shape->weight_dtype;
    case VKA_KERNEL_COMBINE:
        return VKA_DTYPE_DEFAULT;
    case VKA_KERNEL_PACK:
        return shape->pack_dtype;
    default:
        return shape->cache_dtype;
    }
}

vka_status pipelines_make(exec_device *device, const vka_variant *variant, uint32_t qk_pad, uint32_t v_pad,
                          kernel_pipeline *out, vka_error *error)
{
    gpu_pipeline_desc desc = {.name = variant->name,
                              .spirv = variant->spirv,
                              .spirv_bytes = variant->spirv_bytes,
                              .local_size = variant->local_size,
                              .shared_bytes = variant->shared_bytes,
                              .storage_bindings = variant->storage_bindings,
                              .texel_bindings = variant->texel_bindings,
                              .push_bytes = variant->push_bytes};

    desc.spec_count = vka_variant_spec(variant, qk_pad, v_pad, desc.spec);
    out->variant = variant;
    return gpu_pipeline_get(device->gpu, &desc, &out->pipeline, error);
}

static vka_status get_one(const vka_context *context, exec_device *device, vka_kernel kernel,
                          const pipeline_shape *shape, kernel_pipeline *out, vka_error *error)
{
    const vka_variant *variant = NULL;
    vka_status status = exec_variant(context, device, kernel, kernel_dtype(kernel, shape), &variant, error);

    return status == VKA_OK ? pipelines_make(device, variant, shape->qk_pad, shape->v_pad, out, error) : status;
}

/* An empty dispatch with `buffer` at every binding. */
static vka_status warm_one(recorder *rec, const kernel_pipeline *kernel, gpu_buffer *buffer, vka_error *error)
{
    static const unsigned char zeros[128] = {0};
    static const uint32_t none[3] = {0, 0, 0};
    const vka_variant *variant = kernel->variant;
    step_buffer buffers[GPU_MAX_BINDINGS];

    for (uint32_t i = 0; i < variant->storage_bindings; i++)
        buffers[i] = writes(buffer, HAZARD_WHOLE);
    return step_dispatch(rec, kernel, buffers, zeros, variant->push_bytes, none, error);
}

/* An empty dispatch of every pipeline in `warm`. */
static vka_status dispatch_nothing(exec_device *device, const pipeline_set *set, uint32_t warm, vka_error *error)
{
    gpu_buffer *buffer = device->scratch[EXEC_SCRATCH_CALL][0].buffer;
    recorder rec;
    vka_status status = recorder_begin(&rec, device->gpu, error);

    for (uint32_t k = 0; status == VKA_OK && k < VKA_KERNEL_COUNT; k++) {
        const kernel_pipeline *kernel = &set->kernel[k];
        if ((warm >> k & 1u) != 0) {
            status = warm_one(&rec, kernel, buffer, error);
        }
    }
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    return recorder_submit(&rec, &device->pending, error);
}

vka_status pipelines_get(vka_context *context, exec_device *device, const pipeline_shape *shape, pipeline_set *out,
                         vka_error *error)
{
    uint32_t warm = 0;
    vka_status status = VKA_OK;

    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; status == VKA_OK && k < VKA_KERNEL_COUNT; k++) {
        uint32_t before = gpu_pipeline_count(device->gpu);
        if ((shape->kernels >> k & 1u) != 0) {
            status = get_one(context, device, (vka_kernel)k, shape, &out->kernel[k], error);
            warm |= (gpu_pipeline_count(device->gpu) > before ? 1u : 0u) << k;
        }
    }
    if (status == VKA_OK && warm != 0) {
        status = exec_scratch_reserve(device, EXEC_SCRATCH_CALL, 0, WARM_BYTES, error);
    }
    if (status == VKA_OK && warm != 0) {
        status = dispatch_nothing(device, out, warm, error);
    }
    return status;
}
