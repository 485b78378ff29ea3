/* Instances and devices: what is found, opened, refused and closed. */
#include <stdio.h>
#include <string.h>

#include "vk/api.h"
#include "vk/rig.h"

static void opens_and_closes(void **state)
{
    rig r;

    (void)state;
    for (int round = 0; round < 2; round++) { /* making again after destroying has crashed other libraries */
        rig_open(&r, NULL);
        check_ok(rig_exercise(r.device, 1000, err));
        assert_int_equal(shim_count("vkCreateDevice"), round + 1);
        rig_close(&r);
    }
}

static void facts(void **state)
{
    support_devices found;
    const vka_device_info *info = &found.info[0];
    const vka_caps *caps;
    rig r;

    (void)state;
    support_find_devices(&found);
    assert_int_equal(info->type, VKA_DEVICE_CPU);
    assert_true(info->name[0] && info->driver_name[0]);
    assert_true(info->api_version >= VK_API_VERSION_1_2);
    assert_true(info->memory_bytes >= 1ull << 30);
    assert_int_equal(info->duplicate_of, -1);
    assert_string_equal(info->note, "");
    rig_open(&r, NULL);
    caps = gpu_device_caps(r.device);
    assert_string_equal(gpu_device_info(r.device)->name, info->name);
    assert_true(caps->max_range == info->max_storage_range);
    assert_true(caps->max_buffer == info->max_buffer_bytes);
    assert_true(caps->max_alloc == info->max_allocation_bytes - 65536);
    assert_int_equal(caps->max_invocations, info->max_workgroup_invocations);
    assert_true(caps->bits & VKA_CAP_BIT(VKA_CAP_TEXEL));
    assert_true(caps->bits & VKA_CAP_BIT(VKA_CAP_TIMESTAMPS));
    assert_true(caps->bits & VKA_CAP_BIT(VKA_CAP_HOST_CACHED));
    /* the two devices differ in this, and tests of kernels count on it */
    assert_int_equal((caps->bits & VKA_CAP_BIT(VKA_CAP_STORAGE16)) != 0, info->driver_id == VK_DRIVER_ID_MESA_LLVMPIPE);
    rig_close(&r);
}

static void same_device_twice(void **state)
{
    gpu_device *second = NULL;
    support_devices found;
    gpu_device_params params = {.position = 1};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    support_find_devices(&found);
    params.physical = found.index[0];
    check_ok(gpu_device_open(&second, r.instance, &params, err));
    check_ok(rig_exercise(r.device, 100, err));
    check_ok(rig_exercise(second, 200, err));
    check_ok(rig_exercise(r.device, 300, err));
    gpu_device_close(&second);
    check_ok(rig_exercise(r.device, 400, err));
    rig_close(&r);
}

static void two_instances_at_once(void **state)
{
    rig first, second;

    (void)state;
    rig_open(&first, NULL);
    rig_open(&second, "no=hostcached");
    check_ok(rig_exercise(second.device, 100, err));
    check_ok(rig_exercise(first.device, 100, err));
    gpu_device_close(&first.device);
    gpu_instance_destroy(&first.instance);
    check_ok(rig_exercise(second.device, 100, err));
    rig_close(&second);
}

static void system_loader(void **state)
{
    const vka_context_params params = {.struct_size = sizeof(params)};
    gpu_instance *instance = NULL;
    gpu_device *device = NULL;
    support_devices found;

    (void)state;
    support_find_devices(&found);
    check_ok(gpu_instance_create(&instance, &params, err));
    check_ok(gpu_device_open(&device, instance, &(gpu_device_params){.physical = found.index[0]}, err));
    check_ok(rig_exercise(device, 100, err));
    gpu_device_close(&device);
    gpu_instance_destroy(&instance);
    assert_int_equal(shim_total(), 0);
}

/* ---- refusals ---- */

static void expect_no_instance(vka_status expected, const char *words, uint32_t validation)
{
    const vka_context_params params = {
        .struct_size = sizeof(params), .get_instance_proc = shim_get_proc, .validation = validation};
    gpu_instance *instance = NULL;
    vka_error error = {0};

    if (gpu_instance_create(&instance, &params, &error) != expected || !strstr(error.message, words))
        fail_msg("expected '%s', got '%s'", words, error.message);
    assert_null(instance);
    assert_int_equal(shim_live(), 0);
}

static vka_proc_fn no_functions(void *instance, const char *name)
{
    (void)instance;
    (void)name;
    return NULL;
}

static void no_vulkan(void **state)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = no_functions};
    uint32_t count = 5;
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_device_list(&params, NULL, 0, &count, &error), VKA_ERR_NO_DEVICE);
    assert_non_null(strstr(error.message, "too old"));
    assert_int_equal(count, 5);
    shim_hide_all_devices(true);
    expect_no_instance(VKA_ERR_NO_DEVICE, "mesa-vulkan-drivers", 0);
    assert_null(strchr(error.message, '\n'));
    shim_hide_all_devices(false);
    shim_fail_at("vkCreateInstance", 1, VK_ERROR_INCOMPATIBLE_DRIVER);
    expect_no_instance(VKA_ERR_NO_DEVICE, "mesa-vulkan-drivers", 0);
    shim_fail_at("vkEnumeratePhysicalDevices", 1, VK_ERROR_INITIALIZATION_FAILED);
    expect_no_instance(VKA_ERR_NO_DEVICE, "mesa-vulkan-drivers", 0);
}

