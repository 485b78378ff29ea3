/* What a refusal says: numbers, rule, reason, valid sizes under each policy, ways out. Nothing else is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"

static void refuse(uint32_t heads, uint32_t kv_heads, vka_grid grid, vka_kv_policy policy, vka_error *error)
{
    static vka_rank ranks[VKA_MAX_RANKS];
    vka_layer_desc desc = layer_of(heads, kv_heads);

    memset(ranks, 0x77, sizeof(ranks));
    memset(error, 0, sizeof(*error));
    assert_int_equal(vka_partition(&desc, grid, policy, ranks, VKA_MAX_RANKS, error), VKA_ERR_LAYOUT);
    assert_int_equal(vka_partition(&desc, grid, policy, ranks, VKA_MAX_RANKS, NULL), VKA_ERR_LAYOUT);
    assert_int_equal(error->status, VKA_ERR_LAYOUT);
    for (size_t i = 0; i < sizeof(ranks); i++)
        assert_int_equal(((unsigned char *)ranks)[i], 0x77);
}

static void assert_says(const vka_error *error, const char *text)
{
    if (!strstr(error->message, text))
        fail_msg("no \"%s\" in:\n%s", text, error->message);
}

/* The whole text once, word for word. */
static void whole_text(void **state)
{
    vka_error error;

    (void)state;
    refuse(24, 8, (vka_grid){12, 1, 1}, VKA_KV_REPLICATE, &error);
    assert_string_equal(
        error.message,
        "Layout refused: 24 query heads and 8 KV heads over tp=12, cp=1, dp=1, KV policy replicate (rule kv_heads).\n"
        "Rule: kv_heads must be divisible by tp, or tp by kv_heads, but 8 % 12 = 8 and 12 % 8 = 4.\n"
        "Why: a rank holds whole KV heads, or a KV head lives whole on several ranks; here some KV head would be cut, "
        "or its query heads would land on a rank that does not hold it.\n"
        "Valid tp, strict (KV heads sharded): 1, 2, 4, 8\n"
        "Valid tp, replicate (KV heads sharded, or each on several ranks): 1, 2, 4, 8, 24\n"
        "What works instead:\n"
        "- fewer ranks: tp=8 (a device without a rank stays idle).\n"
        "- several ranks per device: tp=24 also runs on fewer devices than ranks, placed for instance 0*12,1*12; what "
        "the ranks of one device share is stored once.\n"
        "- dp: tp=4 with dp=3 is also 12 ranks; the sequences are shared out instead of the heads.\n"
        "- cp: tp=4 with cp=3 is also 12 ranks; the KV sequence is split instead of the heads, so the number of KV "
        "heads is no limit.\n"
        "This release lays out cp and dp, and runs tp.");
}

