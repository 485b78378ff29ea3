/* A device as a JSON object. */
#include "device_output.h"

#include <stdio.h>

#include "output.h"

const char *output_device_type(vka_device_type type)
{
    switch (type) {
    case VKA_DEVICE_INTEGRATED:
        return "integrated";
    case VKA_DEVICE_DISCRETE:
        return "discrete";
    case VKA_DEVICE_VIRTUAL:
        return "virtual";
    case VKA_DEVICE_CPU:
        return "cpu";
    case VKA_DEVICE_OTHER:
        break;
    }
    return "other";
}

static json_t *hex(const uint8_t bytes[16])
{
    char text[33];

    for (size_t i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_string(text);
}

static json_t *pci(const vka_device_info *device)
{
    char text[64];

    if (!device->has_pci)
        return json_null();
    snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", device->pci_domain, device->pci_bus, device->pci_device,
             device->pci_function);
    return json_string(text);
}

/* Vulkan's encoding, which most drivers use for their own version too. */
static output_version decode(uint32_t version)
{
    output_version decoded;

    snprintf(decoded.text, sizeof(decoded.text), "%u.%u.%u", version >> 22 & 127, version >> 12 & 1023, version & 4095);
    return decoded;
}

output_version output_driver_version(const vka_device_info *device)
{
    output_version version;

    if (device->driver_info[0] == '\0')
        return decode(device->driver_version);
    snprintf(version.text, sizeof(version.text), "%s", device->driver_info);
    return version;
}

json_t *output_json_device(const vka_device_info *device)
{
    json_t *object = json_object();
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"index", device->index},
        {"vendor_id", device->vendor_id},
        {"device_id", device->device_id},
        {"driver_id", device->driver_id},
        {"driver_version", device->driver_version},
        {"memory_bytes", device->memory_bytes},
        {"max_storage_range", device->max_storage_range},
        {"max_buffer_bytes", device->max_buffer_bytes},
        {"max_allocation_bytes", device->max_allocation_bytes},
        {"subgroup_size", device->subgroup_size},
        {"max_workgroup_invocations", device->max_workgroup_invocations},
        {"shared_memory_bytes", device->shared_memory_bytes},
        {"timestamp_bits", device->timestamp_bits},
    };

    json_object_set_new(object, "name", output_json_text(device->name));
    json_object_set_new(object, "type", json_string(output_device_type(device->type)));
    json_object_set_new(object, "driver_name", output_json_text(device->driver_name));
    json_object_set_new(object, "driver_info", output_json_text(device->driver_info));
    json_object_set_new(object, "api_version", json_string(decode(device->api_version).text));
    json_object_set_new(object, "device_uuid", hex(device->device_uuid));
    json_object_set_new(object, "driver_uuid", hex(device->driver_uuid));
    json_object_set_new(object, "pci", pci(device));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_object_set_new(object, numbers[i].name,
                            numbers[i].value > INT64_MAX ? json_null() : json_integer((json_int_t)numbers[i].value));
    json_object_set_new(object, "usable", json_boolean(device->usable));
    json_object_set_new(object, "duplicate_of",
                        device->duplicate_of < 0 ? json_null() : json_integer(device->duplicate_of));
    json_object_set_new(object, "note", output_json_text(device->note));
    return object;
}
