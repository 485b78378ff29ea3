/* Every Vulkan call that can fail is made to fail, at each of its occurrences: the error is clean and nothing is left.
 * A lost device stays lost. */
#include <stdlib.h>
#include <string.h>

#include "vk/api.h"
#include "vk/rig.h"

enum { OUT_OF_HOST_MEMORY = -1, OUT_OF_DEVICE_MEMORY = -2, DEVICE_LOST = -4 };

typedef struct whole {
    gpu_instance *instance;
    gpu_device *device;
} whole;

static vka_status run(whole *w, uint32_t physical, vka_error *error)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = shim_get_proc};
    const gpu_device_params device = {.physical = physical, .position = 2, .pretend = "max_alloc=1MiB"};
    vka_status status = gpu_instance_create(&w->instance, &params, error);

    if (status == VKA_OK)
        status = gpu_device_open(&w->device, w->instance, &device, error);
    if (status == VKA_OK)
        status = rig_exercise(w->device, 1000, error);
    return status;
}

static void finish(whole *w)
{
    gpu_device_close(&w->device);
    gpu_instance_destroy(&w->instance);
    assert_int_equal(shim_live(), 0);
}

/* A run with the n-th call of `name` failing; false when there was no n-th call. */
static bool failing_run(const char *name, uint32_t n, int32_t result, uint32_t physical)
{
    vka_error error = {0};
    whole w = {0};
    vka_status status;
    bool failed;

    shim_reset();
    shim_fail_at(name, n, result);
    status = run(&w, physical, &error);
    failed = shim_failed();
    shim_fail_at(name, 0, 0);
    if (failed && strcmp(name, "vkAllocateMemory") == 0 && status == VKA_OK) {
        finish(&w); /* a smaller block was had instead */
        return true;
    }
    if (failed != (status != VKA_OK))
        fail_msg("%s, call %u: status %d, '%s'", name, n, status, error.message);
    if (failed && error.message[0] == '\0')
        fail_msg("%s, call %u: no message", name, n);
    finish(&w);
    return failed;
}

static void every_call_fails_once(void **state)
{
    static const struct {
        const char *name;
        int32_t result;
    } rows[] = {
        {"vkCreateInstance", OUT_OF_HOST_MEMORY},
        {"vkEnumeratePhysicalDevices", OUT_OF_HOST_MEMORY},
        {"vkEnumerateDeviceExtensionProperties", OUT_OF_HOST_MEMORY},
        {"vkCreateDevice", OUT_OF_HOST_MEMORY},
        {"vkCreateSemaphore", OUT_OF_HOST_MEMORY},
        {"vkCreateBuffer", OUT_OF_DEVICE_MEMORY},
        {"vkAllocateMemory", OUT_OF_DEVICE_MEMORY},
        {"vkAllocateMemory", OUT_OF_HOST_MEMORY},
        {"vkMapMemory", VK_ERROR_MEMORY_MAP_FAILED},
        {"vkBindBufferMemory", OUT_OF_DEVICE_MEMORY},
        {"vkCreateShaderModule", OUT_OF_HOST_MEMORY},
        {"vkCreatePipelineCache", OUT_OF_HOST_MEMORY},
        {"vkCreateDescriptorSetLayout", OUT_OF_HOST_MEMORY},
        {"vkCreatePipelineLayout", OUT_OF_HOST_MEMORY},
        {"vkCreateComputePipelines", VK_ERROR_INITIALIZATION_FAILED},
        {"vkCreateComputePipelines", 1000297000}, /* VK_PIPELINE_COMPILE_REQUIRED: a success code, but no pipeline */
        {"vkCreateCommandPool", OUT_OF_HOST_MEMORY},
        {"vkAllocateCommandBuffers", OUT_OF_DEVICE_MEMORY},
        {"vkCreateQueryPool", OUT_OF_DEVICE_MEMORY},
        {"vkResetCommandPool", OUT_OF_DEVICE_MEMORY},
        {"vkBeginCommandBuffer", OUT_OF_DEVICE_MEMORY},
        {"vkCreateDescriptorPool", VK_ERROR_FRAGMENTATION},
        {"vkAllocateDescriptorSets", VK_ERROR_OUT_OF_POOL_MEMORY},
        {"vkEndCommandBuffer", OUT_OF_DEVICE_MEMORY},
        {"vkQueueSubmit", OUT_OF_DEVICE_MEMORY},
        {"vkWaitSemaphores", OUT_OF_DEVICE_MEMORY},
        {"vkGetQueryPoolResults", DEVICE_LOST},
        {"vkQueueSubmit", DEVICE_LOST},
        {"vkWaitSemaphores", DEVICE_LOST},
    };
    support_devices found;

    (void)state;
    support_find_devices(&found);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t n = 1;

        while (failing_run(rows[i].name, n, rows[i].result, found.index[0]))
            n++;
        if (n == 1)
            fail_msg("%s was never called", rows[i].name);
    }
}

static void missing_device_function(void **state)
{
    vka_error error = {0};
    whole w = {0};

    (void)state;
    shim_hide_function("vkWaitSemaphores");
    assert_int_equal(run(&w, 0, &error), VKA_ERR_VULKAN);
    assert_non_null(strstr(error.message, "vkWaitSemaphores"));
    finish(&w);
}

