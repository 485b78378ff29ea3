/* Ranks to devices: balanced blocks and the placement grammar, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"

enum { MOST = 64 };

static vka_rank ranks[MOST];

/* `expected` has one digit per rank. */
static void assert_devices(const char *expected)
{
    for (size_t i = 0; expected[i] != '\0'; i++)
        assert_int_equal(ranks[i].device, expected[i] - '0');
}

static void balanced(void **state)
{
    static const struct {
        uint32_t ranks, devices;
        const char *expected;
    } rows[] = {
        {4, 1, "0000"},    {4, 2, "0011"}, {4, 3, "0012"}, {8, 3, "00011122"},
        {7, 3, "0001122"}, {3, 5, "012"},  {1, 1, "0"},    {9, 4, "000112233"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(vka_place(ranks, rows[i].ranks, rows[i].devices, NULL, NULL), VKA_OK);
        assert_devices(rows[i].expected);
    }
}

/* Sizes differ by one at most, larger blocks come first, blocks are contiguous. */
static void balanced_in_general(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= MOST; count++) {
        for (uint32_t devices = 1; devices <= 70; devices++) {
            uint32_t held[70] = {0};

            assert_int_equal(vka_place(ranks, count, devices, NULL, NULL), VKA_OK);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(ranks[i].device < devices);
                assert_true(i == 0 || ranks[i].device >= ranks[i - 1].device);
                held[ranks[i].device]++;
            }
            for (uint32_t device = 0; device < devices; device++)
                assert_int_equal(held[device], count / devices + (device < count % devices));
        }
    }
}

static void good_specifications(void **state)
{
    static const struct {
        const char *spec, *expected;
    } rows[] = {
        {"0*4", "0000"},     {"0*3,1*1", "0001"},     {"1*1,0*3", "1000"},       {"0,1,2,0", "0120"},
        {"2*2,0*2", "2200"}, {"0*1,1*1,0*2", "0100"}, {"1,1,1*0000002", "1111"}, {"00*4", "0000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(ranks, 0x77, sizeof(ranks));
        assert_int_equal(vka_place(ranks, 4, 3, rows[i].spec, NULL), VKA_OK);
        assert_devices(rows[i].expected);
        assert_int_equal(ranks[4].device, 0x77777777);
    }
}

static void bad_specifications(void **state)
{
    static const struct {
        const char *spec, *says;
    } rows[] = {
        {"", "cannot be read at character 1"},
        {",", "cannot be read at character 1"},
        {"*3", "cannot be read at character 1"},
        {"0*", "cannot be read at character 1"},
        {"0*4,", "cannot be read at character 1"},
        {"0*2,,1*2", "cannot be read at character 5"},
        {"0*2,x*2", "cannot be read at character 5"},
        {" 0*4", "cannot be read at character 1"},
        {"0*4 ", "cannot be read at character 1"},
        {"0*-4", "cannot be read at character 1"},
        {"-1*4", "cannot be read at character 1"},
        {"0x1*4", "cannot be read at character 1"},
        {"0*2;1*2", "cannot be read at character 1"},
        {"0*4294967296,1*4", "cannot be read at character 1"},
        {"99999999999999999999999*4", "cannot be read at character 1"},
        {"0*0,1*4", "gives device 0 no ranks at character 1"},
        {"3*4", "names device 3; there are 3 devices, so expected 0 .. 2"},
        {"4294967295*4", "names device 4294967295"},
        {"0*3", "places 3 ranks; the grid has 4"},
        {"0*3,1*2", "places 5 ranks; the grid has 4"},
        {"0*4294967295,0*5", "places 4294967300 ranks; the grid has 4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        vka_error error = {0};

        memset(ranks, 0x77, sizeof(ranks));
        assert_int_equal(vka_place(ranks, 4, 3, rows[i].spec, &error), VKA_ERR_ARGUMENT);
        if (!strstr(error.message, rows[i].says))
            fail_msg("'%s': no \"%s\" in \"%s\"", rows[i].spec, rows[i].says, error.message);
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(ranks[j].device, 0x77777777); /* outputs are set only after success */
    }
}

static void nothing_to_place(void **state)
{
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_place(ranks, 0, 3, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_place(ranks, 4, 0, NULL, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_place(NULL, 4, 3, NULL, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced),
        cmocka_unit_test(balanced_in_general),
        cmocka_unit_test(good_specifications),
        cmocka_unit_test(bad_specifications),
        cmocka_unit_test(nothing_to_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
