/* The shim's bookkeeping. The wrappers of the single functions are in shim_calls.c. */
#include "support/shim_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/require.h"

shim_state shim;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* For errors that are the shim's own; a test cannot go on after them. */
static void check(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "shim: %s\n", what);
    abort();
}

vka_proc_fn shim_real(VkInstance instance, const char *name)
{
    static const char *const names[] = {"libvulkan.so.1", NULL};
    static vka_library library; /* for the rest of the process */
    static vka_get_proc_fn get;

    pthread_mutex_lock(&mutex);
    if (!get && vka_library_open(&library, names))
        get = (vka_get_proc_fn)vka_library_function(&library, "vkGetInstanceProcAddr");
    pthread_mutex_unlock(&mutex);
    return get ? get(instance, name) : NULL;
}

void shim_reset(void)
{
    shim_record *events = shim.events;
    uint32_t capacity = shim.event_capacity;

    require(shim.live == 0, "%u Vulkan objects were left behind", shim.live);
    memset(&shim, 0, sizeof(shim));
    shim.events = events;
    shim.event_capacity = capacity;
}

/* ---- counting ---- */

/* Slot of a function; names are compared by text, since two files may hold two copies. */
static uint32_t slot_of(const char *name)
{
    uint32_t i = 0;

    while (i < SHIM_NAMES && shim.names[i] && strcmp(shim.names[i], name) != 0)
        i++;
    check(i < SHIM_NAMES, "too many functions");
    return i;
}

uint32_t shim_count(const char *name)
{
    return shim.counts[slot_of(name)];
}

uint32_t shim_total(void)
{
    return shim.total;
}

uint32_t shim_live(void)
{
    return shim.live;
}

static void record(const char *name, int device, const uint64_t value[4])
{
    if (shim.event_count == shim.event_capacity) {
        shim.event_capacity = shim.event_capacity ? 2 * shim.event_capacity : 1024;
        shim.events = realloc(shim.events, shim.event_capacity * sizeof(shim.events[0]));
        check(shim.events != NULL, "no memory for events");
    }
    shim.events[shim.event_count] = (shim_record){.name = name, .device = device};
    memcpy(shim.events[shim.event_count++].value, value, 4 * sizeof(value[0]));
}

bool shim_enter(const char *name, const void *handle, const uint64_t value[4], VkResult *result)
{
    bool fails = false;
    uint32_t slot;

    pthread_mutex_lock(&mutex);
    slot = slot_of(name);
    shim.names[slot] = name;
    shim.counts[slot]++;
    shim.total++;
    record(name, shim_lookup(handle)->device, value);
    if (shim.fail_countdown > 0 && strcmp(shim.fail_name, name) == 0 && --shim.fail_countdown == 0) {
        fails = true;
        shim.fail_countdown += shim.fail_always;
        shim.failed = true;
        *result = shim.fail_result;
    }
    pthread_mutex_unlock(&mutex);
    return !fails;
}

void shim_created(void)
{
    pthread_mutex_lock(&mutex);
    shim.live++;
    pthread_mutex_unlock(&mutex);
}

void shim_destroyed(bool really)
{
    pthread_mutex_lock(&mutex);
    check(!really || shim.live > 0, "more Vulkan objects destroyed than made");
    shim.live -= really;
    pthread_mutex_unlock(&mutex);
}

/* ---- failures ---- */

void shim_fail_at(const char *name, uint32_t n, int32_t vk_result)
{
    shim.fail_name = name;
    shim.fail_countdown = n;
    shim.fail_result = (VkResult)vk_result;
    shim.fail_always = false;
    shim.failed = false;
}

void shim_fail_from(const char *name, uint32_t n, int32_t vk_result)
{
    shim_fail_at(name, n, vk_result);
    shim.fail_always = true;
}

bool shim_failed(void)
{
    return shim.failed;
}

/* ---- events ---- */

uint32_t shim_event_count(void)
{
    return shim.event_count;
}

const shim_record *shim_event(uint32_t index)
{
    check(index < shim.event_count, "no such event");
    return &shim.events[index];
}

