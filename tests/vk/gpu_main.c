/* All tests of one open device, in one process: software devices are slow to compile and cache within a process. */
#include <stdlib.h>
#include <string.h>

#include "vk/rig.h"

static int reset(void **state)
{
    (void)state;
    shim_reset();
    return 0;
}

static int run(const char *name, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest with_reset[32];

    if (count > sizeof(with_reset) / sizeof(with_reset[0]))
        return 1;
    memcpy(with_reset, tests, count * sizeof(tests[0]));
    for (size_t i = 0; i < count; i++)
        with_reset[i].setup_func = reset;
    return _cmocka_run_group_tests(name, with_reset, count, NULL, NULL);
}

int main(void)
{
    int failed = 0;

    failed += run("device", device_tests, device_test_count);
    failed += run("buffers", buffer_tests, buffer_test_count);
    failed += run("commands", command_tests, command_test_count);
    failed += run("limits", limit_tests, limit_test_count);
    failed += run("cache", cache_tests, cache_test_count);
    failed += run("failures", failure_tests, failure_test_count);
    failed += run("validation", validation_tests, validation_test_count);
    return failed != 0;
}
