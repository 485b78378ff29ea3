/* Generated weights and the check of weights against a description. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "model/weights.h"

static vka_layer_desc qwen_like(void)
{
    vka_layer_desc desc = {.struct_size = sizeof(desc),
                           .hidden_size = 100,
                           .heads = 6,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .v_head_dim = 8,
                           .qk_norm = VKA_QK_NORM_PER_HEAD};

    assert_int_equal(vka_layer_desc_resolve(&desc, NULL), VKA_OK);
    return desc;
}

static vka_generated_weights *make(vka_dtype dtype, uint64_t seed)
{
    vka_layer_desc desc = qwen_like();
    vka_generate_params params = {
        .struct_size = sizeof(params), .dtype = dtype, .seed = seed, .qkv_bias = 1, .o_bias = 1};
    vka_generated_weights *made = NULL;

    assert_int_equal(vka_weights_generate(&made, &desc, &params, NULL), VKA_OK);
    return made;
}

static void shape_is(const vka_tensor *tensor, uint64_t rows, uint64_t cols, vka_dtype dtype)
{
    assert_non_null(tensor->data);
    assert_int_equal(tensor->rows, rows);
    assert_int_equal(tensor->cols, cols);
    assert_int_equal(tensor->dtype, dtype);
}

static void shapes_follow_the_description(void **state)
{
    vka_generated_weights *made = make(VKA_BF16, 1);
    const vka_layer_weights *view = vka_weights_view(made);
    vka_layer_desc desc = qwen_like();

    (void)state;
    shape_is(&view->q, 96, 100, VKA_BF16);
    shape_is(&view->k, 32, 100, VKA_BF16);
    shape_is(&view->v, 16, 100, VKA_BF16);
    shape_is(&view->o, 100, 48, VKA_BF16);
    shape_is(&view->q_bias, 1, 96, VKA_F32);
    shape_is(&view->k_bias, 1, 32, VKA_F32);
    shape_is(&view->v_bias, 1, 16, VKA_F32);
    shape_is(&view->o_bias, 1, 100, VKA_F32);
    shape_is(&view->q_norm, 1, 16, VKA_F32);
    shape_is(&view->k_norm, 1, 16, VKA_F32);
    assert_int_equal(vka_layer_weights_check(view, &desc, NULL), VKA_OK);
    vka_weights_free(&made);
    assert_null(made);
    vka_weights_free(&made);
}

static void defaults(void **state)
{
    vka_layer_desc desc = qwen_like();
    vka_generated_weights *made = NULL;

    (void)state;
    desc.qk_norm = VKA_QK_NORM_NONE;
    assert_int_equal(vka_weights_generate(&made, &desc, NULL, NULL), VKA_OK);
    assert_int_equal(vka_weights_view(made)->q.dtype, VKA_F16);
    assert_null(vka_weights_view(made)->q_bias.data);
    assert_null(vka_weights_view(made)->o_bias.data);
    assert_null(vka_weights_view(made)->q_norm.data);
    vka_weights_free(&made);
}

static void values_repeat_and_keep_their_size(void **state)
{
    vka_generated_weights *a = make(VKA_F32, 3), *b = make(VKA_F32, 3), *other = make(VKA_F32, 4);
    vka_generated_weights *half = make(VKA_F16, 3);
    const float *q = vka_weights_view(a)->q.data;
    const uint16_t *q16 = vka_weights_view(half)->q.data;
    double squares = 0;

    (void)state;
    assert_memory_equal(q, vka_weights_view(b)->q.data, 96 * 100 * sizeof(float));
    assert_memory_not_equal(q, vka_weights_view(other)->q.data, 96 * 100 * sizeof(float));
    assert_memory_not_equal(q, vka_weights_view(a)->k.data, 32 * 100 * sizeof(float));
    for (size_t i = 0; i < 96 * 100; i++) {
        squares += (double)q[i] * q[i];
        assert_int_equal(q16[i], vka_f32_to_f16(q[i]));
    }
    assert_true(fabs(squares / 96 - 1.0) < 0.05); /* a row has the squared length 1 */
    for (size_t i = 0; i < 16; i++) {
        float norm = ((const float *)vka_weights_view(a)->q_norm.data)[i];

        assert_true(norm >= 0.5f && norm < 1.5f);
    }
    vka_weights_free(&a);
    vka_weights_free(&b);
    vka_weights_free(&other);
    vka_weights_free(&half);
}

