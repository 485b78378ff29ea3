/* A Vulkan loader for tests: hands every call to the system's loader, and on the way counts and records it, makes it
 * fail on request, and shows devices in disguise. Pass shim_get_proc as vka_context_params.get_instance_proc.
 *
 * The state is static, so one test at a time: call shim_reset() at the start of each. Calls may come from several
 * threads. */
#ifndef VKA_SUPPORT_SHIM_H
#define VKA_SUPPORT_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "vkattn/context.h"

vka_proc_fn shim_get_proc(void *instance, const char *name);

/* Forgets counts, events, planned failures and disguises. Every object must be gone (asserted). */
void shim_reset(void);

/* ---- counting ---- */

uint32_t shim_count(const char *name); /* calls of a function, by its full name, failed ones too */
uint32_t shim_total(void);             /* calls of any function, looking one up not counted */
uint32_t shim_live(void);              /* Vulkan objects and allocations that were made and not destroyed */

/* ---- failures ---- */

/* The n-th call of `name` from now (1: the next) does not reach the driver and returns `vk_result`. One plan at a time;
 * n = 0 cancels it. Only for functions that return a VkResult. */
void shim_fail_at(const char *name, uint32_t n, int32_t vk_result);
/* The same for the n-th call and all that follow it, until cancelled. */
void shim_fail_from(const char *name, uint32_t n, int32_t vk_result);
/* True when a planned failure was given. */
bool shim_failed(void);

/* ---- events, in the order of calls ---- */

/* value[] by function; 0 where nothing is said:
 *   vkCreateDevice            number of extensions
 *   vkAllocateMemory          bytes, memory type as the engine sees it
 *   vkCreateBuffer            bytes
 *   vkFlush/InvalidateMappedMemoryRanges  offset, bytes of the first range
 *   vkQueueSubmit             ticket (timeline value that is signalled)
 *   vkWaitSemaphores          ticket
 *   vkCmdDispatch             groups x, y, z
 *   vkCmdPipelineBarrier      source stages, destination stages, source access, destination access (Vulkan's bits)
 *   vkCmdCopyBuffer           bytes, source offset, destination offset (of the first region)
 *   vkCmdFillBuffer           bytes, offset, word
 *   vkCmdWriteTimestamp       slot */
typedef struct shim_record {
    const char *name;
    int device; /* number of the vkCreateDevice since shim_reset(), from 0; -1: none */
    uint64_t value[4];
} shim_record;

uint32_t shim_event_count(void);
const shim_record *shim_event(uint32_t index);
/* Index of the first event of `name` at or after `from` (any device when -1), or UINT32_MAX. */
uint32_t shim_find(const char *name, int device, uint32_t from);
/* Puts an event of the test's own among the calls; `name` is static text. */
void shim_mark(const char *name, int device, uint64_t value);

/* ---- disguises, for instances and devices made afterwards ---- */

/* Device memory looks as on a discrete GPU: device-local memory is not host-visible (mapping it fails), and host
 * memory is a type of its own. Partials are then staged. */
void shim_hide_host_visible_device_memory(bool hide);
/* Host-visible memory is not coherent: flush and invalidate are called for. */
void shim_hide_coherence(bool hide);
/* Device memory begins as NaN: every byte of an allocation is 0xff. The real memory must be host-visible. */
void shim_poison_memory(bool poison);
/* `name` (static text, or NULL for none) is missing among the instance's and devices' extensions and layers. */
void shim_hide_extension(const char *name);
void shim_hide_timeline_feature(bool hide);
void shim_hide_all_devices(bool hide);
/* The function is not found; static text, or NULL for none. */
void shim_hide_function(const char *name);
/* The device has VK_EXT_memory_budget and tells these numbers; 0, 0: as it is. */
void shim_set_memory_budget(uint64_t budget, uint64_t usage);
/* The device has VK_EXT_pci_bus_info and stands on this bus; 0: as it is. */
void shim_set_pci_bus(uint32_t bus);
void shim_set_api_version(uint32_t version);                     /* of devices; 0: their own */
void shim_set_driver_id(uint32_t driver_id, uint32_t vendor_id); /* 0: their own */

#endif
