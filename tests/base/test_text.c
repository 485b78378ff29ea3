/* Appending: in order, cut at the end, never past it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_base.h"
#include "base/text.h"

static void appends_in_order(void **state)
{
    char data[32];
    vka_text text = {data, sizeof(data), 0};

    (void)state;
    vka_append(&text, "%s", "");
    assert_string_equal(data, "");
    vka_append(&text, "%d, ", 12);
    vka_append(&text, "%s", "end");
    assert_string_equal(data, "12, end");
    assert_int_equal(text.used, 7);
}

static void cuts_what_does_not_fit(void **state)
{
    char data[8] = "-------";
    vka_text text = {data, 6, 0}, nowhere = {NULL, 0, 0};

    (void)state;
    vka_append(&text, "%s", "abc");
    vka_append(&text, "%s", "defghi");
    assert_string_equal(data, "abcde");
    assert_int_equal(data[6], '-');
    vka_append(&text, "%s", "more");
    assert_string_equal(data, "abcde");
    vka_append(&nowhere, "%s", "nothing happens");
    assert_int_equal(nowhere.used, 0);
}

int run_text_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(appends_in_order), cmocka_unit_test(cuts_what_does_not_fit)};

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
