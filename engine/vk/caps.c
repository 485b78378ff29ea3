/* Capabilities from a device's facts. A bit is set only when device.c enables the feature behind it. */
#include "vk/instance.h"

/* A driver may fail at its own limit (SwiftShader does). */
enum { ALLOCATION_MARGIN = 65536 };

static uint64_t if_set(bool condition, int cap)
{
    return condition ? VKA_CAP_BIT(cap) : 0;
}

/* Only where device and host share memory is it fast for both; on a discrete GPU such a type is far from the shaders.
 */
static bool has_cached_device_memory(const gpu_physical *physical, vka_device_type type)
{
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

    if (type != VKA_DEVICE_CPU && type != VKA_DEVICE_INTEGRATED)
        return false;
    for (uint32_t i = 0; i < physical->memory.memoryTypeCount; i++)
        if ((physical->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return true;
    return false;
}

/* VKA_CAP_COOPMAT tells of the extension only: no kernel uses it yet, so device.c enables nothing. */
void gpu_caps_fill(vka_caps *caps, const gpu_physical *physical, const vka_device_info *info)
{
    const VkPhysicalDeviceLimits *limits = &physical->limits;

    *caps = (vka_caps){
        .bits = if_set(physical->has_float16, VKA_CAP_FP16) | if_set(physical->has_storage16, VKA_CAP_STORAGE16) |
                if_set(physical->has_subgroup_add, VKA_CAP_SUBGROUP_ADD) |
                if_set(physical->has_texel_formats, VKA_CAP_TEXEL) |
                if_set(physical->has_memory_budget, VKA_CAP_MEMORY_BUDGET) |
                if_set(physical->has_cooperative_matrix, VKA_CAP_COOPMAT) |
                if_set(info->timestamp_bits > 0, VKA_CAP_TIMESTAMPS) |
                if_set(has_cached_device_memory(physical, info->type), VKA_CAP_HOST_CACHED) |
                if_set(info->subgroup_size == 8, VKA_CAP_SUBGROUP8) |
                if_set(info->subgroup_size == 4 && physical->has_quad_operations, VKA_CAP_QUADS),
        .type = info->type,
        .subgroup_size = info->subgroup_size,
        .max_invocations = limits->maxComputeWorkGroupInvocations,
        .shared_bytes = limits->maxComputeSharedMemorySize,
        .storage_buffers = limits->maxPerStageDescriptorStorageBuffers,
        .push_bytes = limits->maxPushConstantsSize,
        .texel_elements = limits->maxTexelBufferElements,
        .texel_alignment = (uint32_t)limits->minTexelBufferOffsetAlignment,
        .max_range = limits->maxStorageBufferRange,
        .max_buffer = info->max_buffer_bytes,
        .max_alloc = info->max_allocation_bytes,
    };
    for (int axis = 0; axis < 3; axis++) {
        caps->max_local_size[axis] = limits->maxComputeWorkGroupSize[axis];
        caps->max_groups[axis] = limits->maxComputeWorkGroupCount[axis];
    }
    if (caps->max_alloc > ALLOCATION_MARGIN)
        caps->max_alloc -= ALLOCATION_MARGIN;
}
