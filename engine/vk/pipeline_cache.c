/* One VkPipelineCache per SPIR-V module, kept on disk between processes where that was asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/identity.h"
#include "vk/cache_file.h"
#include "vk/device.h"

enum { KEY_BYTES = 512 };

bool gpu_pipeline_cache_dir(const vka_context_params *params, char *out, size_t size)
{
    return !params->no_pipeline_cache && vka_cache_folder(params->pipeline_cache_dir, "vkattn", out, size);
}

/* Whatever could make compiled code unfit. */
static void make_key(char *key, size_t size, const gpu_device *device, const gpu_module *module, size_t spirv_bytes)
{
    char identity[VKA_IDENTITY_BYTES], driver_uuid[33];

    vka_device_identity(device->info, identity);
    vka_uuid_text(device->info->driver_uuid, driver_uuid);
    snprintf(key, size, "%s driver %s spirv %016" PRIx64, identity, driver_uuid,
             vka_hash(VKA_HASH_START, module->spirv, spirv_bytes));
}

static vka_status set_names(gpu_device *device, gpu_module *module, size_t spirv_bytes, vka_error *error)
{
    size_t size = strlen(device->cache_dir) + 32;

    module->cache_key = vka_alloc(&device->allocator, KEY_BYTES, 1);
    module->cache_path = vka_alloc(&device->allocator, size, 1);
    if (!module->cache_key || !module->cache_path)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for a pipeline cache's path");
    make_key(module->cache_key, KEY_BYTES, device, module, spirv_bytes);
    snprintf(module->cache_path, size, "%s/%016" PRIx64 ".bin", device->cache_dir,
             vka_hash(VKA_HASH_START, module->cache_key, strlen(module->cache_key)));
    return VKA_OK;
}

vka_status gpu_pipeline_cache_open(gpu_device *device, gpu_module *module, size_t spirv_bytes, vka_error *error)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    vka_mapping file = {0};
    VkResult result;

    if (device->cache_dir) {
        vka_status status = set_names(device, module, spirv_bytes, error);

        if (status != VKA_OK)
            return status;
        /* A missing file is the ordinary first run, an unreadable one is no worse. */
        if (vka_map_file(&file, module->cache_path, NULL) == VKA_OK &&
            gpu_cache_file_read(file.data, file.size, module->cache_key, &info.pInitialData, &info.initialDataSize))
            module->loaded_bytes = info.initialDataSize;
    }
    result = device->fn.CreatePipelineCache(device->handle, &info, NULL, &module->cache);
    vka_unmap_file(&file);
    if (result == VK_SUCCESS)
        return VKA_OK;
    module->cache = VK_NULL_HANDLE;
    return gpu_fail_vk(device, error, result, "vkCreatePipelineCache failed on device '%s'", device->info->name);
}

static vka_status write_file(const gpu_device *device, const gpu_module *module, const void *data, size_t size,
                             vka_error *error)
{
    gpu_cache_header header = gpu_cache_file_header(module->cache_key, data, size);
    const vka_piece pieces[] = {
        {&header, sizeof(header)},
        {module->cache_key, strlen(module->cache_key)},
        {data, size},
    };
    vka_status status = vka_make_directories(device->cache_dir, error);

    if (status == VKA_OK)
        status = vka_write_file(module->cache_path, pieces, sizeof(pieces) / sizeof(pieces[0]), error);
    return status;
}

void gpu_pipeline_cache_save(gpu_device *device, const gpu_module *module)
{
    vka_error error;
    size_t size = 0;
    void *data;

    if (!module->cache_path || device->lost ||
        device->fn.GetPipelineCacheData(device->handle, module->cache, &size, NULL) != VK_SUCCESS ||
        size == module->loaded_bytes)
        return;
    data = vka_alloc(&device->allocator, size, 1);
    if (data && device->fn.GetPipelineCacheData(device->handle, module->cache, &size, data) == VK_SUCCESS &&
        write_file(device, module, data, size, &error) != VKA_OK)
        vka_log_print(&device->log, VKA_LOG_WARNING, "pipeline cache not written: %s", error.message);
    vka_free(&device->allocator, data);
}
