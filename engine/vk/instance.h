/* Inside vk/: an instance and what it knows of each physical device. */
#ifndef VKA_VK_INSTANCE_H
#define VKA_VK_INSTANCE_H

#include "base/library.h"
#include "vk/api.h"
#include "vk/gpu.h"

#define GPU_API_VERSION VK_API_VERSION_1_2 /* nothing from 1.3 is called */
#define GPU_NO_QUEUE    UINT32_MAX

/* Facts of a physical device that vka_device_info does not carry; read once. */
typedef struct gpu_physical {
    VkPhysicalDevice handle;
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family; /* GPU_NO_QUEUE: none can compute */
    bool has_memory_budget;
    bool has_portability_subset;
    bool has_cooperative_matrix;
    bool has_timeline;
    bool has_float16;
    bool has_storage16;
    bool has_subgroup_add;    /* arithmetic and shuffle in compute shaders */
    bool has_quad_operations; /* in compute shaders */
    bool has_texel_formats;
} gpu_physical;

struct gpu_instance {
    vka_allocator allocator;
    vka_log log;
    vka_library library; /* not loaded when the host gave its own vkGetInstanceProcAddr */
    gpu_instance_table fn;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    uint32_t count;
    gpu_physical *physical; /* [count] */
    vka_device_info *info;  /* [count] */
};

/* Fills instance->physical and instance->info (vk/enumerate.c). */
vka_status gpu_enumerate(gpu_instance *instance, vka_error *error);

/* caps.c: what the device can do, before quirks and `pretend`. Pure. */
void gpu_caps_fill(vka_caps *caps, const gpu_physical *physical, const vka_device_info *info);

/* quirks.c: `bits` without those known to be wrong on this device; says on `log` what was cleared and why. Pure. */
uint64_t gpu_quirks_apply(uint64_t bits, const vka_device_info *info, const vka_log *log);

#endif
