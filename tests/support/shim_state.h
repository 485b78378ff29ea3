/* Inside the shim. */
#ifndef VKA_SUPPORT_SHIM_STATE_H
#define VKA_SUPPORT_SHIM_STATE_H

#include "base/library.h"
#include "support/shim.h"
#include "vk/api.h"

enum { SHIM_NAMES = 128, SHIM_HANDLES = 256, SHIM_MEMORIES = 4096 };

/* A queue, command buffer or device, and which device it belongs to. */
typedef struct shim_handle {
    const void *handle;
    int device;
    uint32_t memory_types; /* of the device, the disguise's copies not counted */
} shim_handle;

typedef struct shim_state {
    gpu_instance_table instance; /* the real functions */
    gpu_device_table device;

    const char *names[SHIM_NAMES];
    uint32_t counts[SHIM_NAMES];
    uint32_t total, live;

    const char *fail_name;
    uint32_t fail_countdown;
    VkResult fail_result;
    bool fail_always; /* once the countdown is over */
    bool failed;

    shim_record *events;
    uint32_t event_count, event_capacity;

    shim_handle handles[SHIM_HANDLES];
    uint32_t handle_count;
    int device_count;
    VkDeviceMemory device_only[SHIM_MEMORIES]; /* allocations that must not be mapped */
    uint32_t device_only_count;

    bool split_memory, no_coherence, poison, no_timeline, no_devices;
    const char *hidden_extension, *hidden_function;
    uint32_t api_version, driver_id, vendor_id, pci_bus;
    uint64_t budget, usage;
} shim_state;

extern shim_state shim;

vka_proc_fn shim_real(VkInstance instance, const char *name); /* NULL without a loader */

/* Counts and records a call; false when it is to fail with *result instead of reaching the driver. `result` is NULL for
 * functions that cannot fail. */
bool shim_enter(const char *name, const void *handle, const uint64_t value[4], VkResult *result);
void shim_created(void);
void shim_destroyed(bool really);

void shim_adopt(const void *handle, const void *parent); /* the same device as `parent` */
void shim_adopt_device(VkDevice device, uint32_t memory_types);
void shim_drop_device(VkDevice device);             /* with all that belongs to it */
const shim_handle *shim_lookup(const void *handle); /* never NULL: an unknown one has device -1 */

void shim_forbid_map(VkDeviceMemory memory);
void shim_forget_memory(VkDeviceMemory memory);
bool shim_may_map(VkDeviceMemory memory);

#endif
