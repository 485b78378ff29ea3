/* What names files that are made for one device: a hash with published values, and a line that tells devices apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/identity.h"
#include "base/test_base.h"
#include "vkattn/version.h"

static void published_hashes(void **state)
{
    (void)state;
    /* test vectors published with the algorithm */
    assert_true(vka_hash(VKA_HASH_START, "", 0) == 0xcbf29ce484222325ull);
    assert_true(vka_hash(VKA_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cull);
    assert_true(vka_hash(VKA_HASH_START, "foobar", 6) == 0x85944171f73967e8ull);
    assert_true(vka_hash(vka_hash(VKA_HASH_START, "foo", 3), "bar", 3) == 0x85944171f73967e8ull);
}

static void a_line_for_each_device(void **state)
{
    vka_device_info info = {.driver_id = 13, .driver_version = 7, .driver_info = "Mesa 1.2", .device_uuid = {0xab, 1}};
    char text[VKA_IDENTITY_BYTES], other[VKA_IDENTITY_BYTES];

    (void)state;
    vka_device_identity(&info, text);
    assert_string_equal(text, "vkattn " VKA_VERSION_STRING
                              " driver 13 7 [Mesa 1.2] device ab010000000000000000000000000000");
    info.device_uuid[15] = 1;
    vka_device_identity(&info, other);
    assert_string_not_equal(text, other);
    strcpy(info.driver_info, "a\nb\x7f");
    vka_device_identity(&info, other);
    assert_non_null(strstr(other, "[a?b?]"));
}

static void the_longest_line_fits(void **state)
{
    vka_device_info info = {.driver_id = UINT32_MAX, .driver_version = UINT32_MAX};
    char text[VKA_IDENTITY_BYTES];

    (void)state;
    memset(info.driver_info, 'x', sizeof(info.driver_info) - 1);
    vka_device_identity(&info, text);
    assert_string_equal(text + strlen(text) - 33, " 00000000000000000000000000000000");
}

int run_identity_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_hashes),
        cmocka_unit_test(a_line_for_each_device),
        cmocka_unit_test(the_longest_line_fits),
    };

    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
