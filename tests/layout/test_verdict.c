/* Which layouts are accepted: head layouts of public models over many sizes, and the lists of valid sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout_support.h"

enum { SIZES = 10 };

static const uint32_t sizes[SIZES] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 24};

/* S: KV heads sharded. Rn: each KV head on n ranks. Xq: refused for the query heads. Xk: refused for the KV heads. */
static const struct {
    uint32_t heads, kv_heads;
    const char *verdicts[SIZES];
} table[] = {
    {4, 1, {"R2", "Xq", "R4", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq"}},   /* gemma3-1b */
    {8, 1, {"R2", "Xq", "R4", "Xq", "Xq", "Xq", "R8", "Xq", "Xq", "Xq"}},   /* gemma-2b */
    {8, 4, {"S", "Xq", "S", "Xq", "Xq", "Xq", "R2", "Xq", "Xq", "Xq"}},     /* gemma2-2b */
    {9, 3, {"Xq", "S", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq"}},    /* smollm2-135m */
    {12, 2, {"S", "Xk", "R2", "Xq", "R3", "Xq", "Xq", "R6", "Xq", "Xq"}},   /* qwen2-1.5b */
    {12, 12, {"S", "S", "S", "Xq", "S", "Xq", "Xq", "S", "Xq", "Xq"}},      /* gpt2 */
    {14, 2, {"S", "Xq", "Xq", "Xq", "Xq", "Xk", "Xq", "Xq", "Xq", "Xq"}},   /* qwen2-0.5b */
    {15, 5, {"Xq", "Xk", "Xq", "S", "Xq", "Xq", "Xq", "Xq", "Xq", "Xq"}},   /* smollm2-360m */
    {16, 1, {"R2", "Xq", "R4", "Xq", "Xq", "Xq", "R8", "Xq", "R16", "Xq"}}, /* gpt_bigcode-1b */
    {16, 2, {"S", "Xq", "R2", "Xq", "Xq", "Xq", "R4", "Xq", "R8", "Xq"}},   /* qwen2.5-3b */
    {16, 8, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "R2", "Xq"}},     /* qwen3-0.6b */
    {16, 16, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "S", "Xq"}},     /* gpt-j-6b */
    {24, 8, {"S", "Xk", "S", "Xq", "Xk", "Xq", "S", "Xk", "Xq", "R3"}},     /* llama3.2-3b */
    {28, 4, {"S", "Xq", "S", "Xq", "Xq", "Xk", "Xq", "Xq", "Xq", "Xq"}},    /* qwen2-7b */
    {32, 2, {"S", "Xq", "R2", "Xq", "Xq", "Xq", "R4", "Xq", "R8", "Xq"}},   /* chatglm-6b */
    {32, 4, {"S", "Xq", "S", "Xq", "Xq", "Xq", "R2", "Xq", "R4", "Xq"}},    /* tinyllama */
    {32, 8, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "R2", "Xq"}},     /* llama3.1-8b */
    {32, 16, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "S", "Xq"}},     /* gemma2-27b */
    {32, 32, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "S", "Xq"}},     /* llama2-7b */
    {36, 4, {"S", "Xk", "S", "Xq", "Xk", "Xq", "Xq", "R3", "Xq", "Xq"}},    /* starcoder2-7b */
    {36, 36, {"S", "S", "S", "Xq", "S", "Xq", "Xq", "S", "Xq", "Xq"}},      /* minicpm-2b */
    {40, 8, {"S", "Xq", "S", "Xk", "Xq", "Xq", "S", "Xq", "Xq", "Xq"}},     /* llama4-scout */
    {40, 40, {"S", "Xq", "S", "S", "Xq", "Xq", "S", "Xq", "Xq", "Xq"}},     /* llama2-13b */
    {64, 8, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "R2", "Xq"}},     /* llama2-70b */
    {128, 128, {"S", "Xq", "S", "Xq", "Xq", "Xq", "S", "Xq", "S", "Xq"}},   /* deepseek-v3 */
};

