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
    vka_layer_desc uneven = small();

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
    uneven.hidden_size = 900;
    uneven.head_dim = 0;
    refused(uneven, "900 / 14");
    assert_int_equal(vka_layer_desc_resolve(NULL, NULL), VKA_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_defaults),
        cmocka_unit_test(keeps_what_is_given),
        cmocka_unit_test(without_rope_an_odd_head_is_fine),
        cmocka_unit_test(refusals_name_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
