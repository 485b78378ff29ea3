/* Resolving a description: defaults, and a refusal that names the field for everything outside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "model/same_desc.h"

static vka_layer_desc small(void)
{
    return (vka_layer_desc){
        .struct_size = sizeof(vka_layer_desc), .hidden_size = 896, .heads = 14, .kv_heads = 2, .head_dim = 64};
}

static void fills_defaults(void **state)
{
    vka_layer_desc desc = small();

    (void)state;
    desc.head_dim = 0;
    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
    assert_int_equal(desc.head_dim, 64);
    assert_int_equal(desc.v_head_dim, 64);
    assert_int_equal(desc.rotary_dim, 64);
    assert_true(desc.scale == 0.125);
    assert_true(desc.rope_theta == 10000.0);
    assert_true(desc.norm_eps == 1e-6);
    assert_int_equal(desc.window, 0);
}

static void keeps_what_is_given(void **state)
{
    vka_layer_desc desc = small(), again;

    (void)state;
    desc.head_dim = 576;
    desc.v_head_dim = 1;
    desc.rotary_dim = 64;
    desc.scale = 0.5;
    desc.rope_theta = 1e6;
    desc.qk_norm = VKA_QK_NORM_PER_HEAD;
    desc.norm_eps = 1e-5;
    desc.window = 7;
    desc.kv_hidden_size = desc.hidden_size;
    desc.kv_policy = VKA_KV_STRICT;
    again = desc;
    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
    assert_true(same_desc(&desc, &again));
}

static void without_rope_an_odd_head_is_fine(void **state)
{
    vka_layer_desc desc = small();

    (void)state;
    desc.head_dim = 7;
    desc.rope_type = VKA_ROPE_NONE;
    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
    assert_int_equal(desc.rotary_dim, 0);
    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
}

static void refused(vka_layer_desc desc, const char *field)
{
    vka_layer_desc before = desc;
    vka_error error = {0};

    assert_int_equal(vka_layer_desc_resolve(&desc, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(error.status, VKA_ERR_ARGUMENT);
    if (!strstr(error.message, field))
        fail_msg("'%s' does not name %s", error.message, field);
    assert_true(same_desc(&desc, &before));
}

#define REFUSED(field, value)                                                                                          \
    do {                                                                                                               \
        vka_layer_desc bad_ = small();                                                                                 \
        bad_.field = (value);                                                                                          \
        refused(bad_, #field);                                                                                         \
    } while (0)

static void refusals_name_the_field(void **state)
{
    vka_layer_desc uneven = small(), sections = small();

    (void)state;
    REFUSED(struct_size, 8);
    REFUSED(hidden_size, 0);
    REFUSED(hidden_size, 0x80000000u);
    REFUSED(heads, 0);
    REFUSED(heads, VKA_MAX_HEADS + 1);
    REFUSED(kv_heads, 0);
    REFUSED(kv_heads, 15);
    REFUSED(head_dim, 577);
    REFUSED(v_head_dim, 577);
    REFUSED(rotary_dim, 63);
    REFUSED(rotary_dim, 66);
    REFUSED(rope_theta, -1.0);
    REFUSED(rope_theta, NAN);
    REFUSED(scale, INFINITY);
    REFUSED(scale, -0.5);
    REFUSED(norm_eps, -1e-6);
    REFUSED(qk_norm, (vka_qk_norm)9);
    REFUSED(rope_type, (vka_rope_type)9);
    REFUSED(rope_pairing, (vka_rope_pairing)9);
    REFUSED(rotary_offset, 64);
    sections.mrope_section[0] = 5;
    refused(sections, "mrope_section");
    REFUSED(kv_policy, (vka_kv_policy)9);
    REFUSED(kv_hidden_size, 8);
    REFUSED(attend, (vka_attend)9);
    REFUSED(window_right, 3);
    REFUSED(softcap, -1.0);
    REFUSED(clip_qkv, NAN);
    REFUSED(gate, (vka_gate)9);
    REFUSED(kv_lora_rank, 512);
    REFUSED(q_lora_rank, 512);
    sections = small();
    sections.rope_scaling.factor = 2.0;
    refused(sections, "rope_scaling has factor");
    uneven.hidden_size = 900;
    uneven.head_dim = 0;
    refused(uneven, "900 / 14");
    assert_int_equal(vka_layer_desc_resolve(NULL, NULL), VKA_ERR_ARGUMENT);
}

static vka_layer_desc scaled(vka_rope_type type)
{
    vka_layer_desc desc = small();

    desc.rope_type = type;
    desc.rope_scaling.factor = 8;
    return desc;
}

/* Each type takes what its formula uses, and nothing else. */
static void rope_parameters_belong_to_their_type(void **state)
{
    vka_layer_desc linear = scaled(VKA_ROPE_LINEAR), yarn = scaled(VKA_ROPE_YARN), bands = scaled(VKA_ROPE_LLAMA3);
    vka_layer_desc lists = scaled(VKA_ROPE_LONGROPE), dynamic = scaled(VKA_ROPE_DYNAMIC);

    (void)state;
    assert_int_equal(vka_layer_desc_resolve(&linear, NULL), VKA_OK);
    linear.rope_scaling.beta_fast = 32;
    refused(linear, "beta_fast");
    refused(yarn, "original_context");
    yarn.rope_scaling.original_context = 4096;
    assert_int_equal(vka_layer_desc_resolve(&yarn, NULL), VKA_OK);
    refused(dynamic, "context");
    bands.rope_scaling.original_context = 8192;
    bands.rope_scaling.low_freq_factor = 4;
    bands.rope_scaling.high_freq_factor = 4;
    refused(bands, "low_freq_factor");
    bands.rope_scaling.low_freq_factor = 1;
    assert_int_equal(vka_layer_desc_resolve(&bands, NULL), VKA_OK);
    lists.rope_scaling.original_context = 4096;
    refused(lists, "short_factor");
    for (int i = 0; i < 31; i++)
        lists.rope_scaling.short_factor[i] = lists.rope_scaling.long_factor[i] = 1.5f;
    refused(lists, "short_factor[31]");
    lists.rope_scaling.short_factor[31] = lists.rope_scaling.long_factor[31] = 1.5f;
    assert_int_equal(vka_layer_desc_resolve(&lists, NULL), VKA_OK);
}

/* DeepSeek-V2-Lite. */
static void latent_attention_has_rules_of_its_own(void **state)
{
    vka_layer_desc desc = {.struct_size = sizeof(desc),
                           .hidden_size = 2048,
                           .heads = 16,
                           .kv_heads = 16,
                           .head_dim = 192,
                           .v_head_dim = 128,
                           .rotary_dim = 64,
                           .rotary_offset = 128,
                           .kv_lora_rank = 512};
    vka_layer_desc bad = desc;

    (void)state;
    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
    bad.kv_lora_rank = 513;
    refused(bad, "kv_lora_rank");
    bad = desc;
    bad.rotary_offset = 64;
    refused(bad, "rotary_offset");
    bad = desc;
    bad.kv_heads = 8;
    refused(bad, "kv_heads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_defaults),
        cmocka_unit_test(keeps_what_is_given),
        cmocka_unit_test(rope_parameters_belong_to_their_type),
        cmocka_unit_test(latent_attention_has_rules_of_its_own),
        cmocka_unit_test(without_rope_an_odd_head_is_fine),
        cmocka_unit_test(refusals_name_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
