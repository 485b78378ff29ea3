/* How commands show devices. */
#ifndef VKA_TOOLS_DEVICE_OUTPUT_H
#define VKA_TOOLS_DEVICE_OUTPUT_H

#include <jansson.h>

#include "vkattn/context.h"

/* "discrete", "integrated", "virtual", "cpu", "other": as the device grammar has them. */
const char *output_device_type(vka_device_type type);

/* What the driver says of its version, or else its number. */
typedef struct output_version {
    char text[256];
} output_version;
output_version output_driver_version(const vka_device_info *device);

/* "1.3.230": Vulkan's own encoding. */
output_version output_vulkan_version(uint32_t version);

/* 32 hex digits; "0000:03:00.0", or "-" when no address is known: both as the device grammar takes them. */
typedef struct output_id {
    char text[64];
} output_id;
output_id output_device_uuid(const uint8_t uuid[16]);
output_id output_device_pci(const vka_device_info *device);

/* Everything of the record; uuids in hex, the PCI address as the device grammar has it or null. */
json_t *output_json_device(const vka_device_info *device);

#endif
