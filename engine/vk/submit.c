/* Submitting, waiting, and the times of what was waited for. Every submission signals the next value of the device's
 * timeline semaphore; that value is its ticket. */
#include <inttypes.h>

#include "vk/device.h"

vka_status gpu_submit(gpu_commands *commands, uint64_t *ticket, vka_error *error)
{
    gpu_device *device = commands->device;
    uint64_t value = device->last_ticket + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands->handle,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &device->timeline,
    };
    vka_status status = gpu_check_lost(device, error);
    VkResult result;

    device->recording = NULL;
    if (status != VKA_OK)
        return status;
    result = device->fn.EndCommandBuffer(commands->handle);
    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "vkEndCommandBuffer failed on device '%s'", device->info->name);
    result = device->fn.QueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "vkQueueSubmit failed on device '%s'", device->info->name);
    device->last_ticket = value;
    commands->ticket = value;
    *ticket = value;
    return VKA_OK;
}

vka_status gpu_poll(gpu_device *device, vka_error *error)
{
    uint64_t value = 0;
    VkResult result = device->fn.GetSemaphoreCounterValue(device->handle, device->timeline, &value);

    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "vkGetSemaphoreCounterValue failed on device '%s'",
                           device->info->name);
    if (value > device->completed_ticket)
        device->completed_ticket = value;
    return VKA_OK;
}

void gpu_settle(gpu_device *device)
{
    if (device->last_ticket > device->completed_ticket)
        device->fn.DeviceWaitIdle(device->handle);
    device->completed_ticket = device->last_ticket;
}

/* The recording of the last submission that is done. */
static const gpu_commands *last_done(const gpu_device *device)
{
    const gpu_commands *last = NULL;

    for (uint32_t i = 0; i < device->commands_count; i++) {
        const gpu_commands *commands = device->commands[i];

        if (commands->ticket > 0 && commands->ticket <= device->completed_ticket && commands != device->recording &&
            (!last || commands->ticket > last->ticket))
            last = commands;
    }
    return last;
}

/* Keeps the time stamps of the last finished submission, since its recording may be used again at any time. */
static vka_status collect_stamps(gpu_device *device, vka_error *error)
{
    uint64_t pairs[GPU_MAX_TIMESTAMPS][2]; /* value, available */
    const gpu_commands *commands = last_done(device);
    uint32_t count = 0;
    VkResult result;

    if (!commands || commands->ticket <= device->stamps_ticket)
        return VKA_OK;
    device->stamps_ticket = commands->ticket;
    device->stamps_valid = 0;
    while (count < GPU_MAX_TIMESTAMPS && commands->stamped >> count)
        count++;
    if (count == 0)
        return VKA_OK;
    result = device->fn.GetQueryPoolResults(device->handle, commands->queries, 0, count, count * sizeof(pairs[0]),
                                            pairs, sizeof(pairs[0]),
                                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
    if (result < VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "vkGetQueryPoolResults failed on device '%s'", device->info->name);
    for (uint32_t i = 0; i < count; i++) {
        device->stamps[i] = pairs[i][0];
        device->stamps_valid |= (uint64_t)(pairs[i][1] != 0) << i;
    }
    device->stamps_valid &= commands->stamped;
    return VKA_OK;
}

vka_status gpu_wait(gpu_device *device, uint64_t ticket, vka_error *error)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &device->timeline,
        .pValues = &ticket,
    };
    vka_status status = gpu_check_lost(device, error);
    VkResult result;

    if (status != VKA_OK)
        return status;
    if (ticket > device->last_ticket)
        return gpu_fail(device, error, VKA_ERR_ARGUMENT, "ticket %" PRIu64 " was not given yet; the last is %" PRIu64,
                        ticket, device->last_ticket);
    result = device->fn.WaitSemaphores(device->handle, &info, UINT64_MAX);
    if (result != VK_SUCCESS) {
        status = gpu_fail_vk(device, error, result, "vkWaitSemaphores failed on device '%s'", device->info->name);
        if (!device->lost)
            gpu_settle(device); /* callers go on to reuse and free what the device may still work on */
        return status;
    }
    if (ticket > device->completed_ticket)
        device->completed_ticket = ticket;
    return collect_stamps(device, error);
}

double gpu_elapsed_ms(gpu_device *device, uint32_t from, uint32_t to)
{
    uint32_t bits = device->info->timestamp_bits;
    uint64_t mask = bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;

    if (from >= GPU_MAX_TIMESTAMPS || to >= GPU_MAX_TIMESTAMPS || !(device->stamps_valid >> from & 1) ||
        !(device->stamps_valid >> to & 1))
        return -1;
    return (double)((device->stamps[to] - device->stamps[from]) & mask) *
           (double)device->physical->limits.timestampPeriod / 1e6;
}