static void assert_lost(vka_status status, const vka_error *error)
{
    assert_int_equal(status, VKA_ERR_DEVICE_LOST);
    assert_int_equal(error->vk_result, DEVICE_LOST);
    assert_int_equal(error->device, 4);
}

/* Each call after the loss says so, and touches the device no more. */
static void check_all_lost(gpu_device *device, gpu_buffer *buffer, gpu_pipeline *add)
{
    gpu_buffer *other = NULL;
    gpu_commands *commands = NULL;
    vka_error error = {0};
    uint32_t before = shim_total();

    assert_lost(gpu_buffer_create(&other, device, 64, GPU_MEMORY_DEVICE, "other", &error), &error);
    assert_lost(gpu_buffer_flush(buffer, 0, 4, &error), &error);
    assert_lost(gpu_buffer_invalidate(buffer, 0, 4, &error), &error);
    assert_lost(gpu_pipeline_get(device, &add_kernel, &add, &error), &error);
    assert_lost(gpu_commands_begin(device, &commands, &error), &error);
    assert_lost(gpu_wait(device, 0, &error), &error);
    assert_null(other);
    assert_null(commands);
    assert_int_equal(shim_total(), before);
}

static void lost_stays_lost(void **state)
{
    static const char *const names[] = {"vkQueueSubmit", "vkWaitSemaphores", "vkEndCommandBuffer"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        gpu_commands *commands = NULL;
        gpu_buffer *buffer = NULL;
        gpu_pipeline *add = NULL;
        uint64_t ticket = 99;
        vka_error error = {0};
        vka_status status;
        rig r;

        shim_reset();
        rig_open_with(&r, &(gpu_device_params){.position = 4}, false);
        check_ok(gpu_buffer_create(&buffer, r.device, 64, GPU_MEMORY_UPLOAD, "buffer", err));
        check_ok(gpu_pipeline_get(r.device, &add_kernel, &add, err));
        check_ok(gpu_commands_begin(r.device, &commands, err));
        shim_fail_at(names[i], 1, DEVICE_LOST);
        status = gpu_submit(commands, &ticket, &error);
        if (status == VKA_OK)
            status = gpu_wait(r.device, ticket, &error);
        else
            assert_int_equal(ticket, 99);
        assert_lost(status, &error);
        check_all_lost(r.device, buffer, add);
        gpu_buffer_destroy(&buffer);
        rig_close(&r);
    }
}

/* Lost while recording: the recording can be given up, and submitting says what happened. */
static void lost_while_recording(void **state)
{
    gpu_commands *commands = NULL;
    gpu_buffer *buffer = NULL;
    uint64_t ticket = 0;
    vka_error error = {0};
    rig r;

    (void)state;
    rig_open_with(&r, &(gpu_device_params){.position = 4}, false);
    check_ok(gpu_commands_begin(r.device, &commands, err));
    shim_fail_at("vkCreateBuffer", 1, DEVICE_LOST);
    assert_lost(gpu_buffer_create(&buffer, r.device, 64, GPU_MEMORY_DEVICE, "buffer", &error), &error);
    assert_lost(gpu_submit(commands, &ticket, &error), &error);
    assert_int_equal(shim_count("vkQueueSubmit"), 0);
    rig_close(&r);
}

/* ---- host memory ---- */

typedef struct budget {
    uint32_t left;
    int64_t live;
} budget;

/* Gives out `left` blocks, then nothing. */
static void *limited(void *user, void *pointer, size_t size)
{
    budget *b = user;

    if (size == 0) {
        b->live--;
        free(pointer);
        return NULL;
    }
    if (b->left == 0)
        return NULL;
    b->left--;
    b->live += pointer == NULL;
    return realloc(pointer, size);
}

static vka_status limited_run(budget *b, vka_error *error)
{
    const vka_context_params params = {
        .struct_size = sizeof(params), .get_instance_proc = shim_get_proc, .realloc = limited, .realloc_user = b};
    const gpu_device_params device = {.pretend = "max_alloc=1MiB"};
    whole w = {0};
    vka_status status = gpu_instance_create(&w.instance, &params, error);

    if (status == VKA_OK)
        status = gpu_device_open(&w.device, w.instance, &device, error);
    if (status == VKA_OK)
        status = rig_exercise(w.device, 64, error);
    finish(&w);
    return status;
}

static void host_memory_runs_out(void **state)
{
    vka_status status = VKA_ERR_HOST_MEMORY;
    uint32_t blocks = 0;

    (void)state;
    for (; status != VKA_OK && blocks < 1000; blocks++) {
        budget b = {.left = blocks};
        vka_error error = {0};

        shim_reset();
        status = limited_run(&b, &error);
        if (status != VKA_OK && status != VKA_ERR_HOST_MEMORY)
            fail_msg("%u blocks: '%s'", blocks, error.message);
        assert_int_equal(b.live, 0);
    }
    assert_int_equal(status, VKA_OK);
    assert_true(blocks > 10);
}

const struct CMUnitTest failure_tests[] = {
    cmocka_unit_test(every_call_fails_once), cmocka_unit_test(missing_device_function),
    cmocka_unit_test(lost_stays_lost),       cmocka_unit_test(lost_while_recording),
    cmocka_unit_test(host_memory_runs_out),
};
const size_t failure_test_count = sizeof(failure_tests) / sizeof(failure_tests[0]);
