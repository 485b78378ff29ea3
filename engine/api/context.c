/* include/vkattn/context.h */
#include "vkattn/context.h"

#include <string.h>

#include "api/guard.h"
#include "base/error.h"

vka_status vka_context_create(vka_context **out, const vka_context_params *params, vka_error *error)
{
    static const vka_context_params defaults = {.struct_size = sizeof(defaults)};
    vka_context_params taken;

    if (out == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "out is NULL");
    }
    vka_status status =
        guard_params(&taken, sizeof(taken), params != NULL ? params : &defaults, "vka_context_params", error);
    return status == VKA_OK ? exec_context_create(out, &taken, error) : status;
}

void vka_context_destroy(vka_context **context)
{
    exec_context_destroy(context);
}

uint32_t vka_context_device_count(const vka_context *context)
{
    return context != NULL ? context->device_count : 0;
}

const vka_device_info *vka_context_device(const vka_context *context, uint32_t device)
{
    return device < vka_context_device_count(context) ? gpu_device_info(context->devices[device].gpu) : NULL;
}

static vka_status check_device(const vka_context *context, uint32_t device, const void *out, vka_error *error)
{
    if (context == NULL || out == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", context == NULL ? "context" : "the result");
    }
    if (device >= context->device_count) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u, the context has %u", device, context->device_count);
    }
    return VKA_OK;
}

vka_status vka_context_memory(const vka_context *context, uint32_t device, vka_memory_use *use, vka_error *error)
{
    vka_context *busy = (vka_context *)context; /* its state stays; contexts are never made const */
    vka_status status = check_device(context, device, use, error);

    if (status == VKA_OK) {
        status = guard_enter(busy, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    gpu_device_memory(context->devices[device].gpu, use);
    guard_leave(busy);
    return VKA_OK;
}

uint32_t vka_variant_count(void)
{
    return vka_variant_rows();
}

vka_status vka_context_variant(const vka_context *context, uint32_t device, uint32_t index, vka_variant_info *info,
                               vka_error *error)
{
    vka_status status = check_device(context, device, info, error);

    if (status != VKA_OK) {
        return status;
    }
    if (index >= vka_variant_rows()) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "variant is %u, there are %u", index, vka_variant_rows());
    }
    const vka_variant *row = vka_variant_row(index);
    memset(info, 0, sizeof(*info));
    info->name = row->name;
    info->kernel = vka_kernel_name(row->kernel);
    info->dtype = row->dtype == VKA_DTYPE_DEFAULT ? "any" : vka_dtype_name(row->dtype);
    const exec_device *on = &context->devices[device];
    info->selected = tuning_reason(index, gpu_device_caps(on->gpu), context->variants, &on->tuned, info->reason,
                                   sizeof(info->reason));
    return VKA_OK;
}

uint32_t vka_context_has_capability(const vka_context *context, uint32_t device, uint32_t index)
{
    if (context == NULL || device >= context->device_count || index >= VKA_CAP_COUNT) {
        return 0;
    }
    return (gpu_device_caps(context->devices[device].gpu)->bits & VKA_CAP_BIT(index)) != 0;
}
