/* The devices that a test was promised. CTest gives VK_ICD_FILENAMES, and in VKA_TEST_DEVICES the names of what must
 * then be there: lavapipe, swiftshader, or both with a comma. */
#ifndef VKA_SUPPORT_DEVICES_H
#define VKA_SUPPORT_DEVICES_H

#include "vkattn/context.h"

enum { SUPPORT_MAX_DEVICES = 8 };

typedef struct support_devices {
    uint32_t count;                      /* promised devices */
    uint32_t index[SUPPORT_MAX_DEVICES]; /* of each in vka_device_list(), in the order of VKA_TEST_DEVICES */
    vka_device_info info[SUPPORT_MAX_DEVICES];
    char grammar[64]; /* all of them, for vka_context_params.devices: "1,0" */
} support_devices;

/* Fails the running test when a promised device is missing, or none was promised: a test that needs a device must not
 * pass without it. */
void support_find_devices(support_devices *out);

#endif
