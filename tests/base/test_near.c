/* Likeness of names: what is suggested, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/near.h"
#include "base/test_base.h"

static void near_names(void **state)
{
    static const char *const pairs[][2] = {
        {"tp", "tp"},
        {"gtp2", "gpt2"},
        {"jsno", "json"},
        {"delay", "devlay"},
        {"tpp", "tp"},
        {"head-dim", "heads-dim"},
        {"device", "devices"},
        {"LLAMA", "llama2-7b"},
        {"kv-polciy", "kv-policy"},
        {"llama3-8b", "llama3.1-8b"},
        {"llama2-70B", "llama2-7b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (!vka_near(pairs[i][0], pairs[i][1]))
            fail_msg("%s is not near %s", pairs[i][0], pairs[i][1]);
}

static void far_names(void **state)
{
    static const char *const pairs[][2] = {
        {"", "tp"}, {"valid", "devices"}, {"js", "jsonl"}, {"place", "heads"}, {"gpt2", "llama2-7b"}, {"t", "devices"},
    };
    char longer[80];

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (vka_near(pairs[i][0], pairs[i][1]))
            fail_msg("%s is near %s", pairs[i][0], pairs[i][1]);
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_false(vka_near(longer, longer)); /* too long to compare */
}

int run_near_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_names),
        cmocka_unit_test(far_names),
    };

    return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
