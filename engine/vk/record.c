/* What can be recorded: dispatches, barriers, transfers, time stamps. */
#include <assert.h>
#include <inttypes.h>

#include "vk/device.h"

/* ---- dispatch ---- */

static VkResult add_set_pool(gpu_device *device, gpu_commands *commands)
{
    VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, GPU_SETS_PER_POOL * GPU_MAX_BINDINGS},
        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, GPU_SETS_PER_POOL * GPU_MAX_BINDINGS},
    };
    VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = GPU_SETS_PER_POOL,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    gpu_set_pool *pool = vka_alloc(&device->allocator, 1, sizeof(*pool));
    VkResult result;

    if (!pool)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    result = device->fn.CreateDescriptorPool(device->handle, &info, NULL, &pool->handle);
    if (result != VK_SUCCESS) {
        vka_free(&device->allocator, pool);
        return result;
    }
    pool->next = commands->sets;
    commands->sets = pool;
    return VK_SUCCESS;
}

static VkResult allocate_set(gpu_device *device, gpu_commands *commands, const gpu_pipeline *pipeline,
                             VkDescriptorSet *set)
{
    VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorSetCount = 1,
        .pSetLayouts = &pipeline->set_layout,
    };
    gpu_set_pool *pool = commands->sets;
    VkResult result = VK_SUCCESS;

    while (pool && pool->used == GPU_SETS_PER_POOL)
        pool = pool->next;
    if (!pool)
        result = add_set_pool(device, commands);
    if (result != VK_SUCCESS)
        return result;
    if (!pool)
        pool = commands->sets;
    info.descriptorPool = pool->handle;
    result = device->fn.AllocateDescriptorSets(device->handle, &info, set);
    if (result == VK_SUCCESS)
        pool->used++;
    return result;
}

static vka_status check_dispatch(const gpu_device *device, const gpu_pipeline *pipeline, uint32_t binding_count,
                                 uint32_t push_bytes, const uint32_t groups[3], vka_error *error)
{
    const gpu_pipeline_desc *desc = &pipeline->desc;

    if (binding_count != desc->storage_bindings + desc->texel_bindings || push_bytes != desc->push_bytes)
        return gpu_fail(device, error, VKA_ERR_ARGUMENT,
                        "kernel '%s' takes %u bindings and %u bytes of push constants, not %u and %u", desc->name,
                        desc->storage_bindings + desc->texel_bindings, desc->push_bytes, binding_count, push_bytes);
    for (int axis = 0; axis < 3; axis++)
        if (groups[axis] > device->caps.max_groups[axis])
            return gpu_fail(device, error, VKA_ERR_LIMIT,
                            "kernel '%s' would run %u workgroups along %c, but device '%s' allows %u", desc->name,
                            groups[axis], "xyz"[axis], device -> info -> name, device -> caps.max_groups[axis]);
    return VKA_OK;
}

static vka_status check_storage(const gpu_device *device, const gpu_binding *binding, uint64_t bytes, vka_error *error)
{
    uint64_t alignment = device->physical->limits.minStorageBufferOffsetAlignment;

    if (binding->offset % alignment != 0)
        return gpu_fail(device, error, VKA_ERR_ARGUMENT,
                        "'%s' is bound at offset %" PRIu64 ", which is no multiple of %" PRIu64, binding->buffer->name,
                        binding->offset, alignment);
    if (bytes > device->caps.max_range)
        return gpu_fail(device, error, VKA_ERR_LIMIT,
                        "%" PRIu64 " bytes of '%s' are bound, but maxStorageBufferRange of device '%s' is %" PRIu64,
                        bytes, binding->buffer->name, device->info->name, device->caps.max_range);
    return VKA_OK;
}

/* Where descriptors are put together; vkUpdateDescriptorSets reads them at once. */
typedef struct set_writes {
    VkDescriptorBufferInfo buffers[GPU_MAX_BINDINGS];
    VkBufferView views[GPU_MAX_BINDINGS];
    VkWriteDescriptorSet writes[GPU_MAX_BINDINGS];
} set_writes;

static vka_status describe(gpu_device *device, const gpu_binding *binding, bool texel, uint32_t i, set_writes *out,
                           vka_error *error)
{
    gpu_buffer *buffer = binding->buffer;
    uint64_t bytes = binding->bytes;

    if (binding->offset >= buffer->bytes || bytes > buffer->bytes - binding->offset ||
        texel != (binding->texel != GPU_TEXEL_NONE))
        return gpu_fail(device, error, VKA_ERR_ARGUMENT,
                        "binding %u: bytes %" PRIu64 " to +%" PRIu64 " of '%s' (%" PRIu64 " bytes), texel format %d", i,
                        binding->offset, bytes, buffer->name, buffer->bytes, (int)binding->texel);
    if (bytes == 0)
        bytes = buffer->bytes - binding->offset;
    out->writes[i] = (VkWriteDescriptorSet){
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstBinding = i,
        .descriptorCount = 1,
        .descriptorType = texel ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &out->buffers[i],
        .pTexelBufferView = &out->views[i],
    };
    out->buffers[i] = (VkDescriptorBufferInfo){buffer->handle, binding->offset, bytes};
    if (texel)
        return gpu_buffer_view(buffer, binding->offset, bytes, binding->texel, &out->views[i], error);
    return check_storage(device, binding, bytes, error);
}

