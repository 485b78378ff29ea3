/* Compute pipelines, made on first use and shared: one per description, for as long as the device is open. */
#include <string.h>

#include "vk/device.h"

static vka_status check_limits(const gpu_device *device, const gpu_pipeline_desc *desc, vka_error *error)
{
    const vka_caps *caps = &device->caps;
    const struct {
        const char *what;
        uint32_t needs, limit;
    } limits[] = {
        {"invocations per workgroup", desc->local_size, caps->max_invocations},
        {"bytes of shared memory", desc->shared_bytes, caps->shared_bytes},
        {"storage buffers", desc->storage_bindings, caps->storage_buffers},
        {"bytes of push constants", desc->push_bytes, caps->push_bytes},
        {"bindings", desc->storage_bindings + desc->texel_bindings, GPU_MAX_BINDINGS},
        {"specialisation constants", desc->spec_count, GPU_MAX_SPEC},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].needs > limits[i].limit)
            return gpu_fail(device, error, VKA_ERR_LIMIT, "kernel '%s' needs %u %s, but device '%s' allows %u",
                            desc->name, limits[i].needs, limits[i].what, device->info->name, limits[i].limit);
    if (desc->texel_bindings > 0 && !(caps->bits & VKA_CAP_BIT(VKA_CAP_TEXEL)))
        return gpu_fail(device, error, VKA_ERR_UNSUPPORTED,
                        "kernel '%s' reads texel buffers, which device '%s' does not have", desc->name,
                        device->info->name);
    return VKA_OK;
}

static bool same_desc(const gpu_pipeline_desc *a, const gpu_pipeline_desc *b)
{
    return a->spirv == b->spirv && a->spec_count == b->spec_count &&
           memcmp(a->spec, b->spec, a->spec_count * sizeof(a->spec[0])) == 0 &&
           a->storage_bindings == b->storage_bindings && a->texel_bindings == b->texel_bindings &&
           a->push_bytes == b->push_bytes;
}

/* ---- modules ---- */

static void module_destroy(gpu_device *device, gpu_module *module)
{
    if (module->handle)
        device->fn.DestroyShaderModule(device->handle, module->handle, NULL);
    if (module->cache)
        device->fn.DestroyPipelineCache(device->handle, module->cache, NULL);
    vka_free(&device->allocator, module->cache_path);
    vka_free(&device->allocator, module->cache_key);
    vka_free(&device->allocator, module);
}

static vka_status module_get(gpu_device *device, const gpu_pipeline_desc *desc, gpu_module **out, vka_error *error)
{
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = desc->spirv_bytes,
        .pCode = desc->spirv,
    };
    gpu_module *module;
    vka_status status;
    VkResult result;

    for (module = device->modules; module; module = module->next)
        if (module->spirv == desc->spirv) {
            *out = module;
            return VKA_OK;
        }
    module = vka_alloc(&device->allocator, 1, sizeof(*module));
    if (!module)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for kernel '%s'", desc->name);
    module->spirv = desc->spirv;
    result = device->fn.CreateShaderModule(device->handle, &info, NULL, &module->handle);
    if (result == VK_SUCCESS) {
        status = gpu_pipeline_cache_open(device, module, desc->spirv_bytes, error);
    } else {
        module->handle = VK_NULL_HANDLE;
        status = gpu_fail_vk(device, error, result, "vkCreateShaderModule failed for '%s' on device '%s'", desc->name,
                             device->info->name);
    }
    if (status != VKA_OK) {
        module_destroy(device, module);
        return status;
    }
    module->next = device->modules;
    device->modules = module;
    *out = module;
    return VKA_OK;
}

/* ---- pipelines ---- */

static VkResult create_set_layout(gpu_device *device, gpu_pipeline *pipeline)
{
    const gpu_pipeline_desc *desc = &pipeline->desc;
    VkDescriptorSetLayoutBinding bindings[GPU_MAX_BINDINGS];
    VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = desc->storage_bindings + desc->texel_bindings,
        .pBindings = bindings,
    };
    VkResult result;

    for (uint32_t i = 0; i < info.bindingCount; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = i < desc->storage_bindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                         : VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    result = device->fn.CreateDescriptorSetLayout(device->handle, &info, NULL, &pipeline->set_layout);
    if (result != VK_SUCCESS)
        pipeline->set_layout = VK_NULL_HANDLE;
    return result;
}

