/* The float64 reference, judged without a device: a plain F32 implementation of each stage must pass, and every planted
 * bug, as well as a result that is wrong in one element, must fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/data.h"
#include "verify/internal.h"

static void rounding_agrees_with_the_engine(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t bits = i * 21467u + i / 7;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        assert_true(verify_round((double)value, VKA_F16) == (double)vka_f16_to_f32(vka_f32_to_f16(value)));
        assert_true(verify_round((double)value, VKA_BF16) == (double)vka_bf16_to_f32(vka_f32_to_bf16(value)));
        assert_true(verify_round((double)value, VKA_F32) == (double)value);
    }
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        double value;
        verify_load(&value, &half, VKA_F16, 1);
        assert_true(isnan(value) ? isnan(vka_f16_to_f32(half)) : value == (double)vka_f16_to_f32(half));
        verify_load(&value, &half, VKA_BF16, 1);
        assert_true(isnan(value) ? isnan(vka_bf16_to_f32(half)) : value == (double)vka_bf16_to_f32(half));
    }
    assert_true(verify_rounding_error(1.5, VKA_F16) == 0x1p-11);
    assert_true(verify_rounding_error(1e-9, VKA_F16) == 0x1p-25);
    assert_true(verify_rounding_error(0, VKA_BF16) == 0x1p-134);
}

static void elements_are_judged(void **state)
{
    (void)state;
    verify_result result = {0};
    assert_false(verify_passed(&result)); /* nothing was checked */
    verify_element(&result, 0, 1, 1, 0);
    verify_element(&result, 1, -INFINITY, -INFINITY, 0);
    verify_element(&result, 2, 1.5, 1, 1);
    assert_true(verify_passed(&result));
    assert_true(result.max_ratio == 0.5 && result.index == 2 && result.got == 1.5 && result.elements == 3);
    assert_int_equal(result.nonfinite, 0);

    const double bad[][3] = {{NAN, 1, 1}, {INFINITY, 1, 1}, {1, NAN, 1}, {0x1p-149, 0, 0}, {NAN, NAN, 1}, {1, 0, NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        verify_result one = {0};
        verify_element(&one, 7, bad[i][0], bad[i][1], bad[i][2]);
        assert_true(isinf(one.max_ratio) && one.index == 7);
        verify_merge(&one, &result);
        assert_true(isinf(one.max_ratio) && one.elements == 4);
        verify_result both = result;
        verify_merge(&both, &one);
        assert_false(verify_passed(&both));
    }
    const float got[2] = {1.0f, 2.5f};
    const double want[2] = {1, 2};
    assert_true(verify_nmse(2, got, want) == 0.05);
}

static void projection_is_checked(void **state)
{
    (void)state;
    enum { ROWS = 67, COLS = 13, DEPTH = 301, STRIDE = 304 };
    float *x = noise_array(1, ROWS * STRIDE);
    float *w = noise_array(2, COLS * STRIDE);
    float *y = calloc(ROWS * COLS, sizeof *y);
    uint16_t *packed = calloc(COLS * STRIDE, sizeof *packed);
    assert_true(y && packed);
    static const vka_dtype types[][2] = {
        {VKA_F32, VKA_F32}, {VKA_F32, VKA_F16}, {VKA_F32, VKA_BF16}, {VKA_F16, VKA_F32}, {VKA_BF16, VKA_F16}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        vka_tensor view = {.data = w, .dtype = types[t][0], .rows = COLS, .cols = DEPTH, .row_stride = STRIDE};
        float *stored = calloc(COLS * STRIDE, sizeof *stored);
        assert_non_null(stored);
        if (types[t][0] != VKA_F32) {
            vka_convert(packed, types[t][0], w, VKA_F32, COLS * STRIDE);
            view.data = packed;
        }
        vka_convert(stored, VKA_F32, view.data, types[t][0], COLS * STRIDE);
        for (size_t i = 0; i < COLS * STRIDE; i++)
            stored[i] = (float)verify_round((double)stored[i], types[t][1]);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            y[i] = 0;
            for (size_t k = 0; k < DEPTH; k++)
                y[i] += x[i / COLS * STRIDE + k] * stored[i % COLS * STRIDE + k];
        }
        verify_projection_params params = {.rows = ROWS,
                                           .cols = COLS,
                                           .depth = DEPTH,
                                           .x = x,
                                           .x_stride = STRIDE,
                                           .weights = view,
                                           .stored = types[t][1],
                                           .y = y,
                                           .y_stride = COLS};
        verify_result result = {0};
        assert_int_equal(verify_projection(&params, &result, NULL), VKA_OK);
        assert_true(verify_passed(&result));
        assert_int_equal(result.elements, ROWS * COLS);

        y[66 * COLS + 12] += 0.01f;
        assert_int_equal(verify_projection(&params, &result, NULL), VKA_OK);
        assert_false(verify_passed(&result));
        assert_int_equal(result.index, 66 * COLS + 12);
        y[3] = NAN;
        assert_int_equal(verify_projection(&params, &result, NULL), VKA_OK);
        assert_true(result.nonfinite == 1 && result.index == 3);
        free(stored);
    }
    free(x);
    free(w);
    free(y);
    free(packed);
}

