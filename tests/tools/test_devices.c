/* vkattn devices: the listing, the explanation, and a machine without any device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tools/program.h"

static program_result result;

/* The entry of a driver. */
static json_t *find_device(json_t *list, const char *driver)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(program_string(json_array_get(list, i), "driver_name"), driver) == 0)
            return json_array_get(list, i);
    fail_msg("no device of driver '%s'", driver);
    return NULL;
}

static void tables(void **state)
{
    (void)state;
    program_expect(&result, "devices", 0);
    assert_contains(result.out, "  index  name ");
    assert_contains(result.out, "llvmpipe (LLVM ");
    assert_contains(result.out, "SwiftShader Device (");
    assert_contains(result.out, "  storage range ");
    assert_contains(result.out, "  6d65736132322e"); /* lavapipe's UUID spells Mesa's version */
    assert_null(strstr(result.out, "kernel"));
    assert_string_equal(result.err, "");
}

static void listing(void **state)
{
    json_t *report = program_json(&result, "devices --json", 0);
    json_t *list = json_object_get(report, "devices");
    json_t *lavapipe = find_device(list, "llvmpipe");
    json_t *swiftshader = find_device(list, "SwiftShader driver");

    (void)state;
    assert_string_equal(program_string(report, "status"), "ok");
    assert_null(json_object_get(report, "explained"));
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(program_string(lavapipe, "type"), "cpu");
    assert_int_equal(strlen(program_string(lavapipe, "device_uuid")), 32);
    assert_contains(program_string(lavapipe, "driver_info"), "Mesa");
    assert_int_equal(program_integer(lavapipe, "max_storage_range"), 134217728);
    assert_int_equal(program_integer(swiftshader, "max_storage_range"), 1073741824);
    assert_int_equal(program_integer(swiftshader, "subgroup_size"), 4);
    assert_true(json_is_true(json_object_get(swiftshader, "usable")));
    assert_true(json_is_null(json_object_get(swiftshader, "duplicate_of")));
    assert_true(json_is_null(json_object_get(swiftshader, "pci")));
    json_decref(report);
}

/* Exactly one variant of each kernel and dtype is used; the others say why not. */
static void check_variants(json_t *variants)
{
    assert_true(json_array_size(variants) > 10);
    for (size_t i = 0; i < json_array_size(variants); i++) {
        json_t *variant = json_array_get(variants, i);
        int selected = 0;

        for (size_t j = 0; j < json_array_size(variants); j++) {
            json_t *other = json_array_get(variants, j);

            selected += strcmp(program_string(variant, "kernel"), program_string(other, "kernel")) == 0 &&
                        strcmp(program_string(variant, "dtype"), program_string(other, "dtype")) == 0 &&
                        json_is_true(json_object_get(other, "selected"));
        }
        assert_int_equal(selected, 1);
        assert_int_equal(program_string(variant, "reason")[0] == '\0',
                         json_is_true(json_object_get(variant, "selected")));
    }
}

static void explanation(void **state)
{
    json_t *report = program_json(&result, "devices --explain --json --devices name:llvmpipe --pretend no=fp16", 0);
    json_t *explained = json_object_get(report, "explained");
    json_t *device = json_array_get(explained, 0);
    json_t *capabilities = json_object_get(device, "capabilities");

    (void)state;
    assert_int_equal(json_array_size(json_object_get(report, "devices")), 2);
    assert_int_equal(json_array_size(explained), 1);
    assert_int_equal(program_integer(device, "index"),
                     program_integer(find_device(json_object_get(report, "devices"), "llvmpipe"), "index"));
    assert_true(json_is_true(json_object_get(capabilities, "storage16")));
    assert_true(json_is_false(json_object_get(capabilities, "fp16")));
    check_variants(json_object_get(device, "variants"));
    json_decref(report);
    program_expect(&result, "devices --explain", 0);
    assert_contains(result.out, "\n  capabilities: ");
    assert_contains(result.out, " gemm_f32_floor");
}

static void floor_uses_the_last_rows(void **state)
{
    json_t *report = program_json(&result, "devices --explain --json --pretend floor", 0);
    json_t *explained = json_object_get(report, "explained");

    (void)state;
    assert_int_equal(json_array_size(explained), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *device = json_array_get(explained, i);
        json_t *variants = json_object_get(device, "variants");
        json_t *value;
        const char *name;

        json_object_foreach(json_object_get(device, "capabilities"), name, value) assert_true(json_is_false(value));
        check_variants(variants);
        for (size_t j = 0; j < json_array_size(variants); j++)
            if (json_is_true(json_object_get(json_array_get(variants, j), "selected")))
                assert_contains(program_string(json_array_get(variants, j), "name"), "_floor");
    }
    json_decref(report);
}

static void wrong_arguments(void **state)
{
    (void)state;
    program_expect(&result, "devices --devices 0", 2);
    assert_contains(result.err, "add --explain");
    program_expect(&result, "devices --explain --devices 7", 2);
    assert_contains(result.err, "device '7': there is no such device; devices here: 0 '");
    program_expect(&result, "devices --explain --pretend cheap", 2);
    assert_contains(result.err, "expected floor");
    assert_string_equal(result.out, "");
}

static void no_device(void **state)
{
    json_t *report;
    size_t length;

    (void)state;
    setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
    setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
    program_expect(&result, "devices", 1);
    assert_contains(result.err, "no Vulkan device: install ");
    length = strlen(result.err);
    assert_ptr_equal(strchr(result.err, '\n'), result.err + length - 1); /* one line */
    report = program_json(&result, "devices --json", 1);
    assert_string_equal(program_string(report, "status"), "failed");
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),          cmocka_unit_test(listing),
        cmocka_unit_test(explanation),     cmocka_unit_test(floor_uses_the_last_rows),
        cmocka_unit_test(wrong_arguments), cmocka_unit_test(no_device), /* changes the environment: last */
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
