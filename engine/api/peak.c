/* include/vkattn/peak.h */
#include "vkattn/peak.h"

#include "api/guard.h"
#include "base/error.h"
#include "exec/peak.h"

const char *vka_peak_name(vka_peak_kind kind)
{
    static const char *const names[VKA_PEAK_COUNT] = {
        [VKA_PEAK_FMA_F32] = "fma.f32", [VKA_PEAK_READ] = "read", [VKA_PEAK_COPY] = "copy"};

    return (unsigned)kind < VKA_PEAK_COUNT ? names[kind] : "unknown";
}

vka_status vka_measure_peak(vka_context *context, uint32_t device, vka_peak_kind kind, vka_peak *peak, vka_error *error)
{
    if (context == NULL || peak == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", context == NULL ? "context" : "peak");
    }
    if (device >= context->device_count || (unsigned)kind >= VKA_PEAK_COUNT) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u and kind %d: there are %u devices and %d kinds", device,
                        (int)kind, context->device_count, VKA_PEAK_COUNT);
    }
    vka_status status = guard_enter(context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = exec_measure_peak(context, device, kind, peak, error);
    guard_leave(context);
    return status;
}