static void epilogue_is_checked(void **state)
{
    (void)state;
    enum { ROWS = 9, HEADS = 3, DIM = 20, ROTARY = 12, WIDTH = HEADS * DIM };
    float *raw = noise_array(3, ROWS * WIDTH);
    float *bias = noise_array(4, WIDTH);
    float *norm = noise_array(5, DIM);
    float got[ROWS * WIDTH];
    int32_t position[ROWS];
    const vka_layer_desc desc = {.norm_eps = 1e-5, .rotary_dim = ROTARY, .rope_theta = 500000};
    for (uint32_t r = 0; r < ROWS; r++) {
        position[r] = (int32_t)(1000 + 7 * r);
        for (int h = 0; h < HEADS; h++) {
            float v[DIM];
            float squares = 0;
            for (int i = 0; i < DIM; i++) {
                v[i] = raw[r * WIDTH + (uint32_t)(h * DIM + i)] + bias[h * DIM + i];
                squares += v[i] * v[i];
            }
            float factor = 1.0f / sqrtf(squares / DIM + 1e-5f);
            for (int i = 0; i < DIM; i++)
                v[i] = v[i] * factor * norm[i];
            for (int i = 0; i < DIM; i++) {
                int pair = i % (ROTARY / 2);
                double angle = position[r] * pow(500000, -2.0 * pair / ROTARY);
                float c = (float)cos(angle);
                float s = (float)sin(angle);
                float turned = i < ROTARY / 2 ? v[i] * c - v[pair + ROTARY / 2] * s : v[i] * c + v[pair] * s;
                got[r * WIDTH + (uint32_t)(h * DIM + i)] = i < ROTARY ? turned : v[i];
            }
        }
    }
    verify_epilogue_params params = {.rows = ROWS,
                                     .heads = HEADS,
                                     .head_dim = DIM,
                                     .raw = raw,
                                     .raw_stride = WIDTH,
                                     .bias = bias,
                                     .norm = norm,
                                     .desc = &desc,
                                     .turned = true,
                                     .position = position,
                                     .got = got,
                                     .got_stride = WIDTH,
                                     .got_dtype = VKA_F32};
    verify_result result = {0};
    assert_int_equal(verify_epilogue(&params, &result, NULL), VKA_OK);
    assert_true(verify_passed(&result));
    assert_int_equal(result.elements, ROWS * WIDTH);

    verify_result bug = {0};
    params.mutant = VERIFY_WRONG_ROPE_PAIRING;
    assert_int_equal(verify_epilogue(&params, &bug, NULL), VKA_OK);
    assert_true(bug.max_ratio > 1000);
    params.mutant = VERIFY_CORRECT;

    for (int i = 0; i < ROWS * WIDTH; i++)
        got[i] = vka_f16_to_f32(vka_f32_to_f16(got[i]));
    verify_result f16_result = {0};
    assert_int_equal(verify_epilogue(&params, &f16_result, NULL), VKA_OK);
    assert_false(verify_passed(&f16_result)); /* F16 where F32 was promised */
    params.got_dtype = VKA_F16;
    f16_result = (verify_result){0};
    assert_int_equal(verify_epilogue(&params, &f16_result, NULL), VKA_OK);
    assert_true(verify_passed(&f16_result));
    free(raw);
    free(bias);
    free(norm);
}

