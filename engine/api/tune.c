/* include/vkattn/tune.h */
#include "vkattn/tune.h"

#include "api/guard.h"
#include "base/error.h"
#include "exec/tune.h"
#include "exec/tuned.h"

static vka_status check_device(const vka_context *context, uint32_t device, vka_error *error)
{
    if (context == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "context is NULL");
    }
    if (device >= context->device_count) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u, the context has %u", device, context->device_count);
    }
    return VKA_OK;
}

vka_status vka_tune(vka_context *context, const vka_tune_params *params, vka_tune_result_fn results, void *results_user,
                    vka_error *error)
{
    vka_tune_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_tune_params", error);

    if (status == VKA_OK) {
        status = check_device(context, taken.device, error);
    }
    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_tune(context, &taken, results, results_user, error);
    guard_leave(context);
    return status;
}

vka_status vka_tune_forget(vka_context *context, uint32_t device, vka_error *error)
{
    vka_status status = check_device(context, device, error);

    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = tuned_forget(context, device, error);
    guard_leave(context);
    return status;
}

vka_status vka_tuned_list(const vka_context *context, uint32_t device, vka_tuned_info *choices, uint32_t capacity,
                          uint32_t *count, vka_error *error)
{
    vka_status status = check_device(context, device, error);

    if (status != VKA_OK) {
        return status;
    }
    if (count == NULL || (choices == NULL && capacity > 0)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", count == NULL ? "count" : "choices");
    }
    *count = tuned_list(context, device, choices, capacity);
    return VKA_OK;
}

const char *vka_tuning_file(const vka_context *context, uint32_t device)
{
    return context != NULL && device < context->device_count ? context->devices[device].tuning_path : NULL;
}
