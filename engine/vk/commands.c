/* The life of a recording: made, begun, abandoned, used again. Pools are reset, not freed, so a call that has run once
 * allocates nothing. */
#include <assert.h>

#include "vk/device.h"

/* ---- creation ---- */

static void commands_destroy(gpu_device *device, gpu_commands *commands)
{
    while (commands->sets) {
        gpu_set_pool *pool = commands->sets;

        commands->sets = pool->next;
        device->fn.DestroyDescriptorPool(device->handle, pool->handle, NULL);
        vka_free(&device->allocator, pool);
    }
    if (commands->queries)
        device->fn.DestroyQueryPool(device->handle, commands->queries, NULL);
    if (commands->pool)
        device->fn.DestroyCommandPool(device->handle, commands->pool, NULL);
    vka_free(&device->allocator, commands);
}

static VkResult create_pool(gpu_device *device, gpu_commands *commands)
{
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = device->physical->queue_family,
    };
    VkCommandBufferAllocateInfo buffer = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkResult result = device->fn.CreateCommandPool(device->handle, &pool, NULL, &commands->pool);

    if (result != VK_SUCCESS) {
        commands->pool = VK_NULL_HANDLE;
        return result;
    }
    buffer.commandPool = commands->pool;
    return device->fn.AllocateCommandBuffers(device->handle, &buffer, &commands->handle);
}

static VkResult create_queries(gpu_device *device, gpu_commands *commands)
{
    VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = GPU_MAX_TIMESTAMPS,
    };
    VkResult result;

    if (!(device->caps.bits & VKA_CAP_BIT(VKA_CAP_TIMESTAMPS)))
        return VK_SUCCESS;
    result = device->fn.CreateQueryPool(device->handle, &info, NULL, &commands->queries);
    if (result != VK_SUCCESS)
        commands->queries = VK_NULL_HANDLE;
    return result;
}

static vka_status commands_create(gpu_device *device, gpu_commands **out, vka_error *error)
{
    gpu_commands *commands = vka_alloc(&device->allocator, 1, sizeof(*commands));
    VkResult result;

    if (!commands)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for a command buffer");
    commands->device = device;
    result = create_pool(device, commands);
    if (result == VK_SUCCESS)
        result = create_queries(device, commands);
    if (result != VK_SUCCESS) {
        commands_destroy(device, commands);
        return gpu_fail_vk(device, error, result, "cannot create a command buffer on device '%s'", device->info->name);
    }
    device->commands[device->commands_count++] = commands;
    *out = commands;
    return VKA_OK;
}

void gpu_commands_destroy(gpu_device *device)
{
    while (device->commands_count > 0)
        commands_destroy(device, device->commands[--device->commands_count]);
}

/* ---- begin ---- */

static gpu_commands *find_done(const gpu_device *device)
{
    for (uint32_t i = 0; i < device->commands_count; i++)
        if (device->commands[i]->ticket <= device->completed_ticket)
            return device->commands[i];
    return NULL;
}

/* A recording that the device is done with, a new one, or the oldest after waiting for it. */
static vka_status acquire(gpu_device *device, gpu_commands **out, vka_error *error)
{
    uint64_t oldest = UINT64_MAX;
    vka_status status = VKA_OK;

    *out = find_done(device);
    if (!*out && device->commands_count > 0)
        status = gpu_poll(device, error);
    if (status == VKA_OK && !*out)
        *out = find_done(device);
    if (status != VKA_OK || *out)
        return status;
    if (device->commands_count < GPU_MAX_IN_FLIGHT)
        return commands_create(device, out, error);
    for (uint32_t i = 0; i < device->commands_count; i++)
        if (device->commands[i]->ticket < oldest)
            oldest = device->commands[i]->ticket;
    status = gpu_wait(device, oldest, error);
    *out = find_done(device);
    return status;
}

static VkResult restart(gpu_device *device, gpu_commands *commands)
{
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult result = device->fn.ResetCommandPool(device->handle, commands->pool, 0);

    for (gpu_set_pool *pool = commands->sets; pool && result == VK_SUCCESS; pool = pool->next) {
        if (pool->used > 0)
            result = device->fn.ResetDescriptorPool(device->handle, pool->handle, 0);
        pool->used = 0;
    }
    if (result == VK_SUCCESS)
        result = device->fn.BeginCommandBuffer(commands->handle, &begin);
    if (result == VK_SUCCESS && commands->queries)
        device->fn.CmdResetQueryPool(commands->handle, commands->queries, 0, GPU_MAX_TIMESTAMPS);
    commands->stamped = 0;
    commands->ticket = 0;
    return result;
}

vka_status gpu_commands_begin(gpu_device *device, gpu_commands **out, vka_error *error)
{
    vka_status status = gpu_check_lost(device, error);
    gpu_commands *commands = NULL;
    VkResult result;

    assert(!device->recording);
    if (status == VKA_OK)
        status = acquire(device, &commands, error);
    if (status != VKA_OK)
        return status;
    result = restart(device, commands);
    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "cannot begin recording on device '%s'", device->info->name);
    device->recording = commands;
    *out = commands;
    return VKA_OK;
}

void gpu_commands_abandon(gpu_commands *commands)
{
    if (commands)
        commands->device->recording = NULL; /* the next begin resets it */
}
