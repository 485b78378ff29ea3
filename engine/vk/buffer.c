/* Buffers: a VkBuffer bound into a block, and the texel views of it that dispatches asked for. */
#include <assert.h>
#include <inttypes.h>

#include "vk/device.h"

enum { TEXEL_BYTES = 16 }; /* RGBA32 */

/* llvmpipe (Mesa 22.3) compiles a shader anew, which takes seconds, for each combination of two facts about every texel
 * view that have nothing to do with what is read: whether the size of its buffer is a power of two, and whether the
 * second byte of the view's own size is 0 (where the view of an image would have its last mip level). So buffers get a
 * tail that keeps both facts the same for all: no power of two, not 0. Kernels never use what lies in it. */
enum { TAIL_BYTES = 256, SECOND_BYTE = 0xff00 };

static uint64_t with_tail(const gpu_device *device, uint64_t bytes)
{
    uint64_t longer = bytes + TAIL_BYTES;

    if ((longer & (longer - 1)) == 0)
        longer += TEXEL_BYTES;
    return longer <= device->caps.max_buffer && longer <= device->caps.max_alloc ? longer : bytes;
}

static uint64_t view_range(const gpu_buffer *buffer, const gpu_view *view)
{
    uint64_t longer = view->bytes + TAIL_BYTES;
    bool fits =
        view->offset + longer <= buffer->created_bytes && longer / TEXEL_BYTES <= buffer->device->caps.texel_elements;

    return (view->bytes & SECOND_BYTE) == 0 && fits ? longer : view->bytes;
}

static vka_status check_limits(const gpu_device *device, uint64_t bytes, gpu_memory memory, const char *name,
                               vka_error *error)
{
    const vka_caps *caps = &device->caps;
    const struct {
        const char *limit;
        uint64_t value;
        bool applies;
    } limits[] = {
        {"maxBufferSize", caps->max_buffer, true},
        {"maxMemoryAllocationSize (less a margin)", caps->max_alloc, true},
        {"maxStorageBufferRange", caps->max_range, memory == GPU_MEMORY_DEVICE},
    };

    if (bytes == 0)
        return gpu_fail(device, error, VKA_ERR_ARGUMENT, "buffer '%s' would have 0 bytes", name);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].applies && bytes > limits[i].value)
            return gpu_fail(device, error, VKA_ERR_LIMIT,
                            "buffer '%s' needs %" PRIu64 " bytes, but %s of device '%s' is %" PRIu64, name, bytes,
                            limits[i].limit, device->info->name, limits[i].value);
    return VKA_OK;
}

static vka_status create_handle(gpu_buffer *buffer, vka_error *error)
{
    gpu_device *device = buffer->device;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = buffer->created_bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = device->fn.CreateBuffer(device->handle, &info, NULL, &buffer->handle);

    if (result == VK_SUCCESS)
        return VKA_OK;
    buffer->handle = VK_NULL_HANDLE;
    return gpu_fail_vk(device, error, result, "vkCreateBuffer failed for '%s' (%" PRIu64 " bytes) on device '%s'",
                       buffer->name, buffer->bytes, device->info->name);
}

static vka_status bind(gpu_buffer *buffer, vka_error *error)
{
    gpu_device *device = buffer->device;
    VkMemoryRequirements needs;
    vka_status status;
    VkResult result;

    device->fn.GetBufferMemoryRequirements(device->handle, buffer->handle, &needs);
    status = gpu_memory_allocate(&buffer->memory, device, &needs, buffer->kind, buffer->name, error);
    if (status != VKA_OK)
        return status;
    result = device->fn.BindBufferMemory(device->handle, buffer->handle, buffer->memory.block->handle,
                                         buffer->memory.segment->offset);
    if (result == VK_SUCCESS)
        return VKA_OK;
    return gpu_fail_vk(device, error, result, "vkBindBufferMemory failed for '%s' on device '%s'", buffer->name,
                       device->info->name);
}

vka_status gpu_buffer_create(gpu_buffer **out, gpu_device *device, uint64_t bytes, gpu_memory memory, const char *name,
                             vka_error *error)
{
    vka_status status = gpu_check_lost(device, error);
    gpu_buffer *buffer;

    if (status == VKA_OK)
        status = check_limits(device, bytes, memory, name, error);
    if (status != VKA_OK)
        return status;
    buffer = vka_alloc(&device->allocator, 1, sizeof(*buffer));
    if (!buffer)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for buffer '%s'", name);
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->created_bytes = with_tail(device, bytes);
    buffer->kind = memory;
    buffer->name = name;
    status = create_handle(buffer, error);
    if (status == VKA_OK)
        status = bind(buffer, error);
    if (status != VKA_OK) {
        gpu_buffer_destroy(&buffer);
        return status;
    }
    *out = buffer;
    return VKA_OK;
}

void gpu_buffer_destroy(gpu_buffer **buffer)
{
    gpu_buffer *dead = buffer ? *buffer : NULL;
    gpu_device *device;

    if (!dead)
        return;
    device = dead->device;
    gpu_settle(device);
    while (dead->views) {
        gpu_view *view = dead->views;

        dead->views = view->next;
        device->fn.DestroyBufferView(device->handle, view->handle, NULL);
        vka_free(&device->allocator, view);
    }
    if (dead->handle)
        device->fn.DestroyBuffer(device->handle, dead->handle, NULL);
    gpu_memory_free(device, dead->kind, &dead->memory);
    vka_free(&device->allocator, dead);
    *buffer = NULL;
}

