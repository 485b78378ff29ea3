/* Finding the promised software devices by their driver ids. */
#include "support/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/require.h"
#include "vk/api.h"

static const struct {
    const char *name;
    uint32_t driver_id;
} known[] = {
    {"lavapipe", VK_DRIVER_ID_MESA_LLVMPIPE},
    {"swiftshader", VK_DRIVER_ID_GOOGLE_SWIFTSHADER},
};

static uint32_t driver_of(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
            return known[i].driver_id;
    fail_msg("VKA_TEST_DEVICES names '%.*s', which is not known", (int)length, name);
    return 0;
}

static void add(support_devices *out, const vka_device_info *all, uint32_t count, const char *name, size_t length)
{
    uint32_t driver_id = driver_of(name, length);
    size_t used = strlen(out->grammar);
    uint32_t i = 0;

    while (i < count && all[i].driver_id != driver_id)
        i++;
    require(i < count, "device '%.*s' is missing; VK_ICD_FILENAMES is '%s'", (int)length, name,
            getenv("VK_ICD_FILENAMES"));
    require(all[i].usable, "device '%.*s' is not usable: %s", (int)length, name, all[i].note);
    out->index[out->count] = i;
    out->info[out->count] = all[i];
    out->count++;
    snprintf(out->grammar + used, sizeof(out->grammar) - used, "%s%u", used ? "," : "", i);
}

void support_find_devices(support_devices *out)
{
    vka_device_info all[SUPPORT_MAX_DEVICES];
    const char *names = getenv("VKA_TEST_DEVICES");
    uint32_t count = 0;
    vka_error error;

    memset(out, 0, sizeof(*out));
    require(names && names[0], "VKA_TEST_DEVICES is not set: run this test through ctest");
    require(vka_device_list(NULL, all, SUPPORT_MAX_DEVICES, &count, &error) == VKA_OK, "%s", error.message);
    require(count <= SUPPORT_MAX_DEVICES, "%u devices", count);
    while (*names) {
        size_t length = strcspn(names, ",");

        add(out, all, count, names, length);
        names += length + (names[length] == ',');
    }
}
