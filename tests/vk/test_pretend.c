/* `pretend`: what each item changes, and what is refused. */
#include <string.h>

#include "support/require.h"
#include "vk/gpu.h"

static vka_caps big(void)
{
    return (vka_caps){
        .bits = (1ull << VKA_CAP_COUNT) - 1,
        .subgroup_size = 32,
        .max_invocations = 1024,
        .max_local_size = {1024, 1024, 1024},
        .max_groups = {2147483647, 65535, 65535},
        .shared_bytes = 49152,
        .storage_buffers = 1048576,
        .push_bytes = 256,
        .texel_elements = 134217728,
        .texel_alignment = 16,
        .max_range = 4294967295u,
        .max_buffer = UINT64_MAX,
        .max_alloc = 4293918720u,
    };
}

static vka_caps pretend(const char *text)
{
    vka_caps caps = big();
    vka_error error;

    if (gpu_pretend(&caps, text, &error) != VKA_OK)
        fail_msg("'%s': %s", text, error.message);
    return caps;
}

static void assert_refused(const char *text, const char *words)
{
    vka_caps caps = big();
    vka_caps before = caps;
    vka_error error = {0};

    if (gpu_pretend(&caps, text, &error) != VKA_ERR_ARGUMENT || !strstr(error.message, words))
        fail_msg("'%s' should be refused with '%s', not '%s'", text, words, error.message);
    assert_memory_equal(&caps, &before, sizeof(caps));
}

static void nothing(void **state)
{
    vka_caps caps = pretend(NULL);
    vka_caps before = big();

    (void)state;
    assert_memory_equal(&caps, &before, sizeof(caps));
    caps = pretend("");
    assert_memory_equal(&caps, &before, sizeof(caps));
}

static void floor_device(void **state)
{
    vka_caps caps = pretend("floor");

    (void)state;
    assert_int_equal(caps.bits, 0);
    assert_int_equal(caps.max_invocations, 128);
    assert_int_equal(caps.max_local_size[0], 128);
    assert_int_equal(caps.max_local_size[2], 64);
    assert_int_equal(caps.shared_bytes, 16384);
    assert_int_equal(caps.storage_buffers, 4);
    assert_int_equal(caps.push_bytes, 128);
    for (int axis = 0; axis < 3; axis++)
        assert_int_equal(caps.max_groups[axis], 65535);
    assert_true(caps.max_range == big().max_range);
}

/* "floor" never raises a limit. */
static void floor_of_a_lesser_device(void **state)
{
    vka_caps caps = big();
    vka_error error;

    (void)state;
    caps.max_invocations = 64;
    caps.storage_buffers = 3;
    assert_int_equal(gpu_pretend(&caps, "floor", &error), VKA_OK);
    assert_int_equal(caps.max_invocations, 64);
    assert_int_equal(caps.storage_buffers, 3);
}

static void limits(void **state)
{
    vka_caps caps = pretend("max_alloc=1MiB, max_range=3KiB,max_buffer=1GiB,max_invocations=256,shared=32KiB");

    (void)state;
    assert_true(caps.max_alloc == 1048576);
    assert_true(caps.max_range == 3072);
    assert_true(caps.max_buffer == 1073741824);
    assert_int_equal(caps.max_invocations, 256);
    assert_int_equal(caps.shared_bytes, 32768);
    assert_true(caps.bits == big().bits);
    assert_true(vka_caps_max_tensor(&caps) == 3072);
    caps = pretend("max_alloc=12345");
    assert_true(caps.max_alloc == 12345);
}

static void capabilities(void **state)
{
    vka_caps caps = pretend("no=fp16+storage16,no=hostcached");
    uint64_t gone = VKA_CAP_BIT(VKA_CAP_FP16) | VKA_CAP_BIT(VKA_CAP_STORAGE16) | VKA_CAP_BIT(VKA_CAP_HOST_CACHED);

    (void)state;
    assert_true(caps.bits == (big().bits & ~gone));
    for (uint32_t i = 0; i < VKA_CAP_COUNT; i++)
        assert_non_null(vka_capability_name(i));
    assert_string_equal(vka_capability_name(VKA_CAP_SUBGROUP_ADD), "subgroup");
    assert_null(vka_capability_name(VKA_CAP_COUNT));
}

static void refusals(void **state)
{
    (void)state;
    assert_refused("max_alloc=5GiB", "device's own 4293918720");
    assert_refused("max_invocations=0", "not between 1");
    assert_refused("max_invocations=4294967297", "device's own 1024");
    assert_refused("shared=", "expected a number");
    assert_refused("shared=KiB", "expected a number");
    assert_refused("shared=-1", "expected a number");
    assert_refused("shared=0x10", "expected a number");
    assert_refused("max_range=99999999999999999999", "expected a number");
    assert_refused("max_range=99999999999999GiB", "expected a number");
    assert_refused("no=fp32", "fp16 storage16 subgroup");
    assert_refused("no=", "no such capability");
    assert_refused("floor,", "expected floor");
    assert_refused("ceiling", "expected floor");
    assert_refused("max_range=1KiB,ceiling", "expected floor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing), cmocka_unit_test(floor_device), cmocka_unit_test(floor_of_a_lesser_device),
        cmocka_unit_test(limits),  cmocka_unit_test(capabilities), cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests_name("pretend", tests, NULL, NULL);
}
