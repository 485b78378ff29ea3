/* A driver that crashes gives the exit status that the program promises, and a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/program.h"

static program_result result;

static void crashing_driver(void **state)
{
    (void)state;
    assert_int_equal(setenv("VK_ICD_FILENAMES", CRASHING_DRIVER, 1), 0);
    assert_int_equal(setenv("VK_DRIVER_FILES", CRASHING_DRIVER, 1), 0);
    program_expect(&result, "devices", 5);
    assert_contains(result.err, "crashed, in the program or in a Vulkan driver");
    program_expect(&result, "run", 5);
    program_expect(&result, "run --model qwen2-0.5b --tp 7", 3); /* refused before the driver is asked */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(crashing_driver)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
