/* Opening and closing a device: one queue, one timeline semaphore, a function table of its own. Features are enabled
 * exactly where the capability bit survived quirks and `pretend`, so that no shader can use what was taken away. */
#include "vk/device.h"

#include <assert.h>
#include <string.h>

vka_status gpu_on_device(const gpu_device *device, vka_status status, vka_error *error)
{
    if (error)
        error->device = (int32_t)device->position;
    return status;
}

vka_status gpu_check_lost(const gpu_device *device, vka_error *error)
{
    if (!device->lost)
        return VKA_OK;
    return vka_fail_vk(error, VK_ERROR_DEVICE_LOST, (int32_t)device->position,
                       "device '%s' was lost earlier; create a new context", device->info->name);
}

static bool has(const gpu_device *device, int cap)
{
    return (device->caps.bits & VKA_CAP_BIT(cap)) != 0;
}

static vka_status set_caps(gpu_device *device, const char *pretend, vka_error *error)
{
    uint64_t own;
    vka_status status;

    gpu_caps_fill(&device->caps, device->physical, device->info);
    device->caps.bits = gpu_quirks_apply(device->caps.bits, device->info, &device->log);
    own = device->caps.bits;
    status = gpu_pretend(&device->caps, pretend, error);
    if (status != VKA_OK)
        return gpu_on_device(device, status, error);
    device->unmapped = (own & ~device->caps.bits & VKA_CAP_BIT(VKA_CAP_HOST_CACHED)) != 0;
    return VKA_OK;
}

static vka_status create_handle(gpu_device *device, vka_error *error)
{
    const gpu_instance_table *fn = &device->instance->fn;
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = device->physical->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .timelineSemaphore = VK_TRUE,
        .shaderFloat16 = has(device, VKA_CAP_FP16),
    };
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &v12,
        .storageBuffer16BitAccess = has(device, VKA_CAP_STORAGE16),
    };
    const char *extensions[2];
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &v11,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .ppEnabledExtensionNames = extensions,
    };
    const char *missing;
    VkResult result;

    if (has(device, VKA_CAP_MEMORY_BUDGET))
        extensions[info.enabledExtensionCount++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (device->physical->has_portability_subset)
        extensions[info.enabledExtensionCount++] = "VK_KHR_portability_subset";
    result = fn->CreateDevice(device->physical->handle, &info, NULL, &device->handle);
    if (result != VK_SUCCESS) {
        device->handle = VK_NULL_HANDLE;
        return gpu_fail_vk(device, error, result, "vkCreateDevice failed on '%s'", device->info->name);
    }
    missing = gpu_load_device(&device->fn, fn, device->handle);
    if (missing)
        return gpu_fail(device, error, VKA_ERR_VULKAN, "device '%s' does not provide %s", device->info->name, missing);
    device->fn.GetDeviceQueue(device->handle, device->physical->queue_family, 0, &device->queue);
    return VKA_OK;
}

static vka_status create_timeline(gpu_device *device, vka_error *error)
{
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkResult result = device->fn.CreateSemaphore(device->handle, &info, NULL, &device->timeline);

    if (result == VK_SUCCESS)
        return VKA_OK;
    device->timeline = VK_NULL_HANDLE;
    return gpu_fail_vk(device, error, result, "vkCreateSemaphore failed on '%s'", device->info->name);
}

/* Software devices keep nothing useful in their pipeline caches, so no files are made for them. */
static vka_status set_cache_dir(gpu_device *device, const gpu_device_params *params, vka_error *error)
{
    size_t size;

    if (!params->pipeline_cache_dir || (device->info->type == VKA_DEVICE_CPU && !params->cache_software_pipelines))
        return VKA_OK;
    size = strlen(params->pipeline_cache_dir) + 1;
    device->cache_dir = vka_alloc(&device->allocator, size, 1);
    if (!device->cache_dir)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no memory for the pipeline cache's path");
    memcpy(device->cache_dir, params->pipeline_cache_dir, size);
    return VKA_OK;
}

vka_status gpu_device_open(gpu_device **out, gpu_instance *instance, const gpu_device_params *params, vka_error *error)
{
    const vka_device_info *info = gpu_instance_info(instance, params->physical);
    gpu_device *device;
    vka_status status;

    if (!info)
        return vka_fail(error, VKA_ERR_ARGUMENT, "there is no device %u; there are %u", params->physical,
                        instance->count);
    if (!info->usable)
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "device %u '%s' cannot be used: %s", info->index, info->name,
                        info->note);
    device = vka_alloc(&instance->allocator, 1, sizeof(*device));
    if (!device)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for device '%s'", info->name);
    device->instance = instance;
    device->physical = &instance->physical[params->physical];
    device->info = info;
    device->allocator = instance->allocator;
    device->log = instance->log;
    device->position = params->position;
    status = set_caps(device, params->pretend, error);
    if (status == VKA_OK)
        status = set_cache_dir(device, params, error);
    if (status == VKA_OK)
        status = create_handle(device, error);
    if (status == VKA_OK)
        status = create_timeline(device, error);
    if (status != VKA_OK) {
        gpu_device_close(&device);
        return status;
    }
    *out = device;
    return VKA_OK;
}

void gpu_device_close(gpu_device **device)
{
    gpu_device *dead = device ? *device : NULL;
    vka_allocator allocator;

    if (!dead)
        return;
    allocator = dead->allocator;
    gpu_settle(dead);
    gpu_commands_destroy(dead);
    gpu_pipelines_destroy(dead);
    assert(!dead->blocks); /* every buffer is destroyed before its device */
    if (dead->timeline)
        dead->fn.DestroySemaphore(dead->handle, dead->timeline, NULL);
    if (dead->handle && dead->fn.DestroyDevice)
        dead->fn.DestroyDevice(dead->handle, NULL);
    vka_free(&allocator, dead->cache_dir);
    vka_free(&allocator, dead);
    *device = NULL;
}

const vka_caps *gpu_device_caps(const gpu_device *device)
{
    return &device->caps;
}

const vka_device_info *gpu_device_info(const gpu_device *device)
{
    return device->info;
}

void gpu_device_memory(const gpu_device *device, vka_memory_use *use)
{
    *use = device->use;
    use->available_bytes = gpu_memory_available(device);
}
