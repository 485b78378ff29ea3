/* What drivers report but do wrong. Nobody else looks at a vendor or driver id. */
#include "vk/instance.h"

enum { VENDOR_AMD = 0x1002, VENDOR_INTEL = 0x8086, ANY = 0 };

typedef struct quirk {
    uint32_t vendor_id;                   /* ANY or PCI vendor */
    uint32_t driver_id;                   /* ANY or VkDriverId */
    uint32_t first_version, last_version; /* driver versions, in the driver's own encoding, both included */
    uint64_t clear;
    const char *reason;
    const char *link;
} quirk;

static const quirk quirks[] = {
    {VENDOR_AMD, VK_DRIVER_ID_MOLTENVK, 0, UINT32_MAX, VKA_CAP_BIT(VKA_CAP_SUBGROUP_ADD),
     "subgroup arithmetic and shuffles give wrong results on AMD GPUs under MoltenVK",
     "https://github.com/ggml-org/llama.cpp/issues/15846"},
    {VENDOR_INTEL, VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, 0, UINT32_MAX, VKA_CAP_BIT(VKA_CAP_SUBGROUP_ADD),
     "gl_SubgroupSize may be larger than the number of invocations that a subgroup really has",
     "https://github.com/IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1402"},
};

static bool applies(const quirk *row, const vka_device_info *info)
{
    return (row->vendor_id == ANY || row->vendor_id == info->vendor_id) &&
           (row->driver_id == ANY || row->driver_id == info->driver_id) && info->driver_version >= row->first_version &&
           info->driver_version <= row->last_version;
}

uint64_t gpu_quirks_apply(uint64_t bits, const vka_device_info *info, const vka_log *log)
{
    for (size_t i = 0; i < sizeof(quirks) / sizeof(quirks[0]); i++) {
        const quirk *row = &quirks[i];

        if (!applies(row, info) || !(bits & row->clear))
            continue;
        bits &= ~row->clear;
        vka_log_print(log, VKA_LOG_INFO, "device %u '%s': %s; not used (%s)", info->index, info->name, row->reason,
                      row->link);
    }
    return bits;
}
