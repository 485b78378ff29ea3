/* The shim's wrappers: one per function that the engine calls. A function missing here does not link, because the
 * engine's own lists make the look-up at the end. */
#include <string.h>

#include "support/shim_state.h"

#define VALUES(...) ((const uint64_t[4]){__VA_ARGS__})

/* The kinds of wrappers; `of` is a handle that tells the device. */
#define VOID_CALL(table, name, of, values, params, args)                                                               \
    static VKAPI_ATTR void VKAPI_CALL shim_##name params                                                               \
    {                                                                                                                  \
        shim_enter("vk" #name, of, values, NULL);                                                                      \
        shim.table.name args;                                                                                          \
    }
#define RESULT_CALL(table, name, of, values, params, args)                                                             \
    static VKAPI_ATTR VkResult VKAPI_CALL shim_##name params                                                           \
    {                                                                                                                  \
        VkResult result;                                                                                               \
                                                                                                                       \
        return shim_enter("vk" #name, of, values, &result) ? shim.table.name args : result;                            \
    }
#define CREATE_CALL(table, name, of, values, params, args)                                                             \
    static VKAPI_ATTR VkResult VKAPI_CALL shim_##name params                                                           \
    {                                                                                                                  \
        VkResult result;                                                                                               \
                                                                                                                       \
        if (shim_enter("vk" #name, of, values, &result))                                                               \
            result = shim.table.name args;                                                                             \
        if (result == VK_SUCCESS)                                                                                      \
            shim_created();                                                                                            \
        return result;                                                                                                 \
    }
#define DESTROY_CALL(table, name, of, object, params, args)                                                            \
    static VKAPI_ATTR void VKAPI_CALL shim_##name params                                                               \
    {                                                                                                                  \
        shim_enter("vk" #name, of, VALUES(0), NULL);                                                                   \
        shim_destroyed((object) != VK_NULL_HANDLE);                                                                    \
        shim.table.name args;                                                                                          \
    }

/* Objects that are made and destroyed in the ordinary way. */
#define DEVICE_OBJECT(type, values)                                                                                    \
    CREATE_CALL(device, Create##type, d, values,                                                                       \
                (VkDevice d, const Vk##type##CreateInfo *info, const VkAllocationCallbacks *a, Vk##type *out),         \
                (d, info, a, out))                                                                                     \
    DESTROY_CALL(device, Destroy##type, d, object, (VkDevice d, Vk##type object, const VkAllocationCallbacks *a),      \
                 (d, object, a))

DEVICE_OBJECT(Buffer, VALUES(info->size))
DEVICE_OBJECT(BufferView, VALUES(info->range))
DEVICE_OBJECT(CommandPool, VALUES(0))
DEVICE_OBJECT(DescriptorPool, VALUES(info->maxSets))
DEVICE_OBJECT(DescriptorSetLayout, VALUES(info->bindingCount))
DEVICE_OBJECT(PipelineCache, VALUES(info->initialDataSize))
DEVICE_OBJECT(PipelineLayout, VALUES(0))
DEVICE_OBJECT(QueryPool, VALUES(info->queryCount))
DEVICE_OBJECT(Semaphore, VALUES(0))
DEVICE_OBJECT(ShaderModule, VALUES(info->codeSize))

CREATE_CALL(device, CreateComputePipelines, d, VALUES(count),
            (VkDevice d, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *infos,
             const VkAllocationCallbacks *a, VkPipeline *out),
            (d, cache, count, infos, a, out))
DESTROY_CALL(device, DestroyPipeline, d, object, (VkDevice d, VkPipeline object, const VkAllocationCallbacks *a),
             (d, object, a))

RESULT_CALL(device, AllocateDescriptorSets, d, VALUES(0),
            (VkDevice d, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out), (d, info, out))
RESULT_CALL(device, BeginCommandBuffer, c, VALUES(0), (VkCommandBuffer c, const VkCommandBufferBeginInfo *info),
            (c, info))
RESULT_CALL(device, BindBufferMemory, d, VALUES(offset),
            (VkDevice d, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset), (d, buffer, memory, offset))
RESULT_CALL(device, DeviceWaitIdle, d, VALUES(0), (VkDevice d), (d))
RESULT_CALL(device, EndCommandBuffer, c, VALUES(0), (VkCommandBuffer c), (c))
RESULT_CALL(device, FlushMappedMemoryRanges, d, VALUES(ranges->offset, ranges->size),
            (VkDevice d, uint32_t count, const VkMappedMemoryRange *ranges), (d, count, ranges))
RESULT_CALL(device, InvalidateMappedMemoryRanges, d, VALUES(ranges->offset, ranges->size),
            (VkDevice d, uint32_t count, const VkMappedMemoryRange *ranges), (d, count, ranges))
RESULT_CALL(device, GetPipelineCacheData, d, VALUES(0), (VkDevice d, VkPipelineCache cache, size_t *size, void *data),
            (d, cache, size, data))
RESULT_CALL(device, GetQueryPoolResults, d, VALUES(first, count),
            (VkDevice d, VkQueryPool pool, uint32_t first, uint32_t count, size_t size, void *data, VkDeviceSize stride,
             VkQueryResultFlags flags),
            (d, pool, first, count, size, data, stride, flags))
RESULT_CALL(device, GetSemaphoreCounterValue, d, VALUES(0), (VkDevice d, VkSemaphore semaphore, uint64_t *value),
            (d, semaphore, value))
RESULT_CALL(device, ResetCommandPool, d, VALUES(0), (VkDevice d, VkCommandPool pool, VkCommandPoolResetFlags flags),
            (d, pool, flags))
RESULT_CALL(device, ResetDescriptorPool, d, VALUES(0),
            (VkDevice d, VkDescriptorPool pool, VkDescriptorPoolResetFlags flags), (d, pool, flags))
RESULT_CALL(device, WaitSemaphores, d, VALUES(info->pValues[0]),
            (VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout), (d, info, timeout))

VOID_CALL(device, CmdBindDescriptorSets, c, VALUES(0),
          (VkCommandBuffer c, VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t first, uint32_t count,
           const VkDescriptorSet *sets, uint32_t offset_count, const uint32_t *offsets),
          (c, point, layout, first, count, sets, offset_count, offsets))
VOID_CALL(device, CmdBindPipeline, c, VALUES(0), (VkCommandBuffer c, VkPipelineBindPoint point, VkPipeline pipeline),
          (c, point, pipeline))
VOID_CALL(device, CmdCopyBuffer, c, VALUES(regions->size, regions->srcOffset, regions->dstOffset),
          (VkCommandBuffer c, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy *regions),
          (c, from, to, count, regions))
VOID_CALL(device, CmdDispatch, c, VALUES(x, y, z), (VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z),
          (c, x, y, z))
VOID_CALL(device, CmdFillBuffer, c, VALUES(bytes, offset, word),
          (VkCommandBuffer c, VkBuffer to, VkDeviceSize offset, VkDeviceSize bytes, uint32_t word),
          (c, to, offset, bytes, word))
VOID_CALL(device, CmdPipelineBarrier, c,
          VALUES(from, to, memory_count ? memory->srcAccessMask : 0, memory_count ? memory->dstAccessMask : 0),
          (VkCommandBuffer c, VkPipelineStageFlags from, VkPipelineStageFlags to, VkDependencyFlags flags,
           uint32_t memory_count, const VkMemoryBarrier *memory, uint32_t buffer_count,
           const VkBufferMemoryBarrier *buffers, uint32_t image_count, const VkImageMemoryBarrier *images),
          (c, from, to, flags, memory_count, memory, buffer_count, buffers, image_count, images))
VOID_CALL(device, CmdPushConstants, c, VALUES(size),
          (VkCommandBuffer c, VkPipelineLayout layout, VkShaderStageFlags stages, uint32_t offset, uint32_t size,
           const void *data),
          (c, layout, stages, offset, size, data))
VOID_CALL(device, CmdResetQueryPool, c, VALUES(first, count),
          (VkCommandBuffer c, VkQueryPool pool, uint32_t first, uint32_t count), (c, pool, first, count))
VOID_CALL(device, CmdWriteTimestamp, c, VALUES(query),
          (VkCommandBuffer c, VkPipelineStageFlagBits stage, VkQueryPool pool, uint32_t query), (c, stage, pool, query))
VOID_CALL(device, UpdateDescriptorSets, d, VALUES(write_count),
          (VkDevice d, uint32_t write_count, const VkWriteDescriptorSet *writes, uint32_t copy_count,
           const VkCopyDescriptorSet *copies),
          (d, write_count, writes, copy_count, copies))

VOID_CALL(instance, GetPhysicalDeviceFormatProperties, NULL, VALUES((uint64_t)format),
          (VkPhysicalDevice p, VkFormat format, VkFormatProperties *out), (p, format, out))
VOID_CALL(instance, GetPhysicalDeviceQueueFamilyProperties, NULL, VALUES(0),
          (VkPhysicalDevice p, uint32_t *count, VkQueueFamilyProperties *out), (p, count, out))
RESULT_CALL(instance, EnumerateInstanceVersion, NULL, VALUES(0), (uint32_t * version), (version))
CREATE_CALL(instance, CreateDebugUtilsMessengerEXT, NULL, VALUES(0),
            (VkInstance instance, const VkDebugUtilsMessengerCreateInfoEXT *info, const VkAllocationCallbacks *a,
             VkDebugUtilsMessengerEXT *out),
            (instance, info, a, out))
DESTROY_CALL(instance, DestroyDebugUtilsMessengerEXT, NULL, object,
             (VkInstance instance, VkDebugUtilsMessengerEXT object, const VkAllocationCallbacks *a),
             (instance, object, a))
DESTROY_CALL(instance, DestroyInstance, NULL, object, (VkInstance object, const VkAllocationCallbacks *a), (object, a))

/* ---- what needs more than that ---- */

static VKAPI_ATTR VkResult VKAPI_CALL shim_AllocateCommandBuffers(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                                                  VkCommandBuffer *out)
{
    VkResult result;

    if (!shim_enter("vkAllocateCommandBuffers", d, VALUES(info->commandBufferCount), &result))
        return result;
    result = shim.device.AllocateCommandBuffers(d, info, out);
    for (uint32_t i = 0; i < info->commandBufferCount && result == VK_SUCCESS; i++)
        shim_adopt(out[i], d);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL shim_GetDeviceQueue(VkDevice d, uint32_t family, uint32_t index, VkQueue *out)
{
    shim_enter("vkGetDeviceQueue", d, VALUES(family, index), NULL);
    shim.device.GetDeviceQueue(d, family, index, out);
    shim_adopt(*out, d);
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                                       VkFence fence)
{
    const VkTimelineSemaphoreSubmitInfo *timeline = infos->pNext;
    VkResult result;

    return shim_enter("vkQueueSubmit", queue, VALUES(timeline->pSignalSemaphoreValues[0]), &result)
               ? shim.device.QueueSubmit(queue, count, infos, fence)
               : result;
}

static void poison_memory(VkDevice d, VkDeviceMemory memory, VkDeviceSize bytes)
{
    PFN_vkUnmapMemory unmap = (PFN_vkUnmapMemory)shim.instance.GetDeviceProcAddr(d, "vkUnmapMemory");
    void *mapped;

    if (shim.device.MapMemory(d, memory, 0, bytes, 0, &mapped) == VK_SUCCESS) {
        memset(mapped, 0xff, bytes);
        unmap(d, memory);
    }
}

/* Memory types of the disguise: the real ones, then a copy of each for the host. */
static VKAPI_ATTR VkResult VKAPI_CALL shim_AllocateMemory(VkDevice d, const VkMemoryAllocateInfo *info,
                                                          const VkAllocationCallbacks *a, VkDeviceMemory *out)
{
    VkMemoryAllocateInfo real = *info;
    uint32_t types = shim_lookup(d)->memory_types;
    VkResult result;

    if (!shim_enter("vkAllocateMemory", d, VALUES(info->allocationSize, info->memoryTypeIndex), &result))
        return result;
    if (real.memoryTypeIndex >= types)
        real.memoryTypeIndex -= types;
    result = shim.device.AllocateMemory(d, &real, a, out);
    if (result != VK_SUCCESS)
        return result;
    shim_created();
    if (shim.split_memory && info->memoryTypeIndex < types)
        shim_forbid_map(*out);
    if (shim.poison)
        poison_memory(d, *out, info->allocationSize);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL shim_FreeMemory(VkDevice d, VkDeviceMemory memory, const VkAllocationCallbacks *a)
{
    shim_enter("vkFreeMemory", d, VALUES(0), NULL);
    shim_destroyed(memory != VK_NULL_HANDLE);
    shim_forget_memory(memory);
    shim.device.FreeMemory(d, memory, a);
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_MapMemory(VkDevice d, VkDeviceMemory memory, VkDeviceSize offset,
                                                     VkDeviceSize size, VkMemoryMapFlags flags, void **out)
{
    VkResult result;

    if (!shim_enter("vkMapMemory", d, VALUES(size, offset), &result))
        return result;
    return shim_may_map(memory) ? shim.device.MapMemory(d, memory, offset, size, flags, out)
                                : VK_ERROR_MEMORY_MAP_FAILED;
}

static VKAPI_ATTR void VKAPI_CALL shim_GetBufferMemoryRequirements(VkDevice d, VkBuffer buffer,
                                                                   VkMemoryRequirements *out)
{
    shim_enter("vkGetBufferMemoryRequirements", d, VALUES(0), NULL);
    shim.device.GetBufferMemoryRequirements(d, buffer, out);
    if (shim.split_memory)
        out->memoryTypeBits |= out->memoryTypeBits << shim_lookup(d)->memory_types;
}

static void split_types(VkPhysicalDeviceMemoryProperties *memory)
{
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    uint32_t count = memory->memoryTypeCount;

    for (uint32_t i = 0; i < count; i++) {
        VkMemoryType *copy = &memory->memoryTypes[count + i];

        *copy = memory->memoryTypes[i];
        copy->propertyFlags &= host;
        memory->memoryTypes[i].propertyFlags &= ~host;
    }
    memory->memoryTypeCount = 2 * count;
}

static VKAPI_ATTR void VKAPI_CALL shim_GetPhysicalDeviceMemoryProperties2(VkPhysicalDevice p,
                                                                          VkPhysicalDeviceMemoryProperties2 *out)
{
    VkPhysicalDeviceMemoryProperties *memory = &out->memoryProperties;

    shim_enter("vkGetPhysicalDeviceMemoryProperties2", NULL, VALUES(0), NULL);
    shim.instance.GetPhysicalDeviceMemoryProperties2(p, out);
    if (shim.split_memory)
        split_types(memory);
    for (uint32_t i = 0; i < memory->memoryTypeCount && shim.no_coherence; i++)
        memory->memoryTypes[i].propertyFlags &= ~(VkMemoryPropertyFlags)VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (VkBaseOutStructure *part = out->pNext; part && shim.budget; part = part->pNext)
        if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
            ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)part)->heapBudget[0] = shim.budget;
            ((VkPhysicalDeviceMemoryBudgetPropertiesEXT *)part)->heapUsage[0] = shim.usage;
        }
}

static VKAPI_ATTR void VKAPI_CALL shim_GetPhysicalDeviceFeatures2(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *out)
{
    shim_enter("vkGetPhysicalDeviceFeatures2", NULL, VALUES(0), NULL);
    shim.instance.GetPhysicalDeviceFeatures2(p, out);
    for (VkBaseOutStructure *part = out->pNext; part && shim.no_timeline; part = part->pNext)
        if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            ((VkPhysicalDeviceVulkan12Features *)part)->timelineSemaphore = VK_FALSE;
}

static void disguise(VkPhysicalDeviceProperties *properties)
{
    if (shim.api_version)
        properties->apiVersion = shim.api_version;
    if (shim.vendor_id)
        properties->vendorID = shim.vendor_id;
}

static VKAPI_ATTR void VKAPI_CALL shim_GetPhysicalDeviceProperties(VkPhysicalDevice p, VkPhysicalDeviceProperties *out)
{
    shim_enter("vkGetPhysicalDeviceProperties", NULL, VALUES(0), NULL);
    shim.instance.GetPhysicalDeviceProperties(p, out);
    disguise(out);
}

static VKAPI_ATTR void VKAPI_CALL shim_GetPhysicalDeviceProperties2(VkPhysicalDevice p,
                                                                    VkPhysicalDeviceProperties2 *out)
{
    shim_enter("vkGetPhysicalDeviceProperties2", NULL, VALUES(0), NULL);
    shim.instance.GetPhysicalDeviceProperties2(p, out);
    disguise(&out->properties);
    for (VkBaseOutStructure *part = out->pNext; part; part = part->pNext) {
        if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES && shim.driver_id)
            ((VkPhysicalDeviceDriverProperties *)part)->driverID = (VkDriverId)shim.driver_id;
        if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT && shim.pci_bus)
            ((VkPhysicalDevicePCIBusInfoPropertiesEXT *)part)->pciBus = shim.pci_bus;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_EnumeratePhysicalDevices(VkInstance instance, uint32_t *count,
                                                                    VkPhysicalDevice *out)
{
    VkResult result;

    if (!shim_enter("vkEnumeratePhysicalDevices", NULL, VALUES(0), &result))
        return result;
    if (shim.no_devices) {
        *count = 0;
        return VK_SUCCESS;
    }
    return shim.instance.EnumeratePhysicalDevices(instance, count, out);
}

/* Renames what is hidden, which is easier than closing the gap. */
static void hide(char *name)
{
    if (shim.hidden_extension && strcmp(name, shim.hidden_extension) == 0)
        name[0] = '-';
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_EnumerateInstanceLayerProperties(uint32_t *count, VkLayerProperties *out)
{
    VkResult result;

    if (!shim_enter("vkEnumerateInstanceLayerProperties", NULL, VALUES(0), &result))
        return result;
    result = shim.instance.EnumerateInstanceLayerProperties(count, out);
    for (uint32_t i = 0; out && i < *count; i++)
        hide(out[i].layerName);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_EnumerateInstanceExtensionProperties(const char *layer, uint32_t *count,
                                                                                VkExtensionProperties *out)
{
    VkResult result;

    if (!shim_enter("vkEnumerateInstanceExtensionProperties", NULL, VALUES(0), &result))
        return result;
    result = shim.instance.EnumerateInstanceExtensionProperties(layer, count, out);
    for (uint32_t i = 0; out && i < *count; i++)
        hide(out[i].extensionName);
    return result;
}

/* Extensions of the disguise, which the driver does not have; NULL when it is not wanted. */
enum { DISGUISES = 2 };

static const char *disguise_extension(uint32_t i)
{
    if (i == 0)
        return shim.budget ? VK_EXT_MEMORY_BUDGET_EXTENSION_NAME : NULL;
    return shim.pci_bus ? VK_EXT_PCI_BUS_INFO_EXTENSION_NAME : NULL;
}

/* As with a driver, the caller asks twice: for the number, then with room for that many. */
static VKAPI_ATTR VkResult VKAPI_CALL shim_EnumerateDeviceExtensionProperties(VkPhysicalDevice p, const char *layer,
                                                                              uint32_t *count,
                                                                              VkExtensionProperties *out)
{
    VkResult result;

    if (!shim_enter("vkEnumerateDeviceExtensionProperties", NULL, VALUES(0), &result))
        return result;
    result = shim.instance.EnumerateDeviceExtensionProperties(p, layer, count, out);
    for (uint32_t i = 0; out && i < *count; i++)
        hide(out[i].extensionName);
    for (uint32_t i = 0; i < DISGUISES; i++) {
        if (!disguise_extension(i))
            continue;
        if (out)
            strcpy(out[*count].extensionName, disguise_extension(i));
        ++*count;
    }
    return result;
}

/* Takes the disguise's extensions out again. */
static uint32_t real_extensions(const VkDeviceCreateInfo *info, const char **out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        const char *name = info->ppEnabledExtensionNames[i];
        bool invented = false;

        for (uint32_t j = 0; j < DISGUISES; j++)
            invented |= disguise_extension(j) && strcmp(disguise_extension(j), name) == 0;
        if (!invented)
            out[count++] = name;
    }
    return count;
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_CreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *info,
                                                        const VkAllocationCallbacks *a, VkDevice *out)
{
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    VkDeviceCreateInfo real = *info;
    const char *extensions[8];
    VkResult result;

    if (!shim_enter("vkCreateDevice", NULL, VALUES(info->enabledExtensionCount), &result))
        return result;
    real.enabledExtensionCount = real_extensions(info, extensions);
    real.ppEnabledExtensionNames = extensions;
    result = shim.instance.CreateDevice(p, &real, a, out);
    if (result != VK_SUCCESS)
        return result;
    shim_created();
    shim.instance.GetPhysicalDeviceMemoryProperties2(p, &memory);
    shim_adopt_device(*out, memory.memoryProperties.memoryTypeCount);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL shim_DestroyDevice(VkDevice d, const VkAllocationCallbacks *a)
{
    shim_enter("vkDestroyDevice", d, VALUES(0), NULL);
    shim_destroyed(d != VK_NULL_HANDLE);
    shim_drop_device(d);
    shim.device.DestroyDevice(d, a);
}

/* ---- look-up ---- */

/* The loader's instance-level entry points dispatch on the handle, so one set serves all devices. */
static void load_real(VkInstance instance)
{
#define LOAD(table, name)                                                                                              \
    {                                                                                                                  \
        PFN_vk##name found = (PFN_vk##name)shim_real(instance, "vk" #name);                                            \
        if (found)                                                                                                     \
            shim.table.name = found;                                                                                   \
    }
#define LOAD_INSTANCE(name) LOAD(instance, name)
#define LOAD_DEVICE(name)   LOAD(device, name)
    if (!instance) {
        GPU_GLOBAL_FUNCTIONS(LOAD_INSTANCE)
        return;
    }
    GPU_INSTANCE_FUNCTIONS(LOAD_INSTANCE)
    GPU_DEBUG_FUNCTIONS(LOAD_INSTANCE)
    GPU_DEVICE_FUNCTIONS(LOAD_DEVICE)
#undef LOAD_DEVICE
#undef LOAD_INSTANCE
#undef LOAD
}

static VKAPI_ATTR VkResult VKAPI_CALL shim_CreateInstance(const VkInstanceCreateInfo *info,
                                                          const VkAllocationCallbacks *a, VkInstance *out)
{
    VkResult result;

    if (!shim_enter("vkCreateInstance", NULL, VALUES(info->enabledLayerCount, info->enabledExtensionCount), &result))
        return result;
    result = shim.instance.CreateInstance(info, a, out);
    if (result == VK_SUCCESS) {
        shim_created();
        load_real(*out);
    }
    return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL shim_GetDeviceProcAddr(VkDevice d, const char *name)
{
    (void)d;
    if (shim.hidden_function && strcmp(name, shim.hidden_function) == 0)
        return NULL;
#define FIND(function)                                                                                                 \
    if (strcmp(name, "vk" #function) == 0)                                                                             \
        return (PFN_vkVoidFunction)shim_##function;
    GPU_DEVICE_FUNCTIONS(FIND)
    return NULL;
}

vka_proc_fn shim_get_proc(void *instance, const char *name)
{
    if (!shim_real(NULL, "vkCreateInstance") || (shim.hidden_function && strcmp(name, shim.hidden_function) == 0))
        return NULL;
    if (!instance)
        load_real(NULL);
    GPU_GLOBAL_FUNCTIONS(FIND)
    GPU_INSTANCE_FUNCTIONS(FIND)
    GPU_DEBUG_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}
