/* See context.h. */
#include "exec/context.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "exec/call.h"
#include "exec/tuned.h"

/* Sustained FLOP/s that a device of a type is trusted with: far below what good ones reach, so that a submission stays
 * within its time budget on slow ones. */
static double trusted_rate(vka_device_type type)
{
    switch (type) {
    case VKA_DEVICE_DISCRETE:
        return 2e12;
    case VKA_DEVICE_INTEGRATED:
    case VKA_DEVICE_VIRTUAL:
        return 2e11;
    default:
        return 1e10;
    }
}

double exec_submit_flops(const vka_context *context, const exec_device *device)
{
    vka_device_type type = gpu_device_caps(device->gpu)->type;
    uint32_t budget_ms = context->submit_budget_ms;

    if (budget_ms == 0) {
        budget_ms = type == VKA_DEVICE_CPU ? 2000 : 500; /* no watchdog waits on a CPU device */
    }
    return trusted_rate(type) * budget_ms * 1e-3;
}

vka_status exec_variant(const vka_context *context, const exec_device *device, vka_kernel kernel, vka_dtype dtype,
                        const vka_variant *tuned, const vka_variant **out, vka_error *error)
{
    return vka_variant_select_tuned(kernel, dtype, gpu_device_caps(device->gpu), context->variants, tuned, out, error);
}

/* Every forced name must be a row that at least one kernel of every device accepts; selection says so by name. */
static vka_status take_variants(vka_context *context, const char *variants, vka_error *error)
{
    const vka_variant *ignored;

    if (variants == NULL || variants[0] == '\0') {
        return VKA_OK;
    }
    context->variants = vka_copy_text(&context->allocator, variants);
    if (context->variants == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the names of forced variants");
    }
    for (uint32_t d = 0; d < context->device_count; d++) {
        for (uint32_t i = 0; i < vka_variant_rows(); i++) {
            const vka_variant *row = vka_variant_row(i);
            vka_status status =
                exec_variant(context, &context->devices[d], row->kernel, row->dtype, NULL, &ignored, error);
            if (status != VKA_OK) {
                return status;
            }
        }
    }
    return VKA_OK;
}

static vka_status open_devices(vka_context *context, const vka_context_params *params, vka_error *error)
{
    uint32_t chosen[EXEC_MAX_DEVICES], count = 0, found = gpu_instance_count(context->instance);
    char cache_dir[1024];
    const char *cache = NULL;
    vka_device_info *infos = vka_alloc(&context->allocator, found, sizeof(*infos));

    if (infos == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a list of %u devices", found);
    }
    for (uint32_t i = 0; i < found; i++) {
        infos[i] = *gpu_instance_info(context->instance, i);
    }
    vka_status status = gpu_choose(infos, found, params->devices, chosen, EXEC_MAX_DEVICES, &count, error);
    vka_free(&context->allocator, infos);
    if (status != VKA_OK) {
        return status;
    }
    if (params->no_pipeline_cache == 0 && gpu_pipeline_cache_dir(params, cache_dir, sizeof(cache_dir))) {
        cache = cache_dir;
    }
    context->devices = vka_alloc(&context->allocator, count, sizeof(*context->devices));
    if (context->devices == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u devices", count);
    }
    context->device_count = count;
    for (uint32_t i = 0; i < count; i++) {
        context->devices[i].plan.allocator = &context->allocator;
    }
    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        gpu_device_params device = {
            .physical = chosen[i], .position = i, .pretend = params->pretend, .pipeline_cache_dir = cache};
        status = gpu_device_open(&context->devices[i].gpu, context->instance, &device, error);
    }
    return status;
}

vka_status exec_context_create(vka_context **out, const vka_context_params *params, vka_error *error)
{
    vka_allocator allocator = {params->realloc, params->realloc_user};
    vka_context *context = vka_alloc(&allocator, 1, sizeof(*context));

    if (context == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a context");
    }
    context->allocator = allocator;
    context->log = (vka_log){params->log, params->log_user};
    context->submit_budget_ms = params->submit_budget_ms;
    atomic_flag_clear(&context->busy);
    vka_status status = gpu_instance_create(&context->instance, params, error);
    if (status == VKA_OK) {
        status = open_devices(context, params, error);
    }
    if (status == VKA_OK) {
        status = take_variants(context, params->variants, error);
    }
    if (status == VKA_OK) {
        status = tuned_open(context, params, error);
    }
    if (status != VKA_OK) {
        exec_context_destroy(&context);
        return status;
    }
    *out = context;
    return VKA_OK;
}