static void missing_parts(void **state)
{
    (void)state;
    shim_hide_function("vkEnumerateInstanceVersion"); /* as in a loader of Vulkan 1.0 */
    expect_no_instance(VKA_ERR_NO_DEVICE, "too old", 0);
    shim_hide_function("vkCreateDevice");
    expect_no_instance(VKA_ERR_VULKAN, "vkCreateDevice", 0);
    shim_hide_function(NULL);
    shim_hide_extension("VK_LAYER_KHRONOS_validation");
    expect_no_instance(VKA_ERR_UNSUPPORTED, "vulkan-validationlayers", 1);
}

/* Opens device 0 in its present disguise and expects the reason it cannot be used. */
static void expect_unusable(const char *words)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = shim_get_proc};
    gpu_instance *instance = NULL;
    gpu_device *device = NULL;
    vka_error error = {0};

    check_ok(gpu_instance_create(&instance, &params, err));
    assert_int_equal(gpu_instance_info(instance, 0)->usable, 0);
    assert_int_equal(gpu_device_open(&device, instance, &(gpu_device_params){0}, &error), VKA_ERR_UNSUPPORTED);
    assert_null(device);
    if (!strstr(error.message, words))
        fail_msg("expected '%s', got '%s'", words, error.message);
    gpu_instance_destroy(&instance);
    assert_int_equal(shim_live(), 0);
}

static void unusable_devices(void **state)
{
    (void)state;
    shim_set_api_version(VK_API_VERSION_1_1);
    expect_unusable("Vulkan 1.1; 1.2 is needed");
    shim_set_api_version(0);
    shim_hide_timeline_feature(true);
    expect_unusable("timelineSemaphore");
}

static void wrong_arguments(void **state)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = shim_get_proc};
    gpu_instance *instance = NULL;
    gpu_device *device = NULL;
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_device_list(&params, NULL, 0, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_device_list(&params, NULL, 1, &(uint32_t){0}, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_device_list(&(vka_context_params){0}, NULL, 0, &(uint32_t){0}, &error), VKA_ERR_ARGUMENT);
    check_ok(gpu_instance_create(&instance, &params, err));
    assert_null(gpu_instance_info(instance, 99));
    assert_int_equal(gpu_device_open(&device, instance, &(gpu_device_params){.physical = 99}, &error),
                     VKA_ERR_ARGUMENT);
    assert_int_equal(
        gpu_device_open(&device, instance, &(gpu_device_params){.pretend = "shared=9GiB", .position = 3}, &error),
        VKA_ERR_ARGUMENT);
    assert_int_equal(error.device, 3);
    assert_null(device);
    gpu_instance_destroy(&instance);
    gpu_instance_destroy(&instance);
    gpu_instance_destroy(NULL);
    gpu_device_close(&device);
    gpu_device_close(NULL);
    assert_int_equal(shim_live(), 0);
}

/* MoltenVK on an AMD GPU reports subgroup arithmetic that is wrong. */
static void quirk(void **state)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = shim_get_proc};
    rig r = {0};

    (void)state;
    rig_open(&r, NULL);
    assert_true(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_SUBGROUP_ADD));
    rig_close(&r);
    shim_set_driver_id(VK_DRIVER_ID_MOLTENVK, 0x1002);
    check_ok(gpu_instance_create(&r.instance, &params, err));
    check_ok(gpu_device_open(&r.device, r.instance, &(gpu_device_params){0}, err));
    assert_false(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_SUBGROUP_ADD));
    assert_true(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_TEXEL));
    rig_close(&r);
}

/* Neither software device has these two extensions, so the shim invents them. */
static void optional_extensions(void **state)
{
    const uint64_t budget = 1 << 30;
    gpu_buffer *buffer = NULL;
    vka_memory_use use;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    assert_false(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_MEMORY_BUDGET));
    assert_int_equal(gpu_device_info(r.device)->has_pci, 0);
    check_ok(gpu_buffer_create(&buffer, r.device, 4096, GPU_MEMORY_DEVICE, "buffer", err));
    gpu_device_memory(r.device, &use); /* heaps less our own blocks */
    assert_true(use.available_bytes < gpu_device_info(r.device)->memory_bytes);
    gpu_buffer_destroy(&buffer);
    rig_close(&r);
    shim_reset();
    shim_set_memory_budget(budget, 1000);
    shim_set_pci_bus(7);
    rig_open(&r, NULL);
    assert_true(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_MEMORY_BUDGET));
    assert_int_equal(shim_event(shim_find("vkCreateDevice", -1, 0))->value[0], 1); /* enabled */
    assert_true(gpu_device_info(r.device)->has_pci);
    assert_int_equal(gpu_device_info(r.device)->pci_bus, 7);
    gpu_device_memory(r.device, &use);
    assert_true(use.available_bytes == budget - 1000);
    shim_set_memory_budget(budget, budget + 1); /* more in use than wise */
    gpu_device_memory(r.device, &use);
    assert_true(use.available_bytes == 0);
    rig_close(&r);
}

const struct CMUnitTest device_tests[] = {
    cmocka_unit_test(opens_and_closes),    cmocka_unit_test(facts),
    cmocka_unit_test(same_device_twice),   cmocka_unit_test(two_instances_at_once),
    cmocka_unit_test(system_loader),       cmocka_unit_test(no_vulkan),
    cmocka_unit_test(missing_parts),       cmocka_unit_test(unusable_devices),
    cmocka_unit_test(wrong_arguments),     cmocka_unit_test(quirk),
    cmocka_unit_test(optional_extensions),
};
const size_t device_test_count = sizeof(device_tests) / sizeof(device_tests[0]);
