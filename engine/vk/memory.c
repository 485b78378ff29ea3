/* Device memory: few large blocks per memory type, cut into segments, first fit.
 *
 * A block is a list of segments that cover it, used or free; freeing merges a segment with free neighbours and never
 * needs host memory. Blocks are mapped once, for as long as they live. */
#include <inttypes.h>

#include "vk/device.h"

enum { BLOCK_BYTES = 64 << 20 };

/* In order of preference: the first type that has all flags of the first row that any type has. */
typedef struct preference {
    gpu_memory kind;
    uint64_t needs; /* capability bits */
    VkMemoryPropertyFlags flags;
} preference;

static const preference preferences[] = {
    {GPU_MEMORY_DEVICE, VKA_CAP_BIT(VKA_CAP_HOST_CACHED),
     VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {GPU_MEMORY_DEVICE, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
    {GPU_MEMORY_UPLOAD, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
    {GPU_MEMORY_UPLOAD, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {GPU_MEMORY_DOWNLOAD, 0,
     VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {GPU_MEMORY_DOWNLOAD, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {GPU_MEMORY_DOWNLOAD, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
};

static const VkMemoryPropertyFlags never = VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                                           VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                           VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

/* UINT32_MAX when there is none. */
static uint32_t find_type(const gpu_device *device, uint32_t allowed, gpu_memory kind)
{
    const VkPhysicalDeviceMemoryProperties *memory = &device->physical->memory;

    for (size_t row = 0; row < sizeof(preferences) / sizeof(preferences[0]); row++) {
        const preference *p = &preferences[row];

        if (p->kind != kind || (p->needs & ~device->caps.bits))
            continue;
        for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
            VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;

            if ((allowed & (1u << i)) && (flags & p->flags) == p->flags && !(flags & never))
                return i;
        }
    }
    return UINT32_MAX;
}

static VkMemoryPropertyFlags type_flags(const gpu_device *device, uint32_t type)
{
    return device->physical->memory.memoryTypes[type].propertyFlags;
}

/* ---- segments ---- */

/* Cuts `segment` in two at `bytes`; the second part is free. False when there is no host memory. */
static bool split(const gpu_device *device, gpu_segment *segment, uint64_t bytes)
{
    gpu_segment *second;

    if (bytes == segment->bytes)
        return true;
    second = vka_alloc(&device->allocator, 1, sizeof(*second));
    if (!second)
        return false;
    second->offset = segment->offset + bytes;
    second->bytes = segment->bytes - bytes;
    second->previous = segment;
    second->next = segment->next;
    if (second->next)
        second->next->previous = second;
    segment->next = second;
    segment->bytes = bytes;
    return true;
}

/* Joins `segment` with the one behind it when both are free. */
static void join(const gpu_device *device, gpu_segment *segment)
{
    gpu_segment *second = segment ? segment->next : NULL;

    if (!second || segment->used || second->used)
        return;
    segment->bytes += second->bytes;
    segment->next = second->next;
    if (segment->next)
        segment->next->previous = segment;
    vka_free(&device->allocator, second);
}

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Takes `bytes` from the first free segment of `block` that has room; NULL when there is none. */
static gpu_segment *take(const gpu_device *device, gpu_block *block, uint64_t bytes, uint64_t alignment)
{
    for (gpu_segment *segment = block->segments; segment; segment = segment->next) {
        uint64_t gap = round_up(segment->offset, alignment) - segment->offset;

        if (segment->used || segment->bytes < gap || segment->bytes - gap < bytes)
            continue;
        if (gap > 0) {
            if (!split(device, segment, gap))
                return NULL;
            segment = segment->next;
        }
        if (!split(device, segment, bytes)) {
            join(device, segment->previous);
            return NULL;
        }
        segment->used = true;
        return segment;
    }
    return NULL;
}

/* ---- blocks ---- */

static void block_destroy(gpu_device *device, gpu_block *block)
{
    if (block->handle)
        device->fn.FreeMemory(device->handle, block->handle, NULL); /* unmaps too */
    vka_free(&device->allocator, block->segments);
    vka_free(&device->allocator, block);
}

static VkResult block_allocate(gpu_device *device, gpu_block *block)
{
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = block->bytes,
        .memoryTypeIndex = block->type,
    };
    VkResult result = device->fn.AllocateMemory(device->handle, &info, NULL, &block->handle);
    void *mapped = NULL;

    if (result != VK_SUCCESS) {
        block->handle = VK_NULL_HANDLE;
        return result;
    }
    device->use.allocations++;
    if (type_flags(device, block->type) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {
        result = device->fn.MapMemory(device->handle, block->handle, 0, VK_WHOLE_SIZE, 0, &mapped);
        if (result != VK_SUCCESS)
            return result;
    }
    block->mapped = mapped;
    return VK_SUCCESS;
}

static VkResult block_create(gpu_block **out, gpu_device *device, uint64_t bytes, uint32_t type)
{
    gpu_block *block = vka_alloc(&device->allocator, 1, sizeof(*block));
    gpu_segment *segment = vka_alloc(&device->allocator, 1, sizeof(*segment));
    VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;

    if (!block || !segment)
        goto fail;
    block->bytes = bytes;
    block->type = type;
    segment->bytes = bytes;
    result = block_allocate(device, block);
    if (result != VK_SUCCESS) {
        if (block->handle)
            device->fn.FreeMemory(device->handle, block->handle, NULL);
        goto fail;
    }
    block->segments = segment;
    block->next = device->blocks;
    device->blocks = block;
    *out = block;
    return VK_SUCCESS;
fail:
    vka_free(&device->allocator, segment);
    vka_free(&device->allocator, block);
    return result;
}

/* A new block of the usual size, or when the driver will not give that, one that just fits. */
static VkResult add_block(gpu_block **out, gpu_device *device, uint64_t bytes, uint32_t type)
{
    uint64_t usual = device->caps.max_alloc < BLOCK_BYTES ? device->caps.max_alloc : BLOCK_BYTES;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;

    if (bytes < usual)
        result = block_create(out, device, usual, type);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        result = block_create(out, device, bytes, type);
    return result;
}

static bool is_empty(const gpu_block *block)
{
    return !block->segments->used && !block->segments->next;
}

static void count_use(gpu_device *device, gpu_memory kind, uint64_t bytes, bool add)
{
    uint64_t *sum = kind == GPU_MEMORY_DEVICE ? &device->use.device_bytes : &device->use.host_bytes;

    *sum = add ? *sum + bytes : *sum - bytes;
}

static void drop_if_empty(gpu_device *device, gpu_block *block)
{
    gpu_block **link = &device->blocks;

    if (!is_empty(block))
        return;
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    block_destroy(device, block);
}

vka_status gpu_memory_allocate(gpu_allocation *out, gpu_device *device, const VkMemoryRequirements *needs,
                               gpu_memory kind, const char *name, vka_error *error)
{
    /* Flushed ranges of two buffers never share an atom. */
    uint64_t atom = device->physical->limits.nonCoherentAtomSize;
    uint64_t alignment = needs->alignment > atom ? needs->alignment : atom;
    uint64_t bytes = round_up(needs->size, alignment);
    uint32_t type = find_type(device, needs->memoryTypeBits, kind);
    gpu_allocation found = {0};
    VkResult result = VK_SUCCESS;

    if (type == UINT32_MAX)
        return gpu_fail(device, error, VKA_ERR_UNSUPPORTED, "device '%s' has no memory type for '%s'",
                        device->info->name, name);
    for (gpu_block *block = device->blocks; block && !found.segment; block = block->next) {
        if (block->type != type)
            continue;
        found.block = block;
        found.segment = take(device, block, bytes, alignment);
    }
    if (!found.segment)
        result = add_block(&found.block, device, bytes, type);
    if (result != VK_SUCCESS)
        return gpu_fail_vk(device, error, result,
                           "cannot allocate %" PRIu64 " bytes for '%s' on device '%s': %" PRIu64
                           " bytes in use by this context, %" PRIu64 " left",
                           bytes, name, device->info->name, device->use.device_bytes + device->use.host_bytes,
                           gpu_memory_available(device));
    if (!found.segment)
        found.segment = take(device, found.block, bytes, alignment);
    if (!found.segment) {
        drop_if_empty(device, found.block);
        return gpu_fail(device, error, VKA_ERR_HOST_MEMORY, "no host memory to place '%s' in a block", name);
    }
    count_use(device, kind, found.segment->bytes, true);
    *out = found;
    return VKA_OK;
}

void gpu_memory_free(gpu_device *device, gpu_memory kind, gpu_allocation *allocation)
{
    gpu_segment *segment = allocation->segment;

    if (!segment)
        return;
    count_use(device, kind, segment->bytes, false);
    segment->used = false;
    join(device, segment);
    join(device, segment->previous);
    drop_if_empty(device, allocation->block);
    *allocation = (gpu_allocation){0};
}

VkMemoryPropertyFlags gpu_memory_flags(const gpu_device *device, const gpu_allocation *allocation)
{
    return type_flags(device, allocation->block->type);
}

/* What the driver says is left in device-local heaps for this process. */
static uint64_t budget_left(const gpu_device *device)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                .pNext = &budget};
    uint64_t left = 0;

    device->instance->fn.GetPhysicalDeviceMemoryProperties2(device->physical->handle, &memory);
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++)
        if ((memory.memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
            budget.heapBudget[i] > budget.heapUsage[i])
            left += budget.heapBudget[i] - budget.heapUsage[i];
    return left;
}

uint64_t gpu_memory_available(const gpu_device *device)
{
    uint64_t own = 0;

    if (device->caps.bits & VKA_CAP_BIT(VKA_CAP_MEMORY_BUDGET))
        return budget_left(device);
    for (const gpu_block *block = device->blocks; block; block = block->next)
        if (type_flags(device, block->type) & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
            own += block->bytes;
    return device->info->memory_bytes > own ? device->info->memory_bytes - own : 0;
}
