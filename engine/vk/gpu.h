/* Everything the rest of the engine sees of Vulkan, without Vulkan's own headers.
 *
 * A gpu_instance finds devices; a gpu_device is one opened VkDevice with one compute queue, its own function table,
 * timeline semaphore, memory blocks, pipelines and command buffers. Nothing here is thread-safe: one thread per device
 * at a time. All destroy functions accept NULL, *NULL and half-built objects. */
#ifndef VKA_VK_GPU_H
#define VKA_VK_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/caps.h"
#include "base/log.h"
#include "vkattn/context.h"

typedef struct gpu_instance gpu_instance;
typedef struct gpu_device gpu_device;
typedef struct gpu_buffer gpu_buffer;
typedef struct gpu_pipeline gpu_pipeline;
typedef struct gpu_commands gpu_commands;

/* ---- instance and enumeration ---- */

/* Uses params->get_instance_proc (or the system loader), validation, log and realloc. */
vka_status gpu_instance_create(gpu_instance **out, const vka_context_params *params, vka_error *error);
void gpu_instance_destroy(gpu_instance **instance);
uint32_t gpu_instance_count(const gpu_instance *instance);
const vka_device_info *gpu_instance_info(const gpu_instance *instance, uint32_t index);

/* ---- device choice: pure functions over device facts (vk/choose.c) ---- */

/* Sets duplicate_of and note where the same GPU is shown through two drivers (vk/duplicates.c). */
void gpu_mark_duplicates(vka_device_info *devices, uint32_t count);
/* Parses the device grammar; chosen[] gets indices (repeats allowed); VKA_ERR_ARGUMENT lists what there is. */
vka_status gpu_choose(const vka_device_info *devices, uint32_t count, const char *grammar, uint32_t *chosen,
                      uint32_t capacity, uint32_t *chosen_count, vka_error *error);
/* Applies a `pretend` text to caps (vk/pretend.c, pure). NULL or "" changes nothing. */
vka_status gpu_pretend(vka_caps *caps, const char *text, vka_error *error);

/* ---- device ---- */

typedef struct gpu_device_params {
    uint32_t physical; /* index in the instance's list */
    uint32_t position; /* position in the context's device list, used in errors */
    const char *pretend;
    const char *pipeline_cache_dir; /* NULL: no cache on disk; see gpu_pipeline_cache_dir() */
    bool cache_software_pipelines; /* on disk for CPU devices too, whose drivers keep nothing useful there: for tests */
} gpu_device_params;

/* The folder that `params` asks for, or the default; false when there is to be no cache on disk (or no home folder). */
bool gpu_pipeline_cache_dir(const vka_context_params *params, char *out, size_t size);

vka_status gpu_device_open(gpu_device **out, gpu_instance *instance, const gpu_device_params *params, vka_error *error);
void gpu_device_close(gpu_device **device);                /* waits for the queue first */
const vka_caps *gpu_device_caps(const gpu_device *device); /* after quirks and pretend */
const vka_device_info *gpu_device_info(const gpu_device *device);
void gpu_device_memory(const gpu_device *device, vka_memory_use *use);

/* ---- buffers ---- */

typedef enum gpu_memory {
    GPU_MEMORY_DEVICE,   /* fastest for shaders; mapped too where such memory is host-visible (prefer host-cached) */
    GPU_MEMORY_UPLOAD,   /* host writes, device reads */
    GPU_MEMORY_DOWNLOAD, /* device writes, host reads: host-cached where there is such a type */
} gpu_memory;

/* Checks the limits (VKA_ERR_LIMIT), sub-allocates from large blocks, binds. Usage: storage, uniform texel, transfer
 * both ways. `name` is static text for errors ("qkv weights panel"). Contents are undefined. An out-of-memory error
 * says what was asked, for which tensor, and what is left. */
vka_status gpu_buffer_create(gpu_buffer **out, gpu_device *device, uint64_t bytes, gpu_memory memory, const char *name,
                             vka_error *error);
