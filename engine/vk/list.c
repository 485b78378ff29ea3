/* vka_device_list: an instance for as long as it takes to copy the facts. */
#include "base/error.h"
#include "vk/gpu.h"

vka_status vka_device_list(const vka_context_params *params, vka_device_info *devices, uint32_t capacity,
                           uint32_t *count, vka_error *error)
{
    const vka_context_params none = {.struct_size = sizeof(none)};
    gpu_instance *instance = NULL;
    vka_status status;

    if (!count || (capacity > 0 && !devices))
        return vka_fail(error, VKA_ERR_ARGUMENT, "count is NULL, or devices is NULL with a capacity of %u", capacity);
    status = gpu_instance_create(&instance, params ? params : &none, error);
    if (status != VKA_OK)
        return status;
    for (uint32_t i = 0; i < gpu_instance_count(instance) && i < capacity; i++)
        devices[i] = *gpu_instance_info(instance, i);
    *count = gpu_instance_count(instance);
    gpu_instance_destroy(&instance);
    return VKA_OK;
}