uint64_t gpu_buffer_bytes(const gpu_buffer *buffer)
{
    return buffer->bytes;
}

void *gpu_buffer_map(const gpu_buffer *buffer)
{
    const gpu_block *block = buffer->memory.block;

    if (!block->mapped || (buffer->kind == GPU_MEMORY_DEVICE && buffer->device->unmapped))
        return NULL;
    return block->mapped + buffer->memory.segment->offset;
}

bool gpu_buffer_host_cached(const gpu_buffer *buffer)
{
    return gpu_buffer_map(buffer) &&
           (gpu_memory_flags(buffer->device, &buffer->memory) & VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
}

/* The range in its block, widened to whole atoms; a segment begins at one and its size is a multiple. */
static VkMappedMemoryRange atoms(const gpu_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    uint64_t atom = buffer->device->physical->limits.nonCoherentAtomSize;
    uint64_t begin = offset / atom * atom;
    uint64_t end = (offset + bytes + atom - 1) / atom * atom;

    if (end > buffer->memory.segment->bytes)
        end = buffer->memory.segment->bytes;
    return (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = buffer->memory.block->handle,
        .offset = buffer->memory.segment->offset + begin,
        .size = end - begin,
    };
}

static bool needs_no_flush(const gpu_buffer *buffer, uint64_t bytes)
{
    return bytes == 0 || !gpu_buffer_map(buffer) ||
           (gpu_memory_flags(buffer->device, &buffer->memory) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
}

static vka_status flush_or_invalidate(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, bool flush, vka_error *error)
{
    gpu_device *device = buffer->device;
    vka_status status = gpu_check_lost(device, error);
    VkMappedMemoryRange range;
    VkResult result;

    assert(offset <= buffer->bytes && bytes <= buffer->bytes - offset);
    if (status != VKA_OK || needs_no_flush(buffer, bytes))
        return status;
    range = atoms(buffer, offset, bytes);
    result = flush ? device->fn.FlushMappedMemoryRanges(device->handle, 1, &range)
                   : device->fn.InvalidateMappedMemoryRanges(device->handle, 1, &range);
    if (result == VK_SUCCESS)
        return VKA_OK;
    return gpu_fail_vk(device, error, result, "%s of '%s' failed on device '%s'", flush ? "flush" : "invalidate",
                       buffer->name, device->info->name);
}

vka_status gpu_buffer_flush(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, vka_error *error)
{
    return flush_or_invalidate(buffer, offset, bytes, true, error);
}

vka_status gpu_buffer_invalidate(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, vka_error *error)
{
    return flush_or_invalidate(buffer, offset, bytes, false, error);
}

/* ---- texel views ---- */

static vka_status check_view(const gpu_buffer *buffer, uint64_t offset, uint64_t bytes, vka_error *error)
{
    const gpu_device *device = buffer->device;
    const vka_caps *caps = &device->caps;

    if (offset % caps->texel_alignment != 0 || bytes == 0 || bytes % TEXEL_BYTES != 0)
        return gpu_fail(device, error, VKA_ERR_ARGUMENT,
                        "texel view of '%s' at %" PRIu64 ", %" PRIu64
                        " bytes: the offset must be a multiple of %u, the size of %d",
                        buffer->name, offset, bytes, caps->texel_alignment, TEXEL_BYTES);
    if (bytes / TEXEL_BYTES > caps->texel_elements)
        return gpu_fail(device, error, VKA_ERR_LIMIT,
                        "texel view of '%s' has %" PRIu64 " elements, but maxTexelBufferElements of device '%s' is %u",
                        buffer->name, bytes / TEXEL_BYTES, device->info->name, caps->texel_elements);
    return VKA_OK;
}

static vka_status create_view(gpu_buffer *buffer, gpu_view *view, vka_error *error)
{
    gpu_device *device = buffer->device;
    VkBufferViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
        .buffer = buffer->handle,
        .format = view->format == GPU_TEXEL_RGBA32F ? VK_FORMAT_R32G32B32A32_SFLOAT : VK_FORMAT_R32G32B32A32_UINT,
        .offset = view->offset,
        .range = view_range(buffer, view),
    };
    VkResult result = device->fn.CreateBufferView(device->handle, &info, NULL, &view->handle);

    if (result == VK_SUCCESS)
        return VKA_OK;
    return gpu_fail_vk(device, error, result, "vkCreateBufferView failed for '%s' on device '%s'", buffer->name,
                       device->info->name);
}

vka_status gpu_buffer_view(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, gpu_texel_format format,
                           VkBufferView *out, vka_error *error)
{
    gpu_device *device = buffer->device;
    vka_status status;
    gpu_view *view;

    for (view = buffer->views; view; view = view->next)
        if (view->offset == offset && view->bytes == bytes && view->format == format) {
            *out = view->handle;
            return VKA_OK;
        }
    status = check_view(buffer, offset, bytes, error);
    if (status != VKA_OK)
        return status;
    view = vka_alloc(&device->allocator, 1, sizeof(*view));
    if (!view)
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory for a view of '%s'", buffer->name);
    *view = (gpu_view){.offset = offset, .bytes = bytes, .format = format, .next = buffer->views};
    status = create_view(buffer, view, error);
    if (status != VKA_OK) {
        vka_free(&device->allocator, view);
        return status;
    }
    buffer->views = view;
    *out = view->handle;
    return VKA_OK;
}
