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

vka_status pipelines_make(exec_device *device, const vka_variant *variant, const vka_spec *spec, kernel_pipeline *out,
                          vka_error *error)
{
    gpu_pipeline_desc desc = {.name = variant->name,
                              .spirv = variant->spirv,
                              .spirv_bytes = variant->spirv_bytes,
                              .local_size = variant->local_size,
                              .shared_bytes = variant->shared_bytes,
                              .storage_bindings = variant->storage_bindings,
                              .texel_bindings = variant->texel_bindings,
                              .push_bytes = variant->push_bytes};

    if (spec != NULL) {
        desc.spec_count = spec->count;
        memcpy(desc.spec, spec->value, sizeof(desc.spec));
    }
    out->variant = variant;
    return gpu_pipeline_get(device->gpu, &desc, &out->pipeline, error);
}

/* Pipelines that are new and have to be warmed. */
typedef struct warm_list {
    const kernel_pipeline *kernel[VKA_KERNEL_COUNT + TUNING_ROW_CLASSES + EPILOGUE_PARTS];
    uint32_t count;
} warm_list;

typedef struct pipeline_request {
    const vka_context *context;
    exec_device *device;
    const pipeline_shape *shape;
    warm_list warm;
} pipeline_request;

static vka_status choose_variant(const pipeline_request *request, vka_kernel kernel, tuning_class sizes,
                                 const vka_variant **out, vka_error *error)
{
    const pipeline_shape *shape = request->shape;
    vka_dtype dtype = kernel_dtype(kernel, shape);
    const vka_variant *tuned = NULL;

    if (shape->candidate != NULL && shape->candidate->kernel == kernel) {
        *out = shape->candidate;
        return VKA_OK;
    }
    if (!shape->reproducible) {
        tuned = tuning_choice(&request->device->tuned, kernel, dtype, sizes);
    }
    return exec_variant(request->context, request->device, kernel, dtype, tuned, out, error);
}

static vka_status get_one(pipeline_request *request, vka_kernel kernel, tuning_class sizes, const vka_spec *spec,
                          kernel_pipeline *out, vka_error *error)
{
    const vka_variant *variant = NULL;
    uint32_t before = gpu_pipeline_count(request->device->gpu);
    vka_status status = choose_variant(request, kernel, sizes, &variant, error);

    if (status == VKA_OK) {
        status = pipelines_make(request->device, variant, spec, out, error);
    }
    if (gpu_pipeline_count(request->device->gpu) > before) {
        request->warm.kernel[request->warm.count++] = out;
    }
    return status;
}

/* Projections run a pipeline for each class of rows. */
static vka_status get_projections(pipeline_request *request, vka_kernel kernel, pipeline_set *out, vka_error *error)
{
    vka_status status = VKA_OK;

    for (int i = 0; status == VKA_OK && i < TUNING_ROW_CLASSES; i++) {
        if (tuning_has_class(kernel, (tuning_class)i)) {
            status = get_one(request, kernel, (tuning_class)i, NULL, &out->projection[i], error);
        }
    }
    return status;
}

static vka_status get_epilogues(pipeline_request *request, tuning_class heads, pipeline_set *out, vka_error *error)
{
    vka_status status = VKA_OK;

    for (int part = 0; status == VKA_OK && part < EPILOGUE_PARTS; part++) {
        if ((request->shape->epilogues >> part & 1u) != 0) {
            const vka_spec spec = vka_spec_epilogue(&request->shape->epilogue[part]);
            status = get_one(request, VKA_KERNEL_EPILOGUE, heads, &spec, &out->epilogue[part], error);
        }
    }
    return status;
}

static vka_status get_kernel(pipeline_request *request, vka_kernel kernel, pipeline_set *out, vka_error *error)
{
    const pipeline_shape *shape = request->shape;
    const vka_spec attention = vka_spec_attention(&shape->attention), combine = vka_spec_combine(&shape->attention);
    tuning_class heads = tuning_head_class(shape->attention.qk_pad, shape->attention.v_pad);

    switch (kernel) {
    case VKA_KERNEL_GEMM:
    case VKA_KERNEL_GEMV:
        return get_projections(request, kernel, out, error);
    case VKA_KERNEL_EPILOGUE:
        return get_epilogues(request, heads, out, error);
    case VKA_KERNEL_PREFILL:
    case VKA_KERNEL_DECODE:
        return get_one(request, kernel, heads, &attention, &out->kernel[kernel], error);
    case VKA_KERNEL_COMBINE:
        return get_one(request, kernel, heads, &combine, &out->kernel[kernel], error);
    default:
        return get_one(request, kernel, heads, NULL, &out->kernel[kernel], error);
    }
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

static vka_status dispatch_nothing(exec_device *device, const warm_list *warm, vka_error *error)
{
    gpu_buffer *buffer = device->scratch[EXEC_SCRATCH_CALL][0].buffer;
    recorder rec;
    vka_status status = recorder_begin(&rec, device->gpu, error);

    for (uint32_t i = 0; status == VKA_OK && i < warm->count; i++) {
        status = warm_one(&rec, warm->kernel[i], buffer, error);
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
    pipeline_request request = {.context = context, .device = device, .shape = shape};
    vka_status status = VKA_OK;

    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; status == VKA_OK && k < VKA_KERNEL_COUNT; k++) {
        if ((shape->kernels >> k & 1u) != 0) {
            status = get_kernel(&request, (vka_kernel)k, out, error);
        }
    }
    if (status != VKA_OK || request.warm.count == 0) {
        return status;
    }
    status = exec_scratch_reserve(device, EXEC_SCRATCH_CALL, 0, WARM_BYTES, error);
    return status == VKA_OK ? dispatch_nothing(device, &request.warm, error) : status;
}