static VkResult create_layout(gpu_device *device, gpu_pipeline *pipeline)
{
    VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = pipeline->desc.push_bytes,
    };
    VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &pipeline->set_layout,
        .pushConstantRangeCount = push.size > 0 ? 1 : 0,
        .pPushConstantRanges = &push,
    };
    VkResult result = device->fn.CreatePipelineLayout(device->handle, &info, NULL, &pipeline->layout);

    if (result != VK_SUCCESS)
        pipeline->layout = VK_NULL_HANDLE;
    return result;
}

static VkResult create_handle(gpu_device *device, gpu_pipeline *pipeline, const gpu_module *module)
{
    const gpu_pipeline_desc *desc = &pipeline->desc;
    VkSpecializationMapEntry entries[GPU_MAX_SPEC];
    VkSpecializationInfo spec = {
        .mapEntryCount = desc->spec_count,
        .pMapEntries = entries,
        .dataSize = desc->spec_count * sizeof(desc->spec[0]),
        .pData = desc->spec,
    };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module->handle,
                  .pName = "main",
                  .pSpecializationInfo = &spec},
        .layout = pipeline->layout,
    };
    VkResult result;

    for (uint32_t i = 0; i < desc->spec_count; i++)
        entries[i] = (VkSpecializationMapEntry){
            .constantID = i,
            .offset = i * (uint32_t)sizeof(desc->spec[0]),
            .size = sizeof(desc->spec[0]),
        };
    result = device->fn.CreateComputePipelines(device->handle, module->cache, 1, &info, NULL, &pipeline->handle);
    if (result != VK_SUCCESS)
        pipeline->handle = VK_NULL_HANDLE;
    return result;
}

static void pipeline_destroy(gpu_device *device, gpu_pipeline *pipeline)
{
    if (pipeline->handle)
        device->fn.DestroyPipeline(device->handle, pipeline->handle, NULL);
    if (pipeline->layout)
        device->fn.DestroyPipelineLayout(device->handle, pipeline->layout, NULL);
    if (pipeline->set_layout)
        device->fn.DestroyDescriptorSetLayout(device->handle, pipeline->set_layout, NULL);
    vka_free(&device->allocator, pipeline);
}

static vka_status pipeline_create(gpu_device *device, const gpu_pipeline_desc *desc, gpu_pipeline **out,
                                  vka_error *error)
{
    gpu_module *module = NULL;
    vka_status status = module_get(device, desc, &module, error);
    gpu_pipeline *pipeline;
    VkResult result;

    if (status != VKA_OK)
        return status;
    pipeline = vka_alloc(&device->allocator, 1, sizeof(*pipeline));
    if (!pipeline)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for kernel '%s'", desc->name);
    pipeline->desc = *desc;
    result = create_set_layout(device, pipeline);
    if (result == VK_SUCCESS)
        result = create_layout(device, pipeline);
    if (result == VK_SUCCESS)
        result = create_handle(device, pipeline, module);
    if (result != VK_SUCCESS) {
        pipeline_destroy(device, pipeline);
        return gpu_fail_vk(device, error, result, "cannot create the pipeline of kernel '%s' on device '%s'",
                           desc->name, device->info->name);
    }
    pipeline->next = device->pipelines;
    device->pipelines = pipeline;
    device->pipeline_count++;
    *out = pipeline;
    return VKA_OK;
}

vka_status gpu_pipeline_get(gpu_device *device, const gpu_pipeline_desc *desc, gpu_pipeline **out, vka_error *error)
{
    vka_status status = gpu_check_lost(device, error);

    if (status == VKA_OK)
        status = check_limits(device, desc, error);
    if (status != VKA_OK)
        return status;
    for (gpu_pipeline *pipeline = device->pipelines; pipeline; pipeline = pipeline->next)
        if (same_desc(&pipeline->desc, desc)) {
            *out = pipeline;
            return VKA_OK;
        }
    return pipeline_create(device, desc, out, error);
}

uint32_t gpu_pipeline_count(const gpu_device *device)
{
    return device->pipeline_count;
}

void gpu_pipelines_destroy(gpu_device *device)
{
    while (device->pipelines) {
        gpu_pipeline *pipeline = device->pipelines;

        device->pipelines = pipeline->next;
        pipeline_destroy(device, pipeline);
    }
    while (device->modules) {
        gpu_module *module = device->modules;

        device->modules = module->next;
        gpu_pipeline_cache_save(device, module);
        module_destroy(device, module);
    }
}