static vka_status bind(gpu_commands *commands, const gpu_pipeline *pipeline, const gpu_binding *bindings,
                       uint32_t count, vka_error *error)
{
    gpu_device *device = commands->device;
    VkDescriptorSet set = VK_NULL_HANDLE;
    set_writes parts;
    VkResult result;

    for (uint32_t i = 0; i < count; i++) {
        vka_status status = describe(device, &bindings[i], i >= pipeline->desc.storage_bindings, i, &parts, error);

        if (status != VKA_OK)
            return status;
    }
    result = allocate_set(device, commands, pipeline, &set);
    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result, "no descriptors for kernel '%s' on device '%s'", pipeline->desc.name,
                           device->info->name);
    for (uint32_t i = 0; i < count; i++)
        parts.writes[i].dstSet = set;
    device->fn.UpdateDescriptorSets(device->handle, count, parts.writes, 0, NULL);
    device->fn.CmdBindPipeline(commands->handle, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    device->fn.CmdBindDescriptorSets(commands->handle, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout, 0, 1, &set, 0,
                                     NULL);
    return VKA_OK;
}

vka_status gpu_cmd_dispatch(gpu_commands *commands, gpu_pipeline *pipeline, const gpu_binding *bindings,
                            uint32_t binding_count, const void *push, uint32_t push_bytes, uint32_t groups_x,
                            uint32_t groups_y, uint32_t groups_z, vka_error *error)
{
    gpu_device *device = commands->device;
    const uint32_t groups[3] = {groups_x, groups_y, groups_z};
    vka_status status = gpu_check_lost(device, error);

    if (status == VKA_OK)
        status = check_dispatch(device, pipeline, binding_count, push_bytes, groups, error);
    if (status == VKA_OK)
        status = bind(commands, pipeline, bindings, binding_count, error);
    if (status != VKA_OK)
        return status;
    if (push_bytes > 0)
        device->fn.CmdPushConstants(commands->handle, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes,
                                    push);
    device->fn.CmdDispatch(commands->handle, groups_x, groups_y, groups_z);
    return VKA_OK;
}

/* ---- barriers, transfers, timestamps ---- */

typedef struct stage_row {
    uint32_t stage;
    VkPipelineStageFlags flags;
    VkAccessFlags reads, writes;
} stage_row;

static const stage_row stages[] = {
    {GPU_STAGE_COMPUTE, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT, VK_ACCESS_SHADER_WRITE_BIT},
    {GPU_STAGE_TRANSFER, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
    {GPU_STAGE_HOST, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT, VK_ACCESS_HOST_WRITE_BIT},
};

void gpu_cmd_barrier(gpu_commands *commands, uint32_t from, uint32_t to)
{
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    VkPipelineStageFlags from_flags = 0;
    VkPipelineStageFlags to_flags = 0;

    assert(from && to);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        if (from & stages[i].stage) {
            from_flags |= stages[i].flags;
            barrier.srcAccessMask |= stages[i].writes;
        }
        if (to & stages[i].stage) {
            to_flags |= stages[i].flags;
            barrier.dstAccessMask |= stages[i].reads | stages[i].writes;
        }
    }
    commands->device->fn.CmdPipelineBarrier(commands->handle, from_flags, to_flags, 0, 1, &barrier, 0, NULL, 0, NULL);
}

void gpu_cmd_copy(gpu_commands *commands, gpu_buffer *from, uint64_t from_offset, gpu_buffer *to, uint64_t to_offset,
                  uint64_t bytes)
{
    VkBufferCopy region = {.srcOffset = from_offset, .dstOffset = to_offset, .size = bytes};

    assert(from_offset <= from->bytes && bytes <= from->bytes - from_offset);
    assert(to_offset <= to->bytes && bytes <= to->bytes - to_offset);
    if (bytes > 0)
        commands->device->fn.CmdCopyBuffer(commands->handle, from->handle, to->handle, 1, &region);
}

void gpu_cmd_fill(gpu_commands *commands, gpu_buffer *to, uint64_t offset, uint64_t bytes, uint32_t word)
{
    assert(offset % 4 == 0 && bytes % 4 == 0 && offset <= to->bytes && bytes <= to->bytes - offset);
    if (bytes > 0)
        commands->device->fn.CmdFillBuffer(commands->handle, to->handle, offset, bytes, word);
}

void gpu_cmd_timestamp(gpu_commands *commands, uint32_t slot)
{
    assert(slot < GPU_MAX_TIMESTAMPS);
    if (!commands->queries)
        return;
    /* The bottom of the pipe is reached when all earlier commands are done. */
    commands->device->fn.CmdWriteTimestamp(commands->handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, commands->queries,
                                           slot);
    commands->stamped |= 1ull << slot;
}
