/* Reads the facts of every physical device, usable or not: a listing must show the unusable ones with the reason. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "vk/instance.h"

typedef struct extension_set {
    bool pci_bus_info;
    bool memory_budget;
    bool portability_subset;
    bool maintenance4;
    bool cooperative_matrix;
} extension_set;

static vka_status read_extensions(const gpu_instance *instance, VkPhysicalDevice handle, extension_set *set,
                                  vka_error *error)
{
    VkExtensionProperties *list = NULL;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumerateDeviceExtensionProperties(handle, NULL, &count, NULL);

    *set = (extension_set){0};
    if (result == VK_SUCCESS) {
        list = vka_alloc(&instance->allocator, count, sizeof(*list));
        if (!list)
            return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u extension names", count);
        result = instance->fn.EnumerateDeviceExtensionProperties(handle, NULL, &count, list);
    }
    if (result < VK_SUCCESS) {
        vka_free(&instance->allocator, list);
        return vka_fail_vk(error, result, -1, "vkEnumerateDeviceExtensionProperties failed");
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = list[i].extensionName;

        set->pci_bus_info |= strcmp(name, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) == 0;
        set->memory_budget |= strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0;
        set->portability_subset |= strcmp(name, "VK_KHR_portability_subset") == 0; /* named in a beta header only */
        set->maintenance4 |= strcmp(name, VK_KHR_MAINTENANCE_4_EXTENSION_NAME) == 0;
        set->cooperative_matrix |= strcmp(name, "VK_KHR_cooperative_matrix") == 0; /* newer than Debian's headers */
    }
    vka_free(&instance->allocator, list);
    return VKA_OK;
}

static vka_device_type type_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return VKA_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return VKA_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return VKA_DEVICE_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return VKA_DEVICE_CPU;
    default:
        return VKA_DEVICE_OTHER;
    }
}

/* A family that computes but does not draw keeps out of the way of a desktop and is often under a milder watchdog;
 * time stamps count for more. */
static vka_status read_queues(const gpu_instance *instance, gpu_physical *physical, vka_device_info *info,
                              vka_error *error)
{
    VkQueueFamilyProperties *families;
    uint32_t count = 0;
    int best = 0;

    physical->queue_family = GPU_NO_QUEUE;
    instance->fn.GetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, NULL);
    families = vka_alloc(&instance->allocator, count, sizeof(*families));
    if (!families)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u queue families", count);
    instance->fn.GetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        int score = 1 + (families[i].timestampValidBits ? 2 : 0) + (flags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);

        if (families[i].queueCount == 0 || !(flags & VK_QUEUE_COMPUTE_BIT) || score <= best)
            continue;
        best = score;
        physical->queue_family = i;
        info->timestamp_bits = physical->limits.timestampPeriod > 0 ? families[i].timestampValidBits : 0;
    }
    vka_free(&instance->allocator, families);
    return VKA_OK;
}

static void read_memory(const gpu_instance *instance, gpu_physical *physical, vka_device_info *info)
{
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};

    instance->fn.GetPhysicalDeviceMemoryProperties2(physical->handle, &memory);
    physical->memory = memory.memoryProperties;
    for (uint32_t i = 0; i < physical->memory.memoryHeapCount; i++)
        if (physical->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            info->memory_bytes += physical->memory.memoryHeaps[i].size;
}

static void read_features(const gpu_instance *instance, gpu_physical *physical)
{
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            .pNext = &v12};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11};

    instance->fn.GetPhysicalDeviceFeatures2(physical->handle, &features);
    physical->has_timeline = v12.timelineSemaphore;
    physical->has_float16 = v12.shaderFloat16;
    physical->has_storage16 = v11.storageBuffer16BitAccess;
}

static void read_formats(const gpu_instance *instance, gpu_physical *physical)
{
    static const VkFormat formats[] = {VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R32G32B32A32_UINT};

    physical->has_texel_formats = true;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        VkFormatProperties properties;

        instance->fn.GetPhysicalDeviceFormatProperties(physical->handle, formats[i], &properties);
        if (!(properties.bufferFeatures & VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT))
            physical->has_texel_formats = false;
    }
}

