/* Presets: every row is resolved and lays out, a few are spot-checked, unknown names get suggestions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/same_desc.h"
#include "vkattn/layout.h"
#include "vkattn/model.h"

static const vka_preset *find(const char *name)
{
    const vka_preset *preset = NULL;

    if (vka_preset_find(name, &preset, NULL) != VKA_OK)
        fail_msg("no preset %s", name);
    return preset;
}

/* By fields: padding may differ. */
static void rows_are_resolved(void **state)
{
    (void)state;
    assert_int_equal(vka_preset_count(), 52);
    assert_null(vka_preset_at(vka_preset_count()));
    for (size_t i = 0; i < vka_preset_count(); i++) {
        const vka_preset *preset = vka_preset_at(i);
        vka_layer_desc resolved = preset->desc;

        assert_int_equal(vka_layer_desc_resolve(&resolved, NULL), VKA_OK);
        assert_true(same_desc(&resolved, &preset->desc));
        assert_true(!preset->note || preset->note[0] != '\0');
        assert_ptr_equal(find(preset->name), preset); /* so names are unique */
    }
}

/* The literals for the softmax scale are what resolving computes, except where a model has its own scale. */
static void scales_are_the_default(void **state)
{
    size_t own = 0;

    (void)state;
    for (size_t i = 0; i < vka_preset_count(); i++) {
        vka_layer_desc desc = vka_preset_at(i)->desc;

        desc.scale = 0;
        assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
        own += desc.scale != vka_preset_at(i)->desc.scale;
    }
    assert_int_equal(own, 3);
    assert_true(find("gemma2-27b")->desc.scale == 1.0 / 12); /* query_pre_attn_scalar 144 */
    for (size_t i = 0; i < 2; i++) {                         /* yarn's mscale, as transformers computes it */
        const vka_layer_desc *desc = &find(i ? "deepseek-v3" : "deepseek-v2-lite")->desc;
        double get = 0.1 * desc->rope_scaling.mscale_all_dim * log(desc->rope_scaling.factor) + 1;

        assert_true(fabs(desc->scale - get * get / sqrt(192)) < 1e-15);
    }
}

static void every_model_has_a_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < vka_preset_count(); i++) {
        const vka_layer_desc *desc = &vka_preset_at(i)->desc;
        vka_verdict verdict;

        assert_int_equal(vka_layout_judge(desc, (vka_grid){.tp = desc->heads}, VKA_KV_REPLICATE, &verdict, NULL),
                         VKA_OK);
        assert_int_equal(verdict.rule, VKA_RULE_NONE);
        assert_int_equal(verdict.replicas, desc->heads / desc->kv_heads);
    }
}

static void known_rows(void **state)
{
    static const struct {
        const char *name;
        uint32_t heads, kv_heads, head_dim, v_head_dim, hidden, rotary, window;
        double theta;
        vka_rope_type rope;
        vka_qk_norm norm;
        const char *note; /* part of it, or NULL for none */
    } rows[] = {
        {"llama2-7b", 32, 32, 128, 128, 4096, 128, 0, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"llama3.1-8b", 32, 8, 128, 128, 4096, 128, 0, 5e5, VKA_ROPE_LLAMA3, VKA_QK_NORM_NONE, NULL},
        {"llama3.2-3b", 24, 8, 128, 128, 3072, 128, 0, 5e5, VKA_ROPE_LLAMA3, VKA_QK_NORM_NONE, NULL},
        {"mistral-7b-v0.1", 32, 8, 128, 128, 4096, 128, 4096, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"gpt2", 12, 12, 64, 64, 768, 0, 0, 1e4, VKA_ROPE_NONE, VKA_QK_NORM_NONE, NULL},
        {"gpt-j-6b", 16, 16, 256, 256, 4096, 64, 0, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"phi-2", 32, 32, 80, 80, 2560, 32, 0, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"phi-4-mini", 24, 8, 128, 128, 3072, 96, 262144, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, "longrope"},
        {"qwen2-0.5b", 14, 2, 64, 64, 896, 64, 0, 1e6, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"qwen3-0.6b", 16, 8, 128, 128, 1024, 128, 0, 1e6, VKA_ROPE_DEFAULT, VKA_QK_NORM_PER_HEAD, NULL},
        {"gpt-oss-120b", 64, 8, 64, 64, 2880, 64, 128, 1.5e5, VKA_ROPE_YARN, VKA_QK_NORM_NONE, "every other layer"},
        {"gemma2-2b", 8, 4, 256, 256, 2304, 256, 4096, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, "every other layer"},
        {"stablelm-3b", 32, 32, 80, 80, 2560, 20, 0, 1e4, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"smollm2-360m", 15, 5, 64, 64, 960, 64, 0, 1e5, VKA_ROPE_DEFAULT, VKA_QK_NORM_NONE, NULL},
        {"deepseek-v3", 128, 128, 192, 128, 7168, 64, 0, 1e4, VKA_ROPE_YARN, VKA_QK_NORM_NONE, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const vka_preset *preset = find(rows[i].name);

        assert_int_equal(preset->desc.heads, rows[i].heads);
        assert_int_equal(preset->desc.kv_heads, rows[i].kv_heads);
        assert_int_equal(preset->desc.head_dim, rows[i].head_dim);
        assert_int_equal(preset->desc.v_head_dim, rows[i].v_head_dim);
        assert_int_equal(preset->desc.hidden_size, rows[i].hidden);
        assert_int_equal(preset->desc.rotary_dim, rows[i].rotary);
        assert_int_equal(preset->desc.window, rows[i].window);
        assert_true(preset->desc.rope_theta == rows[i].theta);
        assert_int_equal(preset->desc.rope_type, rows[i].rope);
        assert_int_equal(preset->desc.qk_norm, rows[i].norm);
        if (rows[i].note)
            assert_non_null(strstr(preset->note, rows[i].note));
        else
            assert_null(preset->note);
    }
}

static void unknown_names_get_suggestions(void **state)
{
    static const struct {
        const char *given, *meant;
    } rows[] = {
        {"llama3-8b", "llama3.1-8b"},
        {"Llama3.1-8B", "llama3.1-8b"},
        {"qwen-7b", "qwen2-7b"},
        {"mistral", "mistral-7b"},
        {"gpt-2", "gpt2"},
        {"deepseek-v4", "deepseek-v3"},
    };
    const vka_preset *preset = (const vka_preset *)&rows;
    vka_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(vka_preset_find(rows[i].given, &preset, &error), VKA_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, rows[i].given));
        assert_non_null(strstr(error.message, "near it: "));
        assert_non_null(strstr(error.message, rows[i].meant));
    }
    /* nothing near: all of them, down to the last */
    assert_int_equal(vka_preset_find("nothing like it", &preset, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "the presets are: llama2-7b, "));
    assert_non_null(strstr(error.message, ", deepseek-v3"));
    assert_int_equal(vka_preset_find(NULL, &preset, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_preset_find("gpt2", NULL, &error), VKA_ERR_ARGUMENT);
    assert_ptr_equal(preset, &rows); /* outputs are set only after success */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_resolved),
        cmocka_unit_test(scales_are_the_default),
        cmocka_unit_test(known_rows),
        cmocka_unit_test(every_model_has_a_layout),
        cmocka_unit_test(unknown_names_get_suggestions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
