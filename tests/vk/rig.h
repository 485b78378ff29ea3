/* What the tests of an open device share: an instance and device behind the shim, two small kernels, and a run of
 * everything a device does. */
#ifndef VKA_TESTS_VK_RIG_H
#define VKA_TESTS_VK_RIG_H

#include "support/devices.h"
#include "support/require.h"
#include "support/shim.h"
#include "vk/gpu.h"

typedef struct rig {
    vka_context_params params;
    gpu_instance *instance;
    gpu_device *device;
    uint32_t messages; /* logged at level 0 */
    char last_message[512];
} rig;

/* Fails the test with the error's message unless `call` is VKA_OK. */
#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        vka_error check_error = {0};                                                                                   \
        vka_error *err = &check_error;                                                                                 \
        if ((call) != VKA_OK)                                                                                          \
            fail_msg("%s: %s", #call, check_error.message);                                                            \
    } while (0)

extern const gpu_pipeline_desc add_kernel;   /* 2 storage buffers; push: add_push; spec 0: factor */
extern const gpu_pipeline_desc texel_kernel; /* 1 storage buffer, RGBA32F view, RGBA32UI view; push: uint32_t count */

typedef struct add_push {
    uint32_t count;
    float c;
} add_push;

/* Opens the first promised device behind the shim, which is not reset. */
void rig_open(rig *r, const char *pretend);
void rig_open_with(rig *r, const gpu_device_params *params, bool validation);
/* Closes what is open and checks that no Vulkan object and no message is left. */
void rig_close(rig *r);

uint32_t rig_word(float value); /* its bits, for gpu_cmd_fill */
/* Fills, adds, copies to the host and waits: `count` floats that must each be 2 + 3 * 1 + 0.5. */
vka_status rig_exercise(gpu_device *device, uint32_t count, vka_error *error);

/* cmocka group of each file: its tests, and how many. */
extern const struct CMUnitTest device_tests[], buffer_tests[], command_tests[], failure_tests[], limit_tests[],
    cache_tests[], validation_tests[];
extern const size_t device_test_count, buffer_test_count, command_test_count, failure_test_count, limit_test_count,
    cache_test_count, validation_test_count;

#endif
