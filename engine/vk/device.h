/* Inside vk/: an opened device and the things it owns. */
#ifndef VKA_VK_DEVICE_H
#define VKA_VK_DEVICE_H

#include "base/error.h"
#include "vk/instance.h"

/* ---- memory.c: few large blocks, cut into segments ---- */

typedef struct gpu_segment {
    uint64_t offset, bytes;
    bool used;
    struct gpu_segment *previous, *next; /* neighbours in the block */
} gpu_segment;

typedef struct gpu_block {
    VkDeviceMemory handle;
    uint64_t bytes;
    uint32_t type;         /* memory type index */
    uint8_t *mapped;       /* NULL when not host-visible */
    gpu_segment *segments; /* the first; they cover the block */
    struct gpu_block *next;
} gpu_block;

typedef struct gpu_allocation {
    gpu_block *block;
    gpu_segment *segment;
} gpu_allocation;

vka_status gpu_memory_allocate(gpu_allocation *out, gpu_device *device, const VkMemoryRequirements *needs,
                               gpu_memory kind, const char *name, vka_error *error);
/* Accepts an empty allocation. A block without users is given back to the driver. */
void gpu_memory_free(gpu_device *device, gpu_memory kind, gpu_allocation *allocation);
VkMemoryPropertyFlags gpu_memory_flags(const gpu_device *device, const gpu_allocation *allocation);
/* Bytes that can still be had from device-local heaps. */
uint64_t gpu_memory_available(const gpu_device *device);

/* ---- buffer.c ---- */

typedef struct gpu_view {
    VkBufferView handle;
    uint64_t offset, bytes;
    gpu_texel_format format;
    struct gpu_view *next;
} gpu_view;

struct gpu_buffer {
    gpu_device *device;
    VkBuffer handle;
    gpu_allocation memory;
    uint64_t bytes;
    uint64_t created_bytes; /* of the VkBuffer: `bytes` and a tail, see buffer.c */
    gpu_memory kind;
    const char *name;
    gpu_view *views; /* made on first use, destroyed with the buffer */
};

/* Checks a texel binding against the limits and returns its view. */
vka_status gpu_buffer_view(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, gpu_texel_format format,
                           VkBufferView *view, vka_error *error);

/* ---- pipeline.c, pipeline_cache.c ---- */

/* One SPIR-V module and what the driver caches for it. Some drivers share compiled code only within one module and
 * cache object, so both are kept. */
typedef struct gpu_module {
    const uint32_t *spirv;
    VkShaderModule handle;
    VkPipelineCache cache;
    char *cache_path; /* NULL: not kept on disk */
    char *cache_key;
    size_t loaded_bytes; /* of cache data found on disk */
    struct gpu_module *next;
} gpu_module;

struct gpu_pipeline {
    gpu_pipeline_desc desc; /* name and spirv point to static storage */
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
    struct gpu_pipeline *next;
};

void gpu_pipelines_destroy(gpu_device *device);
/* Makes module->cache, from disk where a valid file is there. */
vka_status gpu_pipeline_cache_open(gpu_device *device, gpu_module *module, size_t spirv_bytes, vka_error *error);
/* Writes what is new to disk; failures are only logged. */
void gpu_pipeline_cache_save(gpu_device *device, const gpu_module *module);

/* ---- commands.c, record.c, submit.c ---- */

enum {
    GPU_MAX_IN_FLIGHT = 4, /* recordings that may wait for the device */
    GPU_SETS_PER_POOL = 64,
};

typedef struct gpu_set_pool {
    VkDescriptorPool handle;
    uint32_t used;
    struct gpu_set_pool *next;
} gpu_set_pool;

struct gpu_commands {
    gpu_device *device;
    VkCommandPool pool;
    VkCommandBuffer handle;
    VkQueryPool queries; /* VK_NULL_HANDLE without timestamps */
    uint64_t stamped;    /* bit i: slot i was written */
    gpu_set_pool *sets;  /* grows, never shrinks */
    uint64_t ticket;     /* of its last submission, 0 before the first */
};

/* The highest ticket that is known to be done. Does not wait. */
vka_status gpu_poll(gpu_device *device, vka_error *error);
/* Waits for everything submitted, also after an error; for those who destroy what it may use. */
void gpu_settle(gpu_device *device);
void gpu_commands_destroy(gpu_device *device);

/* ---- device.c ---- */

struct gpu_device {
    gpu_instance *instance;
    const gpu_physical *physical;
    const vka_device_info *info;
    vka_allocator allocator;
    vka_log log;
    uint32_t position;
    bool lost;     /* sticky */
    bool unmapped; /* `pretend` took VKA_CAP_HOST_CACHED away: device buffers are not mapped */
    vka_caps caps;
    gpu_device_table fn;
    VkDevice handle;
    VkQueue queue;
    VkSemaphore timeline;
    uint64_t last_ticket;      /* submitted */
    uint64_t completed_ticket; /* known to be done */

    gpu_block *blocks;
    vka_memory_use use;

    gpu_module *modules;
    gpu_pipeline *pipelines;
    uint32_t pipeline_count;
    char *cache_dir; /* NULL: no pipeline cache on disk */

    gpu_commands *commands[GPU_MAX_IN_FLIGHT];
    uint32_t commands_count;
    gpu_commands *recording;
    uint64_t stamps[GPU_MAX_TIMESTAMPS]; /* of the submission `stamps_ticket` */
    uint64_t stamps_valid;               /* bit i: slot i has a value */
    uint64_t stamps_ticket;
};

/* Puts the device's position into an error that vka_fail() filled. */
vka_status gpu_on_device(const gpu_device *device, vka_status status, vka_error *error);

/* Errors of this device: of our own, and of a Vulkan call. */
#define gpu_fail(device, error, status, ...)                                                                           \
    gpu_on_device((device), vka_fail_at((error), (status), __func__, __VA_ARGS__), (error))
#define gpu_fail_vk(device, error, result, ...)                                                                        \
    ((device)->lost |= (result) == VK_ERROR_DEVICE_LOST,                                                               \
     vka_fail_vk_at((error), (result), (int32_t)(device)->position, __func__, __VA_ARGS__))

/* VKA_OK, or VKA_ERR_DEVICE_LOST once any call has said so. */
vka_status gpu_check_lost(const gpu_device *device, vka_error *error);

#endif