static void set_subgroup(gpu_physical *physical, const VkPhysicalDeviceSubgroupProperties *subgroup)
{
    const VkSubgroupFeatureFlags needed =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;

    bool in_compute = (subgroup->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;

    physical->has_subgroup_add = (subgroup->supportedOperations & needed) == needed && in_compute;
    physical->has_quad_operations = (subgroup->supportedOperations & VK_SUBGROUP_FEATURE_QUAD_BIT) != 0 && in_compute;
}

static void set_limits(gpu_physical *physical, vka_device_info *info, const VkPhysicalDeviceLimits *limits)
{
    physical->limits = *limits;
    info->max_storage_range = limits->maxStorageBufferRange;
    info->max_workgroup_invocations = limits->maxComputeWorkGroupInvocations;
    info->shared_memory_bytes = limits->maxComputeSharedMemorySize;
}

/* What needs a device of version 1.2, and extensions where present. */
static void read_properties2(const gpu_instance *instance, gpu_physical *physical, vka_device_info *info,
                             const extension_set *extensions)
{
    VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                               .pNext = &ids};
    VkPhysicalDeviceSubgroupProperties subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                   .pNext = &driver};
    VkPhysicalDeviceMaintenance3Properties allocation = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &subgroup};
    VkPhysicalDeviceMaintenance4Properties buffer = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES, .maxBufferSize = UINT64_MAX};
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {.sType =
                                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &allocation};

    if (extensions->maintenance4) {
        buffer.pNext = properties.pNext;
        properties.pNext = &buffer;
    }
    if (extensions->pci_bus_info) {
        pci.pNext = properties.pNext;
        properties.pNext = &pci;
    }
    instance->fn.GetPhysicalDeviceProperties2(physical->handle, &properties);
    snprintf(info->driver_name, sizeof(info->driver_name), "%s", driver.driverName);
    snprintf(info->driver_info, sizeof(info->driver_info), "%s", driver.driverInfo);
    info->driver_id = driver.driverID;
    memcpy(info->device_uuid, ids.deviceUUID, sizeof(info->device_uuid));
    memcpy(info->driver_uuid, ids.driverUUID, sizeof(info->driver_uuid));
    info->has_pci = extensions->pci_bus_info;
    info->pci_domain = pci.pciDomain;
    info->pci_bus = pci.pciBus;
    info->pci_device = pci.pciDevice;
    info->pci_function = pci.pciFunction;
    info->max_buffer_bytes = buffer.maxBufferSize;
    info->max_allocation_bytes = allocation.maxMemoryAllocationSize;
    info->subgroup_size = subgroup.subgroupSize;
    set_subgroup(physical, &subgroup);
}

static void judge(const gpu_physical *physical, vka_device_info *info)
{
    if (info->api_version < GPU_API_VERSION)
        snprintf(info->note, sizeof(info->note), "its driver has Vulkan %u.%u; 1.2 is needed",
                 VK_API_VERSION_MAJOR(info->api_version), VK_API_VERSION_MINOR(info->api_version));
    else if (!physical->has_timeline)
        snprintf(info->note, sizeof(info->note), "its driver lacks the timelineSemaphore feature");
    else if (physical->queue_family == GPU_NO_QUEUE)
        snprintf(info->note, sizeof(info->note), "it has no queue that can compute");
    else
        info->usable = 1;
}

static vka_status read_device(const gpu_instance *instance, uint32_t index, VkPhysicalDevice handle, vka_error *error)
{
    gpu_physical *physical = &instance->physical[index];
    vka_device_info *info = &instance->info[index];
    VkPhysicalDeviceProperties properties;
    extension_set extensions;
    vka_status status = read_extensions(instance, handle, &extensions, error);

    if (status != VKA_OK)
        return status;
    instance->fn.GetPhysicalDeviceProperties(handle, &properties);
    physical->handle = handle;
    physical->has_memory_budget = extensions.memory_budget;
    physical->has_portability_subset = extensions.portability_subset;
    physical->has_cooperative_matrix = extensions.cooperative_matrix;
    info->index = index;
    info->duplicate_of = -1;
    info->type = type_of(properties.deviceType);
    snprintf(info->name, sizeof(info->name), "%s", properties.deviceName);
    info->driver_version = properties.driverVersion;
    info->api_version = properties.apiVersion;
    info->vendor_id = properties.vendorID;
    info->device_id = properties.deviceID;
    set_limits(physical, info, &properties.limits);
    status = read_queues(instance, physical, info, error);
    if (status == VKA_OK && properties.apiVersion >= GPU_API_VERSION) {
        read_properties2(instance, physical, info, &extensions);
        read_memory(instance, physical, info);
        read_features(instance, physical);
        read_formats(instance, physical);
    }
    judge(physical, info);
    return status;
}

static vka_status read_devices(gpu_instance *instance, VkPhysicalDevice *handles, uint32_t count, vka_error *error)
{
    VkResult result = instance->fn.EnumeratePhysicalDevices(instance->handle, &count, handles);

    if (result < VK_SUCCESS)
        return vka_fail_vk(error, result, -1, "vkEnumeratePhysicalDevices failed");
    instance->physical = vka_alloc(&instance->allocator, count, sizeof(*instance->physical));
    instance->info = vka_alloc(&instance->allocator, count, sizeof(*instance->info));
    if (!instance->physical || !instance->info)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the facts of %u devices", count);
    for (uint32_t i = 0; i < count; i++) {
        vka_status status = read_device(instance, i, handles[i], error);

        if (status != VKA_OK)
            return status;
    }
    instance->count = count;
    return VKA_OK;
}

vka_status gpu_enumerate(gpu_instance *instance, vka_error *error)
{
    VkPhysicalDevice *handles;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumeratePhysicalDevices(instance->handle, &count, NULL);
    vka_status status;

    /* So some loaders say that no driver could be started; the caller reports a count of 0. */
    if (result == VK_ERROR_INITIALIZATION_FAILED)
        return VKA_OK;
    if (result < VK_SUCCESS)
        return vka_fail_vk(error, result, -1, "vkEnumeratePhysicalDevices failed");
    handles = vka_alloc(&instance->allocator, count, sizeof(*handles));
    if (!handles)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the handles of %u devices", count);
    status = read_devices(instance, handles, count, error);
    vka_free(&instance->allocator, handles);
    return status;
}