void exec_context_destroy(vka_context **context)
{
    if (context == NULL || *context == NULL) {
        return;
    }
    vka_allocator allocator = (*context)->allocator;
    (void)exec_wait_all(*context, NULL);
    for (uint32_t i = 0; (*context)->devices != NULL && i < (*context)->device_count; i++) {
        exec_device *device = &(*context)->devices[i];
        for (uint32_t s = 0; s < EXEC_SCRATCH_COUNT * EXEC_SLOTS; s++) {
            staged_destroy(&device->scratch[s / EXEC_SLOTS][s % EXEC_SLOTS]);
        }
        tile_plan_destroy(&device->plan);
        vka_free(&allocator, device->tuning_path);
        gpu_device_close(&device->gpu);
    }
    gpu_instance_destroy(&(*context)->instance);
    call_memory_free(&(*context)->call, &allocator);
    vka_free(&allocator, (*context)->devices);
    vka_free(&allocator, (*context)->variants);
    vka_free(&allocator, (*context)->tuning_dir);
    vka_free(&allocator, *context);
    *context = NULL;
}

/* Scratch tensors grow in steps, so that page tables and splits, which grow with every few decoded tokens, do not make
 * a new buffer each time. */
#define SCRATCH_GRAIN (64ull << 10)

/* X(scratch, how the host uses it, name in errors) */
#define SCRATCH_LIST(X)                                                                                                \
    X(EXEC_SCRATCH_CALL, STAGED_WRITE, "call parameters")                                                              \
    X(EXEC_SCRATCH_HIDDEN, STAGED_WRITE, "hidden states")                                                              \
    X(EXEC_SCRATCH_QKV, STAGED_NONE, "QKV rows")                                                                       \
    X(EXEC_SCRATCH_SQUARES, STAGED_READ, "sums of squares")                                                            \
    X(EXEC_SCRATCH_KV, STAGED_READ, "K and V of new tokens")                                                           \
    X(EXEC_SCRATCH_Q, STAGED_NONE, "query rows")                                                                       \
    X(EXEC_SCRATCH_ATTENTION, STAGED_NONE, "attention rows")                                                           \
    X(EXEC_SCRATCH_SPLIT, STAGED_NONE, "split attention")                                                              \
    X(EXEC_SCRATCH_PARTIAL, STAGED_READ, "partial sums")

vka_status exec_scratch_reserve(exec_device *device, exec_scratch which, uint32_t slot, uint64_t bytes,
                                vka_error *error)
{
    static const struct {
        staged_use use;
        const char *name;
    } kinds[EXEC_SCRATCH_COUNT] = {
#define SCRATCH_ROW(scratch, use, name) [scratch] = {use, name},
        SCRATCH_LIST(SCRATCH_ROW)
#undef SCRATCH_ROW
    };
    staged_tensor *tensor = &device->scratch[which][slot];
    uint64_t most = vka_caps_max_tensor(gpu_device_caps(device->gpu));
    uint64_t rounded = (bytes + SCRATCH_GRAIN - 1) / SCRATCH_GRAIN * SCRATCH_GRAIN;

    if (tensor->buffer != NULL && gpu_buffer_bytes(tensor->buffer) >= bytes) {
        return VKA_OK;
    }
    if (tensor->buffer != NULL && device->pending != 0) {
        vka_status status = exec_wait(device, device->pending, error);
        if (status != VKA_OK) {
            return status;
        }
    }
    staged_destroy(tensor);
    return staged_create(tensor, device->gpu, rounded <= most ? rounded : bytes, kinds[which].use, kinds[which].name,
                         error);
}

vka_status exec_wait(exec_device *device, uint64_t ticket, vka_error *error)
{
    if (device->pending == ticket) {
        device->pending = 0;
    }
    return gpu_wait(device->gpu, ticket, error);
}

vka_status exec_wait_all(vka_context *context, vka_error *error)
{
    vka_status first = VKA_OK;

    for (uint32_t i = 0; context->devices != NULL && i < context->device_count; i++) {
        exec_device *device = &context->devices[i];
        if (device->gpu == NULL || device->pending == 0) {
            continue;
        }
        vka_status status = exec_wait(device, device->pending, first == VKA_OK ? error : NULL);
        first = first == VKA_OK ? status : first;
    }
    return first;
}
