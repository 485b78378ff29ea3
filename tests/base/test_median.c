/* The middle of odd and even numbers of values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/median.h"
#include "base/test_base.h"

static void middles(void **state)
{
    double one[] = {3}, odd[] = {5, -1, 2}, even[] = {8, 1, 4, 2}, same[] = {7, 7, 7, 7};

    (void)state;
    assert_true(vka_median(one, 1) == 3);
    assert_true(vka_median(odd, 3) == 2);
    assert_true(odd[0] == -1 && odd[1] == 2 && odd[2] == 5);
    assert_true(vka_median(even, 4) == 3);
    assert_true(vka_median(same, 4) == 7);
}

int run_median_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(middles)};

    return cmocka_run_group_tests_name("median", tests, NULL, NULL);
}
