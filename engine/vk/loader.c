/* Filling the function tables. The lists are in api.h. Loading goes on after a miss, so that what was created can be
 * destroyed. */
#include "vk/api.h"

const char *gpu_load_global(gpu_instance_table *table, vka_get_proc_fn get)
{
    const char *missing = NULL;

#define LOAD(name)                                                                                                     \
    table->name = (PFN_vk##name)get(NULL, "vk" #name);                                                                 \
    if (!table->name && !missing)                                                                                      \
        missing = "vk" #name;
    GPU_GLOBAL_FUNCTIONS(LOAD)
#undef LOAD
    return missing;
}

#define LOAD(name)                                                                                                     \
    table->name = (PFN_vk##name)get(instance, "vk" #name);                                                             \
    if (!table->name && !missing)                                                                                      \
        missing = "vk" #name;

const char *gpu_load_instance(gpu_instance_table *table, vka_get_proc_fn get, VkInstance instance)
{
    const char *missing = NULL;

    GPU_INSTANCE_FUNCTIONS(LOAD)
    return missing;
}

const char *gpu_load_debug(gpu_instance_table *table, vka_get_proc_fn get, VkInstance instance)
{
    const char *missing = NULL;

    GPU_DEBUG_FUNCTIONS(LOAD)
    return missing;
}

#undef LOAD

const char *gpu_load_device(gpu_device_table *table, const gpu_instance_table *instance, VkDevice device)
{
    const char *missing = NULL;

#define LOAD(name)                                                                                                     \
    table->name = (PFN_vk##name)instance->GetDeviceProcAddr(device, "vk" #name);                                       \
    if (!table->name && !missing)                                                                                      \
        missing = "vk" #name;
    GPU_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    return missing;
}
