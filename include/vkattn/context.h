/* Devices and the context.
 *
 * A context owns one opened Vulkan device per entry of its device list (the same physical device may be listed twice),
 * their pipelines and scratch memory. Layers, caches and buffers are made from it and must be destroyed before it.
 * Thread-safety: a context and everything made from it are used by one thread at a time; concurrent use of one context
 * is answered with VKA_ERR_BUSY. Different contexts are independent. */
#ifndef VKATTN_CONTEXT_H
#define VKATTN_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/status.h"
#include "vkattn/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vka_device_type {
    VKA_DEVICE_OTHER = 0,
    VKA_DEVICE_INTEGRATED = 1,
    VKA_DEVICE_DISCRETE = 2,
    VKA_DEVICE_VIRTUAL = 3,
    VKA_DEVICE_CPU = 4,
} vka_device_type;

typedef struct vka_device_info {
    uint32_t index; /* as printed by `vkattn devices` and used by the device grammar */
    vka_device_type type;
    char name[256];
    char driver_name[256];
    char driver_info[256];
    uint32_t driver_id;      /* VkDriverId */
    uint32_t driver_version; /* vendor-specific encoding */
    uint32_t api_version;    /* Vulkan encoding */
    uint32_t vendor_id, device_id;
    uint8_t device_uuid[16];
    uint8_t driver_uuid[16];
    uint32_t has_pci; /* nonzero: the four below are valid */
    uint32_t pci_domain, pci_bus, pci_device, pci_function;
    uint64_t memory_bytes;        /* sum of device-local heaps */
    uint64_t max_storage_range;   /* maxStorageBufferRange */
    uint64_t max_buffer_bytes;    /* maxBufferSize, or UINT64_MAX where the driver does not tell */
    uint64_t max_allocation_bytes;/* maxMemoryAllocationSize */
    uint32_t subgroup_size;
    uint32_t max_workgroup_invocations;
    uint32_t shared_memory_bytes;
    uint32_t timestamp_bits; /* 0: no GPU timestamps on the queue used */
    uint32_t usable;         /* zero: see `note` */
    int32_t duplicate_of;    /* index of the entry that shows the same GPU through a preferred driver, or -1 */
    char note[256];          /* why it is not usable, or why it is left out of `all`; else empty */
} vka_device_info;

typedef void (*vka_log_fn)(void *user, int level, const char *message); /* level: 0 error, 1 warning, 2 info */

/* Host allocation callbacks; all or none. `realloc`-like: size 0 frees, pointer NULL allocates. */
typedef void *(*vka_realloc_fn)(void *user, void *pointer, size_t size);

typedef void (*vka_proc_fn)(void);
/* Same shape as PFN_vkGetInstanceProcAddr (instance is a VkInstance or NULL). */
typedef vka_proc_fn (*vka_get_proc_fn)(void *instance, const char *name);

typedef struct vka_context_params {
    uint32_t struct_size; /* sizeof(vka_context_params) */

    /* Device grammar, comma-separated: N (index as listed), uuid:HEX, pci:DDDD:BB:DD.F, name:SUBSTRING (must match one
     * device), type:discrete|integrated|cpu, all. NULL: all. An index may be repeated to open a device twice. */
    const char *devices;

    /* Pretend a lesser device, comma-separated: floor | max_alloc=BYTES | max_range=BYTES | max_buffer=BYTES |
     * max_invocations=N | shared=BYTES | no=CAP+CAP...; BYTES takes KiB, MiB, GiB. NULL: as the device is. Capability
     * names are listed by vka_capability_name(). A value above the device's own is refused. */
    const char *pretend;

    /* Force kernel variants, comma-separated names (see vka_context_variant); NULL: what tuning chose, else the highest
     * priority whose needs are met. A forced variant that the device cannot run is refused with the reason. */
    const char *variants;

    uint32_t submit_budget_ms; /* time budget of one submission; 0: 500 for GPUs, 2000 for CPU devices */
    uint32_t validation;       /* nonzero: enable the Khronos validation layer with synchronisation validation; its
                                  messages go to `log` at level 0 */
    uint32_t no_pipeline_cache;/* nonzero: neither read nor write the pipeline cache on disk */
    const char *pipeline_cache_dir; /* NULL: $XDG_CACHE_HOME/vkattn, or $HOME/.cache/vkattn */

    vka_get_proc_fn get_instance_proc; /* NULL: the system's Vulkan loader */
    vka_log_fn log;                    /* NULL: silent */
    void *log_user;
    vka_realloc_fn realloc; /* NULL: malloc, realloc, free */
    void *realloc_user;

    /* Choices of vka_tune() (vkattn/tune.h) are read when the context is made, one file for each device, driver and
     * version of the library; a damaged or foreign file is passed over with a warning. Without such a call nothing is
     * ever written. */
    const char *tuning_cache_dir; /* NULL: $XDG_CACHE_HOME/vkattn/tuning, or $HOME/.cache/vkattn/tuning */
    uint32_t no_tuning_cache;     /* nonzero: neither read nor write tuned choices */
} vka_context_params;

typedef struct vka_context vka_context;

/* Lists every Vulkan device; needs no context. `params` (may be NULL) supplies get_instance_proc. On success *count is
 * the number found and up to `capacity` entries are written. VKA_ERR_NO_DEVICE says what to install. */
VKA_API vka_status vka_device_list(const vka_context_params *params, vka_device_info *devices, uint32_t capacity,
                                   uint32_t *count, vka_error *error);

VKA_API vka_status vka_context_create(vka_context **out, const vka_context_params *params, vka_error *error);

/* Destroys and sets *context to NULL; NULL and *NULL are accepted. Everything made from it must be gone. */
VKA_API void vka_context_destroy(vka_context **context);

VKA_API uint32_t vka_context_device_count(const vka_context *context);
/* `device`: position in the chosen list. NULL when out of range. */
VKA_API const vka_device_info *vka_context_device(const vka_context *context, uint32_t device);

/* What is allocated on a device now, by the context and everything made from it. */
typedef struct vka_memory_use {
    uint64_t device_bytes;      /* device memory in use by buffers */
    uint64_t host_bytes;        /* host-visible staging memory in use by buffers */
    uint64_t allocations;       /* vkAllocateMemory calls so far */
    uint64_t available_bytes;   /* VK_EXT_memory_budget: budget - usage; else heap size - our own total */
} vka_memory_use;
VKA_API vka_status vka_context_memory(const vka_context *context, uint32_t device, vka_memory_use *use,
                                      vka_error *error);

/* ---- kernel variants: one list for selection, tests and explanations ---- */

typedef struct vka_variant_info {
    const char *name;   /* e.g. "gemm_f16_floor"; static storage */
    const char *kernel; /* e.g. "gemm" */
    const char *dtype;  /* weights or cache type, "any" where it does not apply */
    uint32_t selected;  /* nonzero: this is what the device runs for that kernel and dtype, or for some of its shapes */
    char reason[160];   /* why it was not selected; where tuning chose, for which shapes it or another runs; else
                           empty */
} vka_variant_info;

VKA_API uint32_t vka_variant_count(void);
VKA_API vka_status vka_context_variant(const vka_context *context, uint32_t device, uint32_t index,
                                       vka_variant_info *info, vka_error *error);

/* Capability bits by number, for --pretend no=...; NULL past the last. */
VKA_API const char *vka_capability_name(uint32_t index);
/* Nonzero when the device (after quirks and `pretend`) has capability `index`. */
VKA_API uint32_t vka_context_has_capability(const vka_context *context, uint32_t device, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