static void name_verdict(char out[16], const vka_verdict *verdict)
{
    switch (verdict->rule) {
    case VKA_RULE_NONE:
        if (verdict->replicas == 1)
            strcpy(out, "S");
        else
            snprintf(out, 16, "R%u", verdict->replicas);
        break;
    case VKA_RULE_QUERY_HEADS:
        strcpy(out, "Xq");
        break;
    case VKA_RULE_KV_HEADS:
        strcpy(out, "Xk");
        break;
    default:
        snprintf(out, 16, "rule %d", (int)verdict->rule);
        break;
    }
}

static void replicate_follows_the_table(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        vka_layer_desc desc = layer_of(table[row].heads, table[row].kv_heads);

        for (size_t i = 0; i < SIZES; i++) {
            vka_verdict verdict;
            char name[16];

            assert_int_equal(vka_layout_judge(&desc, (vka_grid){.tp = sizes[i]}, VKA_KV_REPLICATE, &verdict, NULL),
                             VKA_OK);
            name_verdict(name, &verdict);
            if (strcmp(name, table[row].verdicts[i]) != 0)
                fail_msg("%u/%u tp=%u: %s, expected %s", desc.heads, desc.kv_heads, sizes[i], name,
                         table[row].verdicts[i]);
        }
    }
}

/* Under strict what was sharded or refused stays so, and what was replicated is refused by its own rule. */
static void strict_refuses_replicas(void **state)
{
    size_t replicated = 0;

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        vka_layer_desc desc = layer_of(table[row].heads, table[row].kv_heads);

        for (size_t i = 0; i < SIZES; i++) {
            bool copies = table[row].verdicts[i][0] == 'R';
            vka_verdict verdict;
            char name[16];

            assert_int_equal(vka_layout_judge(&desc, (vka_grid){.tp = sizes[i]}, VKA_KV_STRICT, &verdict, NULL),
                             VKA_OK);
            replicated += copies;
            if (copies) {
                assert_int_equal(verdict.rule, VKA_RULE_KV_REPLICATED);
                continue;
            }
            name_verdict(name, &verdict);
            assert_string_equal(name, table[row].verdicts[i]);
        }
    }
    assert_int_equal(replicated, 26);
}

/* The lists name exactly the sizes that are accepted one by one. */
static void lists_are_complete(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        vka_layer_desc desc = layer_of(table[row].heads, table[row].kv_heads);
        uint32_t strict = 0, replicate = 0;
        vka_verdict lists, one;

        assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, VKA_KV_STRICT, &lists, NULL), VKA_OK);
        for (uint32_t tp = 1; tp <= 2 * desc.heads; tp++) {
            vka_layout_judge(&desc, (vka_grid){.tp = tp}, VKA_KV_STRICT, &one, NULL);
            if (one.rule == VKA_RULE_NONE)
                assert_int_equal(lists.valid_strict[strict++], tp);
            vka_layout_judge(&desc, (vka_grid){.tp = tp}, VKA_KV_REPLICATE, &one, NULL);
            if (one.rule == VKA_RULE_NONE)
                assert_int_equal(lists.valid_replicate[replicate++], tp);
        }
        assert_int_equal(lists.valid_strict_count, strict);
        assert_int_equal(lists.valid_replicate_count, replicate);
    }
}

/* The list has room for the layer with the most divisors. */
static void the_longest_list_fits(void **state)
{
    uint32_t most = 0;

    (void)state;
    for (uint32_t heads = 1; heads <= VKA_MAX_HEADS; heads += heads < 3300 ? 33 : 1) {
        vka_layer_desc desc = layer_of(heads, heads);
        vka_verdict verdict;

        assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, VKA_KV_STRICT, &verdict, NULL), VKA_OK);
        assert_int_equal(verdict.valid_strict[verdict.valid_strict_count - 1], heads);
        most = verdict.valid_strict_count > most ? verdict.valid_strict_count : most;
    }
    assert_int_equal(most, 48); /* 3360 */
    assert_true(most < VKA_MAX_VALID_TP);
}