/* Waits for submitted work that nobody waited for yet, since it may use the buffer. */
void gpu_buffer_destroy(gpu_buffer **buffer);
uint64_t gpu_buffer_bytes(const gpu_buffer *buffer);
void *gpu_buffer_map(const gpu_buffer *buffer);        /* persistent mapping, or NULL when not host-visible */
bool gpu_buffer_host_cached(const gpu_buffer *buffer); /* mapped, and reads are fast */
/* No-ops on coherent memory. flush: after host writes; invalidate: before host reads. */
vka_status gpu_buffer_flush(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, vka_error *error);
vka_status gpu_buffer_invalidate(gpu_buffer *buffer, uint64_t offset, uint64_t bytes, vka_error *error);

/* ---- pipelines ---- */

#define GPU_MAX_BINDINGS 8
#define GPU_MAX_SPEC     16

typedef struct gpu_pipeline_desc {
    const char *name;
    const uint32_t *spirv; /* static storage: its address is part of the identity */
    size_t spirv_bytes;
    uint32_t spec_count;
    uint32_t spec[GPU_MAX_SPEC]; /* value of specialisation constant id i */
    uint32_t local_size;         /* invocations per workgroup, checked against the limits */
    uint32_t shared_bytes;       /* checked against the limits */
    uint32_t storage_bindings;   /* bindings 0 .. n-1 are storage buffers */
    uint32_t texel_bindings;     /* then uniform texel buffers */
    uint32_t push_bytes;
} gpu_pipeline_desc;

/* Created on first use, then shared: once per device and description. The device owns it. */
vka_status gpu_pipeline_get(gpu_device *device, const gpu_pipeline_desc *desc, gpu_pipeline **out, vka_error *error);
uint32_t gpu_pipeline_count(const gpu_device *device); /* pipelines made so far */

/* ---- recording ---- */

typedef enum gpu_texel_format { GPU_TEXEL_NONE = 0, GPU_TEXEL_RGBA32F, GPU_TEXEL_RGBA32UI } gpu_texel_format;

typedef struct gpu_binding {
    gpu_buffer *buffer;
    uint64_t offset; /* bytes; a multiple of caps.texel_alignment for texel views, of 256 (always enough) for storage */
    uint64_t bytes;  /* 0: to the end; a multiple of 16 for texel views */
    gpu_texel_format texel;
} gpu_binding;

/* Stages for barriers. */
enum {
    GPU_STAGE_COMPUTE = 1,
    GPU_STAGE_TRANSFER = 2,
    GPU_STAGE_HOST = 4,
};

/* One commands object per device may be recording at a time; it is reset and reused (no allocation in steady state). */
vka_status gpu_commands_begin(gpu_device *device, gpu_commands **out, vka_error *error);
/* groups of 0 in any axis: an empty dispatch. Checked against the limits (VKA_ERR_LIMIT). */
vka_status gpu_cmd_dispatch(gpu_commands *commands, gpu_pipeline *pipeline, const gpu_binding *bindings,
                            uint32_t binding_count, const void *push, uint32_t push_bytes, uint32_t groups_x,
                            uint32_t groups_y, uint32_t groups_z, vka_error *error);
/* A global memory barrier: writes of `from` stages are visible to reads and writes of `to` stages (bit sets). */
void gpu_cmd_barrier(gpu_commands *commands, uint32_t from, uint32_t to);
void gpu_cmd_copy(gpu_commands *commands, gpu_buffer *from, uint64_t from_offset, gpu_buffer *to, uint64_t to_offset,
                  uint64_t bytes);
/* bytes and offset multiples of 4 */
void gpu_cmd_fill(gpu_commands *commands, gpu_buffer *to, uint64_t offset, uint64_t bytes, uint32_t word);
#define GPU_MAX_TIMESTAMPS 64
/* Writes slot 0 .. GPU_MAX_TIMESTAMPS-1 when all earlier work is done; ignored where there are no timestamps. */
void gpu_cmd_timestamp(gpu_commands *commands, uint32_t slot);

/* Ends recording and submits; *ticket is the timeline value that is reached when it is done. */
vka_status gpu_submit(gpu_commands *commands, uint64_t *ticket, vka_error *error);
/* Drops a recording that will not be submitted. NULL is accepted. */
void gpu_commands_abandon(gpu_commands *commands);
/* Blocks until the ticket is reached. */
vka_status gpu_wait(gpu_device *device, uint64_t ticket, vka_error *error);
/* Milliseconds from slot `from` to slot `to` of the last finished submission; -1 where there are no timestamps. */
double gpu_elapsed_ms(gpu_device *device, uint32_t from, uint32_t to);

#endif
