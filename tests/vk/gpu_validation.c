/* The Khronos validation layer: silent about what the engine does, and heard when something is wrong. */
#include <string.h>

#include "vk/rig.h"

static const gpu_device_params plain;

static void clean_run(void **state)
{
    rig r;

    (void)state;
    rig_open_with(&r, &plain, true);
    for (int round = 0; round < 3; round++)
        check_ok(rig_exercise(r.device, 1000, err));
    rig_close(&r); /* asserts that no message came */
}

static void clean_under_the_floor(void **state)
{
    rig r;

    (void)state;
    rig_open_with(&r, &(gpu_device_params){.pretend = "floor,max_alloc=1MiB"}, true);
    check_ok(rig_exercise(r.device, 1000, err));
    rig_close(&r);
}

/* A copy reads what a dispatch writes, without a barrier: synchronisation validation must be on to see it. */
static void hazard_is_reported(void **state)
{
    const add_push push = {64, 0};
    gpu_commands *commands = NULL;
    gpu_buffer *a = NULL;
    gpu_buffer *b = NULL;
    gpu_pipeline *add;
    uint64_t ticket;
    rig r;

    (void)state;
    rig_open_with(&r, &plain, true);
    check_ok(gpu_buffer_create(&a, r.device, 256, GPU_MEMORY_DEVICE, "a", err));
    check_ok(gpu_buffer_create(&b, r.device, 256, GPU_MEMORY_DEVICE, "b", err));
    check_ok(gpu_pipeline_get(r.device, &add_kernel, &add, err));
    check_ok(gpu_commands_begin(r.device, &commands, err));
    {
        const gpu_binding bindings[] = {{.buffer = a}, {.buffer = b}};

        check_ok(gpu_cmd_dispatch(commands, add, bindings, 2, &push, sizeof(push), 1, 1, 1, err));
    }
    gpu_cmd_copy(commands, b, 0, a, 0, 256);
    check_ok(gpu_submit(commands, &ticket, err));
    check_ok(gpu_wait(r.device, ticket, err));
    assert_true(r.messages > 0);
    assert_non_null(strstr(r.last_message, "HAZARD"));
    r.messages = 0;
    gpu_buffer_destroy(&a);
    gpu_buffer_destroy(&b);
    rig_close(&r);
}

const struct CMUnitTest validation_tests[] = {
    cmocka_unit_test(clean_run),
    cmocka_unit_test(clean_under_the_floor),
    cmocka_unit_test(hazard_is_reported),
};
const size_t validation_test_count = sizeof(validation_tests) / sizeof(validation_tests[0]);
