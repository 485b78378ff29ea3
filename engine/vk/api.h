/* The Vulkan functions we call, as tables of our own.
 *
 * volk.h gives the types without prototypes; its loader is not compiled, because that keeps function pointers in
 * globals: two contexts, or a host that links libvulkan or has a volk of its own, would meet in them. Each list below
 * is the single place that names a function: it makes the table's member and loads it. Everything is reached through
 * the caller's vkGetInstanceProcAddr and the vkGetDeviceProcAddr it returns, so a host can wrap every call. */
#ifndef VKA_VK_API_H
#define VKA_VK_API_H

#include <volk.h>

#include "vkattn/context.h"

/* Needed before an instance exists. */
#define GPU_GLOBAL_FUNCTIONS(X)                                                                                        \
    X(CreateInstance)                                                                                                  \
    X(EnumerateInstanceExtensionProperties)                                                                            \
    X(EnumerateInstanceLayerProperties)                                                                                \
    X(EnumerateInstanceVersion)

#define GPU_INSTANCE_FUNCTIONS(X)                                                                                      \
    X(CreateDevice)                                                                                                    \
    X(DestroyInstance)                                                                                                 \
    X(EnumerateDeviceExtensionProperties)                                                                              \
    X(EnumeratePhysicalDevices)                                                                                        \
    X(GetDeviceProcAddr)                                                                                               \
    X(GetPhysicalDeviceFeatures2)                                                                                      \
    X(GetPhysicalDeviceFormatProperties)                                                                               \
    X(GetPhysicalDeviceMemoryProperties2)                                                                              \
    X(GetPhysicalDeviceProperties)                                                                                     \
    X(GetPhysicalDeviceProperties2)                                                                                    \
    X(GetPhysicalDeviceQueueFamilyProperties)

/* Only with the validation layer. */
#define GPU_DEBUG_FUNCTIONS(X)                                                                                         \
    X(CreateDebugUtilsMessengerEXT)                                                                                    \
    X(DestroyDebugUtilsMessengerEXT)

#define GPU_DEVICE_FUNCTIONS(X)                                                                                        \
    X(AllocateCommandBuffers)                                                                                          \
    X(AllocateDescriptorSets)                                                                                          \
    X(AllocateMemory)                                                                                                  \
    X(BeginCommandBuffer)                                                                                              \
    X(BindBufferMemory)                                                                                                \
    X(CmdBindDescriptorSets)                                                                                           \
    X(CmdBindPipeline)                                                                                                 \
    X(CmdCopyBuffer)                                                                                                   \
    X(CmdDispatch)                                                                                                     \
    X(CmdFillBuffer)                                                                                                   \
    X(CmdPipelineBarrier)                                                                                              \
    X(CmdPushConstants)                                                                                                \
    X(CmdResetQueryPool)                                                                                               \
    X(CmdWriteTimestamp)                                                                                               \
    X(CreateBuffer)                                                                                                    \
    X(CreateBufferView)                                                                                                \
    X(CreateCommandPool)                                                                                               \
    X(CreateComputePipelines)                                                                                          \
    X(CreateDescriptorPool)                                                                                            \
    X(CreateDescriptorSetLayout)                                                                                       \
    X(CreatePipelineCache)                                                                                             \
    X(CreatePipelineLayout)                                                                                            \
    X(CreateQueryPool)                                                                                                 \
    X(CreateSemaphore)                                                                                                 \
    X(CreateShaderModule)                                                                                              \
    X(DestroyBuffer)                                                                                                   \
    X(DestroyBufferView)                                                                                               \
    X(DestroyCommandPool)                                                                                              \
    X(DestroyDescriptorPool)                                                                                           \
    X(DestroyDescriptorSetLayout)                                                                                      \
    X(DestroyDevice)                                                                                                   \
    X(DestroyPipeline)                                                                                                 \
    X(DestroyPipelineCache)                                                                                            \
    X(DestroyPipelineLayout)                                                                                           \
    X(DestroyQueryPool)                                                                                                \
    X(DestroySemaphore)                                                                                                \
    X(DestroyShaderModule)                                                                                             \
    X(DeviceWaitIdle)                                                                                                  \
    X(EndCommandBuffer)                                                                                                \
    X(FlushMappedMemoryRanges)                                                                                         \
    X(FreeMemory)                                                                                                      \
    X(GetBufferMemoryRequirements)                                                                                     \
    X(GetDeviceQueue)                                                                                                  \
    X(GetPipelineCacheData)                                                                                            \
    X(GetQueryPoolResults)                                                                                             \
    X(GetSemaphoreCounterValue)                                                                                        \
    X(InvalidateMappedMemoryRanges)                                                                                    \
    X(MapMemory)                                                                                                       \
    X(QueueSubmit)                                                                                                     \
    X(ResetCommandPool)                                                                                                \
    X(ResetDescriptorPool)                                                                                             \
    X(UpdateDescriptorSets)                                                                                            \
    X(WaitSemaphores)

#define GPU_TABLE_MEMBER(name) PFN_vk##name name;

typedef struct gpu_instance_table {
    GPU_GLOBAL_FUNCTIONS(GPU_TABLE_MEMBER)
    GPU_INSTANCE_FUNCTIONS(GPU_TABLE_MEMBER)
    GPU_DEBUG_FUNCTIONS(GPU_TABLE_MEMBER)
} gpu_instance_table;

typedef struct gpu_device_table {
    GPU_DEVICE_FUNCTIONS(GPU_TABLE_MEMBER)
} gpu_device_table;

#undef GPU_TABLE_MEMBER

/* Each fills its part of a table and returns NULL, or the name of the first function that is missing. */
const char *gpu_load_global(gpu_instance_table *table, vka_get_proc_fn get);
const char *gpu_load_instance(gpu_instance_table *table, vka_get_proc_fn get, VkInstance instance);
const char *gpu_load_debug(gpu_instance_table *table, vka_get_proc_fn get, VkInstance instance);
const char *gpu_load_device(gpu_device_table *table, const gpu_instance_table *instance, VkDevice device);

#endif