enum { A_ROWS = 7, A_KEYS = 40, A_HEADS = 2, A_QK = 24, A_V = 10 };

/* Plain attention in F32 for the one head of `p`. */
static void attend(const verify_attention_params *p, float *out, float *lse)
{
    for (size_t r = 0; r < p->rows; r++) {
        float score[A_KEYS];
        float highest = -3e38f;
        float total = 0;
        float sum[A_V] = {0};
        for (size_t j = 0; j < p->keys; j++) {
            int64_t position = p->position + (int64_t)r;
            bool visible = !p->causal || (int64_t)j <= position;
            visible = visible && (p->window == 0 || (int64_t)j > position - (int64_t)p->window);
            visible = visible && (p->window_right == 0 || (int64_t)j < position + (int64_t)p->window_right);
            score[j] = 0;
            for (size_t i = 0; i < p->qk_dim; i++)
                score[j] += p->q[r * p->q_stride + i] * p->k[j * p->k_key_stride + p->kv_head * p->k_head_stride + i];
            score[j] = visible ? score[j] * (float)p->scale : -INFINITY;
            highest = fmaxf(highest, score[j]);
        }
        for (size_t j = 0; j < p->keys; j++) {
            float weight = expf(score[j] - highest);
            total += weight;
            for (size_t i = 0; i < p->v_dim; i++)
                sum[i] += weight * p->v[j * p->v_key_stride + p->kv_head * p->v_head_stride + i];
        }
        for (size_t i = 0; i < p->v_dim; i++)
            out[r * A_V + i] = total > 0 ? sum[i] / total : 0;
        lse[r] = total > 0 ? highest + logf(total) : -INFINITY;
    }
}

static void attention_is_checked(void **state)
{
    (void)state;
    float *q = noise_array(6, A_ROWS * A_QK);
    float *k = noise_array(7, A_KEYS * A_HEADS * A_QK);
    float *v = noise_array(8, A_KEYS * A_HEADS * A_V);
    float out[A_ROWS * A_V];
    float lse[A_ROWS];
    verify_attention_params params = {.rows = A_ROWS,
                                      .keys = A_KEYS,
                                      .qk_dim = A_QK,
                                      .v_dim = A_V,
                                      .q = q,
                                      .q_stride = A_QK,
                                      .k = k,
                                      .v = v,
                                      .k_key_stride = A_HEADS * A_QK,
                                      .k_head_stride = A_QK,
                                      .v_key_stride = A_HEADS * A_V,
                                      .v_head_stride = A_V,
                                      .kv_head = 1,
                                      .kv_heads = A_HEADS,
                                      .scale = 0.2,
                                      .got = out,
                                      .got_stride = A_V,
                                      .lse = lse,
                                      .lse_stride = 1};
    static const struct {
        int64_t position;
        bool causal;
        uint32_t window, window_right;
    } masks[] = {{33, true, 0, 0},  {33, true, 5, 0},  {0, true, 0, 0},  {-3, true, 0, 0}, {0, false, 0, 0},
                 {100, true, 0, 0}, {20, false, 0, 4}, {9, false, 6, 9}, {-3, false, 0, 2}};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        params.position = masks[i].position;
        params.causal = masks[i].causal;
        params.window = masks[i].window;
        params.window_right = masks[i].window_right;
        attend(&params, out, lse);
        verify_result result = {0};
        verify_result lse_result = {0};
        assert_int_equal(verify_attention(&params, &result, &lse_result, NULL), VKA_OK);
        assert_true(verify_passed(&result) && verify_passed(&lse_result));
        assert_int_equal(result.elements, A_ROWS * A_V);
        assert_int_equal(lse_result.elements, A_ROWS);

        static const verify_mutant mutants[] = {VERIFY_WRONG_SCALE, VERIFY_DROPPED_KEY, VERIFY_MASK_OFF_BY_ONE,
                                                VERIFY_WRONG_KV_HEAD};
        for (size_t m = 0; m < sizeof mutants / sizeof mutants[0]; m++) {
            verify_result bug = {0};
            params.mutant = mutants[m];
            assert_int_equal(verify_attention(&params, &bug, NULL, NULL), VKA_OK);
            assert_false(verify_passed(&bug));
        }
        params.mutant = VERIFY_CORRECT;
    }
    free(q);
    free(k);
    free(v);
}