uint32_t shim_find(const char *name, int device, uint32_t from)
{
    for (uint32_t i = from; i < shim.event_count; i++)
        if (strcmp(shim.events[i].name, name) == 0 && (device < 0 || shim.events[i].device == device))
            return i;
    return UINT32_MAX;
}

void shim_mark(const char *name, int device, uint64_t value)
{
    const uint64_t values[4] = {value};

    pthread_mutex_lock(&mutex);
    record(name, device, values);
    pthread_mutex_unlock(&mutex);
}

/* ---- which device a handle belongs to ---- */

const shim_handle *shim_lookup(const void *handle)
{
    static const shim_handle unknown = {.device = -1};

    for (uint32_t i = shim.handle_count; i > 0; i--)
        if (shim.handles[i - 1].handle == handle)
            return &shim.handles[i - 1];
    return &unknown;
}

static void adopt(shim_handle entry)
{
    check(shim.handle_count < SHIM_HANDLES, "too many handles");
    shim.handles[shim.handle_count++] = entry;
}

void shim_adopt(const void *handle, const void *parent)
{
    shim_handle entry;

    pthread_mutex_lock(&mutex);
    entry = *shim_lookup(parent);
    entry.handle = handle;
    adopt(entry);
    pthread_mutex_unlock(&mutex);
}

void shim_adopt_device(VkDevice device, uint32_t memory_types)
{
    pthread_mutex_lock(&mutex);
    adopt((shim_handle){.handle = device, .device = shim.device_count++, .memory_types = memory_types});
    pthread_mutex_unlock(&mutex);
}

void shim_drop_device(VkDevice device)
{
    uint32_t kept = 0;
    int number;

    pthread_mutex_lock(&mutex);
    number = shim_lookup(device)->device;
    for (uint32_t i = 0; i < shim.handle_count; i++)
        if (shim.handles[i].device != number)
            shim.handles[kept++] = shim.handles[i];
    shim.handle_count = kept;
    pthread_mutex_unlock(&mutex);
}

/* ---- memory that must not be mapped ---- */

static uint32_t find_memory(VkDeviceMemory memory)
{
    uint32_t i = 0;

    while (i < shim.device_only_count && shim.device_only[i] != memory)
        i++;
    return i;
}

void shim_forbid_map(VkDeviceMemory memory)
{
    pthread_mutex_lock(&mutex);
    check(shim.device_only_count < SHIM_MEMORIES, "too many allocations");
    shim.device_only[shim.device_only_count++] = memory;
    pthread_mutex_unlock(&mutex);
}

void shim_forget_memory(VkDeviceMemory memory)
{
    uint32_t i;

    pthread_mutex_lock(&mutex);
    i = find_memory(memory);
    if (i < shim.device_only_count)
        shim.device_only[i] = shim.device_only[--shim.device_only_count];
    pthread_mutex_unlock(&mutex);
}

bool shim_may_map(VkDeviceMemory memory)
{
    bool may;

    pthread_mutex_lock(&mutex);
    may = find_memory(memory) == shim.device_only_count;
    pthread_mutex_unlock(&mutex);
    return may;
}

/* ---- disguises ---- */

void shim_hide_host_visible_device_memory(bool hide)
{
    shim.split_memory = hide;
}

void shim_hide_coherence(bool hide)
{
    shim.no_coherence = hide;
}

void shim_poison_memory(bool poison)
{
    shim.poison = poison;
}

void shim_hide_extension(const char *name)
{
    shim.hidden_extension = name;
}

void shim_hide_timeline_feature(bool hide)
{
    shim.no_timeline = hide;
}

void shim_hide_all_devices(bool hide)
{
    shim.no_devices = hide;
}

void shim_hide_function(const char *name)
{
    shim.hidden_function = name;
}

void shim_set_memory_budget(uint64_t budget, uint64_t usage)
{
    shim.budget = budget;
    shim.usage = usage;
}

void shim_set_pci_bus(uint32_t bus)
{
    shim.pci_bus = bus;
}

void shim_set_api_version(uint32_t version)
{
    shim.api_version = version;
}

void shim_set_driver_id(uint32_t driver_id, uint32_t vendor_id)
{
    shim.driver_id = driver_id;
    shim.vendor_id = vendor_id;
}