/* Layouts that people are known to have tried. */
static void known_refusals(void **state)
{
    static const struct {
        uint32_t heads, kv_heads, tp;
        const char *rule, *strict, *replicate, *way;
    } rows[] = {
        {14, 2, 7, "2 % 7 = 2 and 7 % 2 = 1", "sharded): 1, 2\n", "ranks): 1, 2, 14\n", "tp=1 with dp=7"},
        {24, 8, 3, "8 % 3 = 2 and 3 % 8 = 3", "sharded): 1, 2, 4, 8\n", "ranks): 1, 2, 4, 8, 24\n", "tp=1 with cp=3"},
        {24, 8, 6, "8 % 6 = 2 and 6 % 8 = 6", "sharded): 1, 2, 4, 8\n", "ranks): 1, 2, 4, 8, 24\n", "tp=2 with cp=3"},
        {24, 8, 12, "8 % 12 = 8 and 12 % 8 = 4", "sharded): 1, 2, 4, 8\n", "ranks): 1, 2, 4, 8, 24\n",
         "tp=4 with dp=3"},
        {15, 5, 3, "5 % 3 = 2 and 3 % 5 = 3", "sharded): 1, 5\n", "ranks): 1, 5, 15\n", "tp=5 also runs"},
        {36, 4, 3, "4 % 3 = 1 and 3 % 4 = 3", "sharded): 1, 2, 4\n", "ranks): 1, 2, 4, 12, 36\n", "fewer ranks: tp=2"},
        {36, 4, 6, "4 % 6 = 4 and 6 % 4 = 2", "sharded): 1, 2, 4\n", "ranks): 1, 2, 4, 12, 36\n", "tp=12 also runs"},
        {40, 8, 5, "8 % 5 = 3 and 5 % 8 = 5", "sharded): 1, 2, 4, 8\n", "ranks): 1, 2, 4, 8, 40\n", "tp=1 with dp=5"},
        {40, 8, 20, "8 % 20 = 8 and 20 % 8 = 4", "sharded): 1, 2, 4, 8\n", "ranks): 1, 2, 4, 8, 40\n",
         "tp=4 with cp=5"},
        {24, 3, 8, "3 % 8 = 3 and 8 % 3 = 2", "sharded): 1, 3\n", "ranks): 1, 3, 6, 12, 24\n", "tp=12 also runs"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        vka_error error;

        refuse(rows[i].heads, rows[i].kv_heads, (vka_grid){.tp = rows[i].tp}, VKA_KV_REPLICATE, &error);
        assert_says(&error, "(rule kv_heads)");
        assert_says(&error, rows[i].rule);
        assert_says(&error, rows[i].strict);
        assert_says(&error, rows[i].replicate);
        assert_says(&error, rows[i].way);
        assert_says(&error, "Why: ");
        assert_says(&error, "- fewer ranks: ");
        assert_says(&error, "- dp: ");
        assert_says(&error, "- cp: ");
    }
}

static void query_heads(void **state)
{
    vka_error error;

    (void)state;
    refuse(14, 2, (vka_grid){.tp = 4}, VKA_KV_REPLICATE, &error);
    assert_says(&error, "14 query heads and 2 KV heads over tp=4, cp=1, dp=1, KV policy replicate (rule query_heads)");
    assert_says(&error, "heads must be divisible by tp, but 14 % 4 = 2.");
    assert_says(&error, "Why: every rank computes the same whole number of query heads, and 14 / 4 is none");
    assert_says(&error, "tp=2 with dp=2 is also 4 ranks");
    assert_says(&error, "tp=14 also runs on fewer devices than ranks, placed for instance 0*7,1*7");
}

static void strict_policy(void **state)
{
    vka_error error;

    (void)state;
    refuse(32, 8, (vka_grid){.tp = 16}, VKA_KV_STRICT, &error);
    assert_says(&error, "KV policy strict (rule kv_replicated)");
    assert_says(&error, "policy strict needs kv_heads divisible by tp, but 8 % 16 = 8.");
    assert_says(&error, "each would have to live on 2 ranks");
    assert_says(&error, "- policy replicate: accepts tp=16 with each KV head on 2 ranks.");
    assert_says(&error, "- fewer ranks: tp=8 ");
    assert_null(strstr(error.message, "several ranks per device")); /* strict has no larger size to offer */
}

/* 12 over 8: no size of any grid helps, and the text says so instead of offering some. */
static void uneven_groups(void **state)
{
    vka_error error;

    (void)state;
    for (uint32_t tp = 1; tp <= 12; tp++) {
        refuse(12, 8, (vka_grid){.tp = tp}, VKA_KV_REPLICATE, &error);
        assert_says(&error, "(rule group)");
        assert_says(&error, "heads must be divisible by kv_heads, but 12 % 8 = 4.");
        assert_says(&error, "Valid tp, strict (KV heads sharded): none\n");
        assert_says(&error, "several ranks): none\n");
        assert_says(&error, "no tp, cp, dp or placement");
        assert_says(&error, "the nearest kv_heads for 12 query heads are 6 and 12.");
        assert_null(strstr(error.message, "fewer ranks"));
    }
}

static void grids(void **state)
{
    vka_error error;

    (void)state;
    refuse(32, 8, (vka_grid){8, 512, 2}, VKA_KV_REPLICATE, &error);
    assert_says(&error, "(rule grid)");
    assert_says(&error, "tp * cp * dp must not exceed 4096, but it is 8 * 512 * 2.");
    refuse(24, 8, (vka_grid){6, 2, 5}, VKA_KV_REPLICATE, &error); /* factors come on top of those asked for */
    assert_says(&error, "tp=2 with dp=15 is also 60 ranks");
    assert_says(&error, "tp=2 with cp=6 is also 60 ranks");
    refuse(8, 8, (vka_grid){UINT32_MAX, 1, 1}, VKA_KV_REPLICATE, &error); /* as many ranks are no way out */
    assert_says(&error, "fewer ranks: tp=8 ");
    assert_null(strstr(error.message, "- dp:"));
}

/* The longest lists fit into the record: the last line is there. */
static void the_longest_text_fits(void **state)
{
    vka_error error;

    (void)state;
    refuse(3360, 3360, (vka_grid){.tp = 11}, VKA_KV_REPLICATE, &error);
    assert_says(&error, "1120, 1680, 3360\n");
    assert_says(&error, "This release lays out cp and dp, and runs tp.");
}

static void rule_names(void **state)
{
    (void)state;
    assert_string_equal(vka_layout_rule_name(VKA_RULE_NONE), "none");
    assert_string_equal(vka_layout_rule_name(VKA_RULE_GROUP), "group");
    assert_string_equal(vka_layout_rule_name(VKA_RULE_QUERY_HEADS), "query_heads");
    assert_string_equal(vka_layout_rule_name(VKA_RULE_KV_HEADS), "kv_heads");
    assert_string_equal(vka_layout_rule_name(VKA_RULE_KV_REPLICATED), "kv_replicated");
    assert_string_equal(vka_layout_rule_name(VKA_RULE_GRID), "grid");
    assert_string_equal(vka_layout_rule_name((vka_layout_rule)99), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_text),    cmocka_unit_test(known_refusals),        cmocka_unit_test(query_heads),
        cmocka_unit_test(strict_policy), cmocka_unit_test(uneven_groups),         cmocka_unit_test(grids),
        cmocka_unit_test(rule_names),    cmocka_unit_test(the_longest_text_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
