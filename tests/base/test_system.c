/* The description of the machine holds what this one must have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/system.h"
#include "base/test_base.h"

static void described(void **state)
{
    vka_system system;

    (void)state;
    vka_system_describe(&system);
    assert_true(strlen(system.os) > 2 && strchr(system.os, ' ') != NULL);
    assert_true(system.cpus >= 1);
    assert_true(system.memory > 1 << 20);
    assert_true(system.load >= 0);
    assert_int_equal(strlen(system.time), strlen("2026-01-31T12:00:00Z"));
    assert_true(system.time[4] == '-' && system.time[10] == 'T' && system.time[19] == 'Z');
    assert_null(strchr(system.cpu, '\n'));
}

int run_system_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(described)};

    return cmocka_run_group_tests_name("system", tests, NULL, NULL);
}
