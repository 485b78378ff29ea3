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

output_id output_device_uuid(const uint8_t uuid[16])
{
    output_id id;

    for (size_t i = 0; i < 16; i++)
        snprintf(id.text + 2 * i, 3, "%02x", uuid[i]);
    return id;
}

output_id output_device_pci(const vka_device_info *device)
{
    output_id id = {"-"};

    if (device->has_pci)
        snprintf(id.text, sizeof(id.text), "%04x:%02x:%02x.%x", device->pci_domain, device->pci_bus, device->pci_device,
                 device->pci_function);
    return id;
}

output_version output_vulkan_version(uint32_t version)
{
    output_version decoded;

    snprintf(decoded.text, sizeof(decoded.text), "%u.%u.%u", version >> 22 & 127, version >> 12 & 1023, version & 4095);
    return decoded;
}

output_version output_driver_version(const vka_device_info *device)
{
    output_version version;

    /* Most drivers encode their version as Vulkan does. */
    if (device->driver_info[0] == '\0')
        return output_vulkan_version(device->driver_version);
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
    json_object_set_new(object, "api_version", json_string(output_vulkan_version(device->api_version).text));
    json_object_set_new(object, "device_uuid", json_string(output_device_uuid(device->device_uuid).text));
    json_object_set_new(object, "driver_uuid", json_string(output_device_uuid(device->driver_uuid).text));
    json_object_set_new(object, "pci", device->has_pci ? json_string(output_device_pci(device).text) : json_null());
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_object_set_new(object, numbers[i].name,
                            numbers[i].value > INT64_MAX ? json_null() : json_integer((json_int_t)numbers[i].value));
    json_object_set_new(object, "usable", json_boolean(device->usable));
    json_object_set_new(object, "duplicate_of",
                        device->duplicate_of < 0 ? json_null() : json_integer(device->duplicate_of));
    json_object_set_new(object, "note", output_json_text(device->note));
    return object;
}
