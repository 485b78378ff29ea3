/* The device grammar over invented devices. */
#include <stdio.h>
#include <string.h>

#include "support/require.h"
#include "vk/gpu.h"

enum { COUNT = 6 };

/* 0 discrete AMD, 1 the same through AMDVLK, 2 and 3 two equal discrete cards, 4 software, 5 too old */
static void make_devices(vka_device_info devices[COUNT])
{
    static const struct {
        const char *name, *driver;
        vka_device_type type;
        uint8_t uuid;
        uint32_t bus;
    } rows[COUNT] = {
        {"AMD Radeon RX 6800", "radv", VKA_DEVICE_DISCRETE, 0xa1, 3},
        {"AMD Radeon RX 6800", "AMDVLK", VKA_DEVICE_DISCRETE, 0xa1, 3},
        {"GeForce RTX 3090", "NVIDIA", VKA_DEVICE_DISCRETE, 0xb2, 4},
        {"GeForce RTX 3090", "NVIDIA", VKA_DEVICE_DISCRETE, 0xb3, 0x1a},
        {"llvmpipe", "llvmpipe", VKA_DEVICE_CPU, 0xc4, 0},
        {"Old card", "old", VKA_DEVICE_INTEGRATED, 0xd5, 0},
    };

    memset(devices, 0, COUNT * sizeof(devices[0]));
    for (uint32_t i = 0; i < COUNT; i++) {
        devices[i].index = i;
        devices[i].type = rows[i].type;
        devices[i].usable = i != 5;
        devices[i].duplicate_of = i == 1 ? 0 : -1;
        devices[i].device_uuid[0] = rows[i].uuid;
        devices[i].device_uuid[15] = 0x0f;
        devices[i].has_pci = rows[i].bus != 0;
        devices[i].pci_bus = rows[i].bus;
        snprintf(devices[i].name, sizeof(devices[i].name), "%s", rows[i].name);
        snprintf(devices[i].driver_name, sizeof(devices[i].driver_name), "%s", rows[i].driver);
    }
    snprintf(devices[5].note, sizeof(devices[5].note), "its driver has Vulkan 1.0");
}

/* `expected`: indices as digits. */
static void check_choice(const char *grammar, const char *expected)
{
    vka_device_info devices[COUNT];
    uint32_t chosen[16];
    uint32_t count = 0;
    vka_error error = {0};
    char got[17] = "";

    make_devices(devices);
    if (gpu_choose(devices, COUNT, grammar, chosen, 16, &count, &error) != VKA_OK)
        fail_msg("'%s': %s", grammar ? grammar : "NULL", error.message);
    for (uint32_t i = 0; i < count; i++)
        got[i] = (char)('0' + chosen[i]);
    assert_string_equal(got, expected);
}

static void check_refusal(const char *grammar, vka_status status, const char *words)
{
    vka_device_info devices[COUNT];
    uint32_t chosen[4];
    uint32_t count = 77;
    vka_error error = {0};

    make_devices(devices);
    if (gpu_choose(devices, COUNT, grammar, chosen, 4, &count, &error) != status)
        fail_msg("'%s' should give '%s', not '%s'", grammar, vka_status_text(status), error.message);
    assert_int_equal(error.status, status);
    assert_int_equal(count, 77);
    if (!strstr(error.message, words))
        fail_msg("'%s': '%s' does not say '%s'", grammar, error.message, words);
}

static void choices(void **state)
{
    (void)state;
    check_choice(NULL, "0234");
    check_choice("all", "0234");
    check_choice("type:discrete", "023");
    check_choice("type:cpu", "4");
    check_choice("0", "0");
    check_choice("3,0", "30");
    check_choice("0,0,0", "000");
    check_choice(" 2 , 4 ", "24");
    check_choice("all,4", "02344");
    check_choice("1", "1"); /* the user's own choice wins over the mark */
    check_choice("uuid:b2", "2");
    check_choice("uuid:B2000000-0000-0000-0000-00000000000f", "2");
    check_choice("uuid:a1", "0"); /* the preferred one of the two entries */
    check_choice("pci:0000:1A:00.0", "3");
    check_choice("pci:0:3:0.0", "0");
    check_choice("name:LLVM", "4");
    check_choice("name:radeon rx", "0");
}

static void refusals(void **state)
{
    (void)state;
    check_refusal("", VKA_ERR_ARGUMENT, "expected a number");
    check_refusal("0,", VKA_ERR_ARGUMENT, "expected a number");
    check_refusal("gpu", VKA_ERR_ARGUMENT, "expected a number");
    check_refusal("-1", VKA_ERR_ARGUMENT, "expected a number");
    check_refusal("6", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("99999999999999999999", VKA_ERR_ARGUMENT, "expected a number");
    check_refusal("name:", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("name:geforce", VKA_ERR_ARGUMENT, "more than one");
    check_refusal("name:Voodoo", VKA_ERR_ARGUMENT, "4 'llvmpipe' (cpu, llvmpipe)");
    check_refusal("uuid:", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("uuid:zz", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("uuid:b2000000000000000000000000000000f0", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("pci:0:3:0", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("pci:0:3:0.0.0", VKA_ERR_ARGUMENT, "there is no such device");
    check_refusal("pci:0:0:0.0", VKA_ERR_ARGUMENT, "there is no such device"); /* no address known is no address 0 */
    check_refusal("type:virtual", VKA_ERR_ARGUMENT, "no usable device");
    check_refusal("type:", VKA_ERR_ARGUMENT, "no usable device");
    check_refusal("type:integrated", VKA_ERR_ARGUMENT, "no usable device");
    check_refusal("5", VKA_ERR_UNSUPPORTED, "its driver has Vulkan 1.0");
    check_refusal("0,0,0,0,0", VKA_ERR_ARGUMENT, "more than 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(refusals)};

    return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}
