/* The device grammar: N | uuid:HEX | pci:DDDD:BB:DD.F | name:SUBSTRING | type:KIND | all, separated by commas.
 *
 * `all` and `type:` mean every usable GPU once. An item that names one device may name an entry that is marked as a
 * duplicate; where it fits both the entry and its duplicate, the preferred one is meant. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "vk/gpu.h"
#include "vk/text.h"

typedef struct choice {
    const vka_device_info *devices;
    uint32_t count;
    uint32_t *chosen;
    uint32_t capacity;
    uint32_t chosen_count;
    vka_error *error;
} choice;

typedef bool (*match_fn)(const vka_device_info *device, gpu_text wanted);

static const char *type_text(vka_device_type type)
{
    static const char *const names[] = {"other", "integrated", "discrete", "virtual", "cpu"};

    return (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : names[0];
}

/* "0 'name' (discrete, driver); 1 ..." for error messages. */
static void describe(const choice *c, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < c->count && used < size; i++) {
        const vka_device_info *device = &c->devices[i];
        int length =
            snprintf(text + used, size - used, "%s%u '%s' (%s, %s%s)", i ? "; " : "", device->index, device->name,
                     type_text(device->type), device->driver_name, device->usable ? "" : ", not usable");

        used += length > 0 ? (size_t)length : 0;
    }
}

static vka_status refuse(const choice *c, gpu_text item, const char *reason)
{
    char list[2048];

    describe(c, list, sizeof(list));
    return vka_fail_at(c->error, VKA_ERR_ARGUMENT, "gpu_choose", "device '%.*s': %s; devices here: %s",
                       (int)item.length, item.start, reason, list);
}

static vka_status add(choice *c, uint32_t index)
{
    const vka_device_info *device = &c->devices[index];

    if (!device->usable)
        return vka_fail_at(c->error, VKA_ERR_UNSUPPORTED, "gpu_choose", "device %u '%s' cannot be used: %s",
                           device->index, device->name, device->note);
    if (c->chosen_count == c->capacity)
        return vka_fail_at(c->error, VKA_ERR_ARGUMENT, "gpu_choose", "more than %u devices are chosen", c->capacity);
    c->chosen[c->chosen_count++] = index;
    return VKA_OK;
}

static bool any_type(const vka_device_info *device, gpu_text wanted)
{
    (void)device;
    (void)wanted;
    return true;
}

static bool has_type(const vka_device_info *device, gpu_text wanted)
{
    return gpu_text_is(wanted, type_text(device->type));
}

static char lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Dashes are ignored; the beginning of a UUID is enough when it fits one device. */
static bool has_uuid(const vka_device_info *device, gpu_text wanted)
{
    char hex[2 * sizeof(device->device_uuid) + 1];
    size_t used = 0;

    for (size_t i = 0; i < sizeof(device->device_uuid); i++)
        snprintf(hex + 2 * i, 3, "%02x", device->device_uuid[i]);
    for (size_t i = 0; i < wanted.length; i++) {
        if (wanted.start[i] == '-')
            continue;
        if (used == sizeof(hex) - 1 || hex[used++] != lower_case(wanted.start[i]))
            return false;
    }
    return used > 0;
}

static bool has_pci(const vka_device_info *device, gpu_text wanted)
{
    const uint64_t address[] = {device->pci_domain, device->pci_bus, device->pci_device, device->pci_function};
    const char separators[] = {':', ':', '.', '\n'};
    gpu_text piece;
    uint64_t value;

    for (size_t i = 0; i < sizeof(address) / sizeof(address[0]); i++)
        if (!gpu_text_next(&wanted, separators[i], &piece) || !gpu_text_number(piece, 16, &value) ||
            value != address[i])
            return false;
    return device->has_pci && !wanted.start;
}

/* Without regard to case. */
static bool has_name(const vka_device_info *device, gpu_text wanted)
{
    size_t length = strlen(device->name);

    for (size_t begin = 0; begin + wanted.length <= length; begin++) {
        size_t same = 0;

        while (same < wanted.length && lower_case(device->name[begin + same]) == lower_case(wanted.start[same]))
            same++;
        if (same == wanted.length)
            return wanted.length > 0;
    }
    return false;
}

/* Every usable GPU that matches, once. */
static vka_status add_all(choice *c, gpu_text item, gpu_text wanted, match_fn match)
{
    uint32_t before = c->chosen_count;

    for (uint32_t i = 0; i < c->count; i++) {
        const vka_device_info *device = &c->devices[i];
        vka_status status = VKA_OK;

        if (device->usable && device->duplicate_of < 0 && match(device, wanted))
            status = add(c, i);
        if (status != VKA_OK)
            return status;
    }
    return c->chosen_count > before ? VKA_OK : refuse(c, item, "no usable device of that kind");
}

/* The one device that matches. */
static vka_status add_one(choice *c, gpu_text item, gpu_text wanted, match_fn match)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < c->count; i++) {
        if (!match(&c->devices[i], wanted))
            continue;
        if (found == UINT32_MAX || c->devices[found].duplicate_of == (int32_t)i)
            found = i;
        else if (c->devices[i].duplicate_of != (int32_t)found)
            return refuse(c, item, "more than one device fits; name it by number, uuid: or pci:");
    }
    return found == UINT32_MAX ? refuse(c, item, "there is no such device") : add(c, found);
}

static vka_status add_number(choice *c, gpu_text item)
{
    uint64_t index;

    if (!gpu_text_number(item, 10, &index))
        return refuse(c, item, "expected a number, uuid:HEX, pci:DDDD:BB:DD.F, name:TEXT, type:KIND or all");
    return index < c->count ? add(c, (uint32_t)index) : refuse(c, item, "there is no such device");
}

static vka_status add_item(choice *c, gpu_text item)
{
    gpu_text wanted = item;

    if (gpu_text_is(item, "all"))
        return add_all(c, item, wanted, any_type);
    if (gpu_text_skip(&wanted, "type:"))
        return add_all(c, item, wanted, has_type);
    if (gpu_text_skip(&wanted, "uuid:"))
        return add_one(c, item, wanted, has_uuid);
    if (gpu_text_skip(&wanted, "pci:"))
        return add_one(c, item, wanted, has_pci);
    if (gpu_text_skip(&wanted, "name:"))
        return add_one(c, item, wanted, has_name);
    return add_number(c, item);
}

vka_status gpu_choose(const vka_device_info *devices, uint32_t count, const char *grammar, uint32_t *chosen,
                      uint32_t capacity, uint32_t *chosen_count, vka_error *error)
{
    choice c = {.devices = devices, .count = count, .chosen = chosen, .capacity = capacity, .error = error};
    gpu_text rest = gpu_text_of(grammar ? grammar : "all");
    gpu_text item;

    while (gpu_text_next(&rest, ',', &item)) {
        vka_status status = add_item(&c, item);

        if (status != VKA_OK)
            return status;
    }
    *chosen_count = c.chosen_count;
    return VKA_OK;
}