static void groups_must_be_whole(void **state)
{
    vka_layer_desc desc = layer_of(12, 8);

    (void)state;
    for (uint32_t tp = 1; tp <= 24; tp++) {
        vka_verdict verdict;

        assert_int_equal(vka_layout_judge(&desc, (vka_grid){.tp = tp}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
        assert_int_equal(verdict.rule, VKA_RULE_GROUP);
        assert_int_equal(verdict.valid_strict_count, 0);
        assert_int_equal(verdict.valid_replicate_count, 0);
    }
}

static void grids_are_counted(void **state)
{
    vka_layer_desc desc = layer_of(32, 8);
    vka_verdict verdict;

    (void)state;
    assert_int_equal(vka_grid_ranks((vka_grid){0}), 1);
    assert_int_equal(vka_grid_ranks((vka_grid){4, 0, 3}), 12);
    assert_int_equal(vka_grid_ranks((vka_grid){16, 16, 16}), 4096);
    assert_int_equal(vka_grid_ranks((vka_grid){16, 16, 17}), 0);
    assert_int_equal(vka_grid_ranks((vka_grid){4097, 1, 1}), 0);
    assert_int_equal(vka_grid_ranks((vka_grid){UINT32_MAX, UINT32_MAX, UINT32_MAX}), 0);
    assert_int_equal(vka_grid_ranks((vka_grid){65536, 65536, 1}), 0);
    assert_int_equal(vka_grid_ranks((vka_grid){1, 1, UINT32_MAX}), 0);
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){8, 512, 2}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
    assert_int_equal(verdict.rule, VKA_RULE_GRID);
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){8, 512, 1}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
    assert_int_equal(verdict.rule, VKA_RULE_NONE);
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){UINT32_MAX, 1, 1}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
    assert_int_equal(verdict.rule, VKA_RULE_QUERY_HEADS);
}

/* The head size comes from the configuration or from all heads together; tp plays no part in it. */
static void head_size_may_be_absent(void **state)
{
    vka_layer_desc desc = layer_of(16, 8);
    vka_verdict verdict = {.rule = VKA_RULE_GRID};
    vka_error error = {0};

    (void)state;
    desc.head_dim = 0;
    desc.hidden_size = 1024;
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){.tp = 8}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
    assert_int_equal(verdict.rule, VKA_RULE_NONE);
    assert_int_equal(desc.head_dim, 0); /* the caller's description is only read */
    desc.hidden_size = 1000;            /* divides by the 2 heads of a rank, but not by all 16 */
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){.tp = 8}, VKA_KV_REPLICATE, &verdict, &error),
                     VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "head_dim"));
    assert_non_null(strstr(error.message, "1000 / 16"));
}

static void bad_arguments_are_named(void **state)
{
    vka_layer_desc desc = layer_of(32, 8);
    vka_verdict verdict = {.rule = VKA_RULE_GRID};
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_layout_judge(NULL, (vka_grid){0}, VKA_KV_STRICT, &verdict, &error), VKA_ERR_ARGUMENT);
    assert_string_equal(error.message, "desc is NULL");
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, VKA_KV_STRICT, NULL, &error), VKA_ERR_ARGUMENT);
    assert_string_equal(error.message, "verdict is NULL");
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, (vka_kv_policy)7, &verdict, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "policy is 7"));
    desc.heads = VKA_MAX_HEADS + 1;
    assert_int_equal(vka_layout_judge(&desc, (vka_grid){0}, VKA_KV_STRICT, &verdict, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "heads is 4097"));
    assert_int_equal(verdict.rule, VKA_RULE_GRID); /* outputs are set only after success */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicate_follows_the_table), cmocka_unit_test(strict_refuses_replicas),
        cmocka_unit_test(lists_are_complete),          cmocka_unit_test(the_longest_list_fits),
        cmocka_unit_test(groups_must_be_whole),        cmocka_unit_test(grids_are_counted),
        cmocka_unit_test(head_size_may_be_absent),     cmocka_unit_test(bad_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
