/* include/vkattn/context.h: the list of devices. Needs no context: an instance lives as long as the copying takes. */
#include "api/guard.h"
#include "base/error.h"
#include "vk/gpu.h"

vka_status vka_device_list(const vka_context_params *params, vka_device_info *devices, uint32_t capacity,
                           uint32_t *count, vka_error *error)
{
    vka_context_params taken = {.struct_size = sizeof(taken)};
    gpu_instance *instance = NULL;
    vka_status status = VKA_OK;

    if (!count || (capacity > 0 && !devices))
        return vka_fail(error, VKA_ERR_ARGUMENT, "count is NULL, or devices is NULL with a capacity of %u", capacity);
    if (params)
        status = guard_params(&taken, sizeof(taken), params, "vka_context_params", error);
    if (status == VKA_OK)
        status = gpu_instance_create(&instance, &taken, error);
    if (status != VKA_OK)
        return status;
    for (uint32_t i = 0; i < gpu_instance_count(instance) && i < capacity; i++)
        devices[i] = *gpu_instance_info(instance, i);
    *count = gpu_instance_count(instance);
    gpu_instance_destroy(&instance);
    return VKA_OK;
}
