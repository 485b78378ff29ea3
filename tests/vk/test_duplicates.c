/* One GPU through two drivers, and what only looks like it: each case was met in the field. */
#include <string.h>

#include "support/require.h"
#include "vk/api.h"
#include "vk/gpu.h"

enum { AMD = 0x1002, NVIDIA = 0x10de, INTEL = 0x8086, APPLE = 0x106b, UNUSABLE = 1 };

/* uuid 0: none; bus 0: no PCI address known */
typedef struct entry {
    uint32_t driver_id, vendor, device;
    uint8_t uuid;
    uint32_t bus;
    uint32_t flags;
    int32_t duplicate_of; /* expected */
} entry;

typedef struct case_row {
    const char *name;
    entry entries[4]; /* until driver_id 0 */
} case_row;

static const case_row cases[] = {
    {"RADV and AMDVLK, same UUID",
     {{VK_DRIVER_ID_AMD_OPEN_SOURCE, AMD, 0x73bf, 7, 0, 0, 1}, {VK_DRIVER_ID_MESA_RADV, AMD, 0x73bf, 7, 0, 0, -1}}},
    {"RADV, AMDVLK and AMD's own driver: all point to the preferred one",
     {{VK_DRIVER_ID_AMD_OPEN_SOURCE, AMD, 0x73bf, 7, 3, 0, 2},
      {VK_DRIVER_ID_AMD_PROPRIETARY, AMD, 0x73bf, 7, 3, 0, 2},
      {VK_DRIVER_ID_MESA_RADV, AMD, 0x73bf, 7, 3, 0, -1}}},
    {"UUIDs differ between drivers, the PCI address tells",
     {{VK_DRIVER_ID_NVIDIA_PROPRIETARY, NVIDIA, 0x2204, 1, 9, 0, -1},
      {VK_DRIVER_ID_MESA_NVK, NVIDIA, 0x2204, 2, 9, 0, 0}}},
    {"two equal cards share vendor and device id (merged by llama.cpp, issue 6166)",
     {{VK_DRIVER_ID_MESA_RADV, AMD, 0x744c, 1, 3, 0, -1}, {VK_DRIVER_ID_MESA_RADV, AMD, 0x744c, 2, 4, 0, -1}}},
    {"two equal cards without PCI addresses",
     {{VK_DRIVER_ID_MESA_RADV, AMD, 0x744c, 1, 0, 0, -1}, {VK_DRIVER_ID_MESA_RADV, AMD, 0x744c, 2, 0, 0, -1}}},
    {"PCI addresses differ, so equal UUIDs mean nothing",
     {{VK_DRIVER_ID_MESA_RADV, AMD, 0x744c, 1, 3, 0, -1}, {VK_DRIVER_ID_AMD_OPEN_SOURCE, AMD, 0x744c, 1, 4, 0, -1}}},
    {"MoltenVK gives two GPUs of one card the same UUID (issue 19026)",
     {{VK_DRIVER_ID_MOLTENVK, AMD, 0x66a3, 5, 0, 0, -1}, {VK_DRIVER_ID_MOLTENVK, AMD, 0x66a3, 5, 0, 0, -1}}},
    {"one driver lists an Intel iGPU twice (issue 19221)",
     {{VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, INTEL, 0xa7a0, 5, 0, 0, -1},
      {VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, INTEL, 0xa7a0, 5, 0, 0, 0}}},
    {"Dozen beside the native driver, another UUID (issue 9516)",
     {{VK_DRIVER_ID_MESA_DOZEN, AMD, 0x73bf, 8, 0, 0, 1}, {VK_DRIVER_ID_AMD_PROPRIETARY, AMD, 0x73bf, 7, 0, 0, -1}}},
    {"Dozen beside the native driver, same UUID",
     {{VK_DRIVER_ID_AMD_PROPRIETARY, AMD, 0x73bf, 7, 0, 0, -1}, {VK_DRIVER_ID_MESA_DOZEN, AMD, 0x73bf, 7, 0, 0, 0}}},
    {"Dozen alone",
     {{VK_DRIVER_ID_MESA_DOZEN, AMD, 0x73bf, 8, 0, 0, -1}, {VK_DRIVER_ID_MESA_DOZEN, NVIDIA, 0x24a0, 9, 0, 0, -1}}},
    {"an unusable entry is not preferred",
     {{VK_DRIVER_ID_MESA_RADV, AMD, 0x73bf, 7, 0, UNUSABLE, 1},
      {VK_DRIVER_ID_AMD_OPEN_SOURCE, AMD, 0x73bf, 7, 0, 0, -1}}},
    {"no UUID is not an equal UUID",
     {{VK_DRIVER_ID_MESA_V3DV, 0x14e4, 1, 0, 0, 0, -1}, {VK_DRIVER_ID_MESA_LLVMPIPE, 0x10005, 0, 0, 0, 0, -1}}},
    {"one driver cuts a GPU in two: same address, UUIDs of their own",
     {{VK_DRIVER_ID_NVIDIA_PROPRIETARY, NVIDIA, 0x2335, 1, 9, 0, -1},
      {VK_DRIVER_ID_NVIDIA_PROPRIETARY, NVIDIA, 0x2335, 2, 9, 0, -1}}},
    {"the two software devices",
     {{VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 0x1ae0, 0xc0de, 1, 0, 0, -1},
      {VK_DRIVER_ID_MESA_LLVMPIPE, 0x10005, 0, 2, 0, 0, -1}}},
};

static uint32_t fill(const case_row *row, vka_device_info devices[4])
{
    uint32_t count = 0;

    memset(devices, 0, 4 * sizeof(devices[0]));
    for (; count < 4 && row->entries[count].driver_id; count++) {
        const entry *e = &row->entries[count];
        vka_device_info *device = &devices[count];

        device->index = count;
        device->driver_id = e->driver_id;
        device->vendor_id = e->vendor;
        device->device_id = e->device;
        device->device_uuid[3] = e->uuid;
        device->has_pci = e->bus != 0;
        device->pci_bus = e->bus;
        device->usable = !(e->flags & UNUSABLE);
    }
    return count;
}

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vka_device_info devices[4];
        uint32_t count = fill(&cases[i], devices);

        gpu_mark_duplicates(devices, count);
        for (uint32_t j = 0; j < count; j++) {
            int32_t expected = cases[i].entries[j].duplicate_of;

            if (devices[j].duplicate_of != expected)
                fail_msg("%s: entry %u is marked %d, expected %d", cases[i].name, j, devices[j].duplicate_of, expected);
            /* the note says why, where the entry could otherwise be used */
            assert_int_equal(devices[j].note[0] != '\0', expected >= 0 && devices[j].usable);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};

    return cmocka_run_group_tests_name("duplicates", tests, NULL, NULL);
}
