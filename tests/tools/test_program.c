/* The frame of the program: help, version, unknown names, options, exit statuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/program.h"
#include "vkattn/version.h"

static program_result result;

static void help(void **state)
{
    static char again[sizeof(result.out)];

    (void)state;
    program_expect(&result, "--help", 0);
    assert_contains(result.out, "Usage: vkattn COMMAND");
    assert_contains(result.out, "\n  plan ");
    assert_contains(result.out, "3 layout refused");
    strcpy(again, result.out);
    program_expect(&result, "help", 0);
    assert_string_equal(result.out, again);
    program_expect(&result, "", 2); /* the same, but nothing was done */
    assert_string_equal(result.err, again);
    assert_string_equal(result.out, "");
    program_expect(&result, "plan --help", 0);
    assert_contains(result.out, "Usage: vkattn plan [OPTIONS]");
    assert_contains(result.out, "\n  --kv-policy default|replicate|strict\n");
    strcpy(again, result.out);
    program_expect(&result, "help plan", 0);
    assert_string_equal(result.out, again);
}

static void version(void **state)
{
    (void)state;
    program_expect(&result, "--version", 0);
    assert_string_equal(result.out, "vkattn " VKA_VERSION_STRING "\n");
}

static void unknown_names(void **state)
{
    (void)state;
    program_expect(&result, "plann", 2);
    assert_contains(result.err, "there is no command 'plann'. Did you mean plan?");
    program_expect(&result, "help nothing", 2);
    assert_contains(result.err, "there is no command 'nothing'.\n");
    program_expect(&result, "plan --kv-polcy strict", 2);
    assert_contains(result.err, "plan has no option '--kv-polcy'. Did you mean --kv-policy?");
    assert_contains(result.err, "Try 'vkattn plan --help'.");
    program_expect(&result, "plan --tpp=4", 2);
    assert_contains(result.err, "plan has no option '--tpp=4'. Did you mean --tp?");
    program_expect(&result, "plan --colour", 2);
    assert_contains(result.err, "plan has no option '--colour'.\n");
    program_expect(&result, "plan gpt2", 2);
    assert_contains(result.err, "plan does not understand 'gpt2'; options start with --.");
    program_expect(&result, "plan -h", 2);
    assert_string_equal(result.out, "");
}

static void bad_values(void **state)
{
    static const char *const numbers[] = {"x",  "0",    "-1",  "4x",         "0x4",
                                          "''", "' 4'", "1.5", "4294967296", "99999999999999999999999999"};
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(line, sizeof(line), "plan --model gpt2 --tp %s", numbers[i]);
        program_expect(&result, line, 2);
        assert_contains(result.err, "expected a whole number from 1 to 4294967295.");
        assert_string_equal(result.out, "");
    }
    program_expect(&result, "plan --model gpt2 --tp", 2);
    assert_contains(result.err, "--tp needs a value.");
    program_expect(&result, "plan --json=yes", 2);
    assert_contains(result.err, "--json takes no value, but '--json=yes' gives one.");
    program_expect(&result, "plan --kv-policy loose", 2);
    assert_contains(result.err, "--kv-policy is 'loose'; expected one of: default replicate strict.");
    program_expect(&result, "plan --cache-dtype bf16", 2);
    assert_contains(result.err, "--cache-dtype is 'bf16'; expected one of: f32 f16.");
}

static void both_ways_to_give_a_value(void **state)
{
    static char apart[sizeof(result.out)];

    (void)state;
    program_expect(&result, "plan --model llama3.1-8b --tp 4", 0);
    strcpy(apart, result.out);
    program_expect(&result, "plan --model=llama3.1-8b --tp=4", 0);
    assert_string_equal(result.out, apart);
    program_expect(&result, "plan --tp 3 --model llama3.1-8b --tp 4", 0); /* the last one wins */
    assert_string_equal(result.out, apart);
}

/* Output that cannot be written is a failure. */
static void full_disk(void **state)
{
    (void)state;
    program_expect(&result, "plan --model gpt2 >/dev/full", 1);
    assert_contains(result.err, "standard output could not be written");
    program_expect(&result, "--help >/dev/full", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help),       cmocka_unit_test(version),
        cmocka_unit_test(bad_values), cmocka_unit_test(both_ways_to_give_a_value),
        cmocka_unit_test(full_disk),  cmocka_unit_test(unknown_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