static void unseeing_rows_must_be_exact(void **state)
{
    (void)state;
    const float one = 1;
    float out = 0;
    float lse = -INFINITY;
    verify_attention_params params = {.rows = 1,
                                      .keys = 1,
                                      .qk_dim = 1,
                                      .v_dim = 1,
                                      .q = &one,
                                      .k = &one,
                                      .v = &one,
                                      .kv_heads = 1,
                                      .scale = 1,
                                      .position = -1,
                                      .causal = true,
                                      .got = &out,
                                      .lse = &lse};
    verify_result result = {0};
    assert_int_equal(verify_attention(&params, &result, NULL, NULL), VKA_OK);
    assert_true(verify_passed(&result) && result.elements == 2);
    out = 0x1p-120f;
    result = (verify_result){0};
    assert_int_equal(verify_attention(&params, &result, NULL, NULL), VKA_OK);
    assert_false(verify_passed(&result));
    out = 0;
    lse = -3e38f;
    result = (verify_result){0};
    assert_int_equal(verify_attention(&params, &result, NULL, NULL), VKA_OK);
    assert_false(verify_passed(&result));
}

static void sums_are_checked(void **state)
{
    (void)state;
    enum { COUNT = 5000, PARTIALS = 3 };
    float *partial[PARTIALS];
    float *sum = calloc(COUNT, sizeof *sum);
    assert_non_null(sum);
    for (uint32_t n = 0; n < PARTIALS; n++) {
        partial[n] = noise_array(10 + n, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            sum[i] += partial[n][i];
    }
    verify_sum_params params = {.partials = PARTIALS,
                                .count = COUNT,
                                .partial = (const float *const *)partial,
                                .got = sum,
                                .got_dtype = VKA_F32};
    verify_result result = {0};
    assert_int_equal(verify_sum(&params, &result, NULL), VKA_OK);
    assert_true(verify_passed(&result));
    verify_result bug = {0};
    params.mutant = VERIFY_PARTIAL_TWICE;
    assert_int_equal(verify_sum(&params, &bug, NULL), VKA_OK);
    assert_false(verify_passed(&bug));

    params.mutant = VERIFY_CORRECT;
    static const vka_dtype types[] = {VKA_F16, VKA_BF16};
    for (size_t t = 0; t < 2; t++) {
        float *rounded = calloc(COUNT, sizeof *rounded);
        assert_non_null(rounded);
        for (size_t i = 0; i < COUNT; i++)
            rounded[i] = (float)verify_round((double)sum[i], types[t]);
        params.got = rounded;
        params.got_dtype = types[t];
        result = (verify_result){0};
        assert_int_equal(verify_sum(&params, &result, NULL), VKA_OK);
        assert_true(verify_passed(&result) && result.max_ratio > 0.5);
        free(rounded);
    }
    for (uint32_t n = 0; n < PARTIALS; n++)
        free(partial[n]);
    free(sum);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    verify_result result = {0};
    vka_error error;
    verify_projection_params projection = {.rows = 1, .cols = 2, .depth = 3, .weights = {.rows = 2, .cols = 2}};
    assert_int_equal(verify_projection(&projection, &result, &error), VKA_ERR_ARGUMENT);
    verify_epilogue_params epilogue = {.rows = 1, .heads = 1, .head_dim = 577};
    assert_int_equal(verify_epilogue(&epilogue, &result, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "577"));
    verify_attention_params attention = {.rows = 1, .keys = 1, .qk_dim = 0, .v_dim = 1, .kv_heads = 1};
    assert_int_equal(verify_attention(&attention, &result, NULL, &error), VKA_ERR_ARGUMENT);
    verify_sum_params sum = {.partials = 0, .count = 1};
    assert_int_equal(verify_sum(&sum, &result, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(result.elements, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_agrees_with_the_engine),
        cmocka_unit_test(elements_are_judged),
        cmocka_unit_test(projection_is_checked),
        cmocka_unit_test(epilogue_is_checked),
        cmocka_unit_test(attention_is_checked),
        cmocka_unit_test(unseeing_rows_must_be_exact),
        cmocka_unit_test(sums_are_checked),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