static void bad_arguments(void **state)
{
    vka_layer_desc desc = qwen_like(), bad = desc;
    vka_generate_params params = {.struct_size = sizeof(params), .dtype = (vka_dtype)9};
    vka_generated_weights *made = NULL;

    (void)state;
    bad.heads = 0;
    assert_int_equal(vka_weights_generate(&made, &bad, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_weights_generate(&made, &desc, &params, NULL), VKA_ERR_ARGUMENT);
    params = (vka_generate_params){.struct_size = 3};
    assert_int_equal(vka_weights_generate(&made, &desc, &params, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_weights_generate(NULL, &desc, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_weights_generate(&made, NULL, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_null(made);
    assert_null(vka_weights_view(NULL));
}

/* A weight tensor out of shape is refused with its name, its shape and the expected one. */
static void check_fails(const vka_layer_weights *weights, const char *one, const char *two)
{
    vka_layer_desc desc = qwen_like();
    vka_error error = {0};

    assert_int_equal(vka_layer_weights_check(weights, &desc, &error), VKA_ERR_FORMAT);
    if (!strstr(error.message, one) || !strstr(error.message, two))
        fail_msg("'%s' lacks '%s' or '%s'", error.message, one, two);
}

static void check_names_the_tensor(void **state)
{
    vka_generated_weights *made = make(VKA_F32, 1);
    vka_layer_weights bad = *vka_weights_view(made);
    vka_layer_desc desc = qwen_like();

    (void)state;
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++) {
        vka_weight_shape shape = vka_weight_shape_of(&desc, i);
        vka_layer_weights copy = bad;

        if (shape.need == VKA_NEED_FORBIDDEN) {
            *vka_weight_at(&copy, i) = copy.q;
            check_fails(&copy, shape.name, "does not use it");
            continue;
        }
        vka_weight_at(&copy, i)->cols++;
        check_fails(&copy, shape.name, "expected [");
        copy = bad;
        vka_weight_at(&copy, i)->rows++;
        check_fails(&copy, shape.name, "expected [");
        copy = bad;
        vka_weight_at(&copy, i)->dtype = VKA_DTYPE_DEFAULT;
        check_fails(&copy, shape.name, "element type");
        copy = bad;
        vka_weight_at(&copy, i)->row_stride = shape.cols - 1;
        check_fails(&copy, shape.name, "row_stride");
        copy = bad;
        vka_weight_at(&copy, i)->data = NULL;
        if (shape.need == VKA_NEED_REQUIRED)
            check_fails(&copy, shape.name, "missing");
        else
            assert_int_equal(vka_layer_weights_check(&copy, &desc, NULL), VKA_OK);
    }
    bad.k.rows = 48;
    check_fails(&bad, "'k' has shape [48, 100]", "expected [32, 100] = [kv_heads * head_dim, kv_hidden_size]");
    bad.struct_size = 0;
    assert_int_equal(vka_layer_weights_check(&bad, &desc, NULL), VKA_ERR_ARGUMENT);
    desc.qk_norm = VKA_QK_NORM_NONE;
    assert_int_equal(vka_layer_weights_check(vka_weights_view(made), &desc, NULL), VKA_ERR_FORMAT);
    vka_weights_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_the_description),
        cmocka_unit_test(defaults),
        cmocka_unit_test(values_repeat_and_keep_their_size),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(check_names_the_tensor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
