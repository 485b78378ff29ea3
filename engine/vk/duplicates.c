/* The same GPU seen through two drivers is marked, so that `all` opens it once.
 *
 * What identifies a GPU differs by platform, and each simple rule has failed somewhere (llama.cpp issues 6166, 9516,
 * 19026, 19221; pull requests 7582, 8022, 16689, 19058, 19222): two equal cards share vendor and device id; MoltenVK
 * gives two GPUs of one card the same UUID; an Intel iGPU can be listed twice by one driver; Dozen (Vulkan on
 * Direct3D 12) shows a GPU again under a UUID of its own. */
#include <stdio.h>
#include <string.h>

#include "vk/api.h"
#include "vk/gpu.h"

static bool same_uuid(const vka_device_info *a, const vka_device_info *b)
{
    static const uint8_t none[sizeof(a->device_uuid)];

    return memcmp(a->device_uuid, b->device_uuid, sizeof(none)) == 0 && memcmp(a->device_uuid, none, sizeof(none)) != 0;
}

static bool same_pci(const vka_device_info *a, const vka_device_info *b)
{
    return a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus && a->pci_device == b->pci_device &&
           a->pci_function == b->pci_function;
}

/* Why the two entries are one GPU, or NULL when they are two. */
static const char *same_gpu(const vka_device_info *a, const vka_device_info *b)
{
    bool same_driver = a->driver_id == b->driver_id;

    if (a->has_pci && b->has_pci) {
        /* One driver may cut a GPU into several devices with UUIDs of their own. */
        if (!same_pci(a, b) || (same_driver && !same_uuid(a, b)))
            return NULL;
        return "same PCI address";
    }
    if (same_uuid(a, b) && !(same_driver && a->driver_id == VK_DRIVER_ID_MOLTENVK))
        return "same device UUID";
    if (!same_driver && (a->driver_id == VK_DRIVER_ID_MESA_DOZEN || b->driver_id == VK_DRIVER_ID_MESA_DOZEN) &&
        a->vendor_id == b->vendor_id && a->device_id == b->device_id)
        return "same vendor and device id, through Direct3D 12";
    return NULL;
}

/* Higher is preferred among drivers of one GPU. */
static int preference(const vka_device_info *device)
{
    int driver;

    switch (device->driver_id) {
    case VK_DRIVER_ID_MESA_DOZEN:
        driver = 0;
        break;
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
    case VK_DRIVER_ID_MESA_NVK:
        driver = 1;
        break;
    case VK_DRIVER_ID_AMD_PROPRIETARY:
        driver = 2;
        break;
    default:
        driver = 3;
    }
    return driver + (device->usable ? 10 : 0);
}

/* The entry to prefer over devices[i]; `i` when there is none. */
static uint32_t preferred(const vka_device_info *devices, uint32_t count, uint32_t i)
{
    uint32_t best = i;

    for (uint32_t j = 0; j < count; j++) {
        int gain = preference(&devices[j]) - preference(&devices[best]);

        if (j != i && same_gpu(&devices[i], &devices[j]) && (gain > 0 || (gain == 0 && j < best)))
            best = j;
    }
    return best;
}

void gpu_mark_duplicates(vka_device_info *devices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        vka_device_info *device = &devices[i];
        uint32_t best = preferred(devices, count, i);

        device->duplicate_of = -1;
        if (best == i)
            continue;
        device->duplicate_of = (int32_t)best;
        if (device->usable)
            snprintf(device->note, sizeof(device->note), "the same GPU as device %u (%.80s): %s", devices[best].index,
                     devices[best].driver_name, same_gpu(device, &devices[best]));
    }
}
