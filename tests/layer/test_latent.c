/* Layers with latent attention against the float64 reference of latent_reference.h: every tp up to 8 that some number
 * of heads allows, prefill, ragged batches and decoding, with and without a latent of Q. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "layer/harness.h"
#include "layer/latent_reference.h"

enum { HIDDEN = 40, SEQUENCES = 2, MOST_ROWS = 24 };

/* No part is a multiple of 8: what is padded shows. */
static const layer_case odd = {
    .name = "latent of Q, neighbours",
    .desc = {.hidden_size = HIDDEN,
             .heads = 8,
             .kv_heads = 8,
             .head_dim = 17,
             .v_head_dim = 12,
             .rotary_dim = 6,
             .rotary_offset = 11,
             .rope_pairing = VKA_ROPE_INTERLEAVED,
             .scale = 0.3,
             .kv_lora_rank = 21,
             .q_lora_rank = 27},
    .page_size = 4,
};

static const layer_case whole = {
    .name = "Q from the hidden state, half split",
    .desc = {.hidden_size = HIDDEN,
             .heads = 8,
             .kv_heads = 8,
             .head_dim = 24,
             .v_head_dim = 16,
             .rotary_dim = 8,
             .rotary_offset = 16,
             .kv_lora_rank = 32},
    .o_bias = true,
    .page_size = 3,
};

/* Rows of each sequence in each call. */
static const uint32_t calls[][SEQUENCES] = {{9, 2}, {1, 1}, {3, 7}, {1, 1}};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static double bias(const layer_rig *rig, size_t i)
{
    const float *values = rig->weights.o_bias.data;

    return values != NULL ? (double)values[i] : 0;
}

/* The largest difference between `result` and the reference, as a share of the largest output. */
static double worst(const layer_rig *rig, uint32_t stream, uint32_t first, uint32_t rows, latent_mistake mistake,
                    const float *result)
{
    double *want = calloc((size_t)rows * HIDDEN, sizeof(double)), most = 0, largest = 0;

    require(want != NULL, "no memory");
    latent_reference(rig, stream, first, rows, mistake, want);
    for (size_t i = 0; i < (size_t)rows * HIDDEN; i++) {
        double value = want[i] + bias(rig, i % HIDDEN), difference = fabs((double)result[i] - value);
        require(isfinite(result[i]), "value %zu is %g", i, (double)result[i]);
        most = fmax(most, difference);
        largest = fmax(largest, fabs(value));
    }
    free(want);
    return most / largest;
}

/* Runs all calls; returns the worst share. */
static double run_calls(const layer_case *one, latent_mistake mistake)
{
    float result[MOST_ROWS * HIDDEN];
    double most = 0;
    layer_rig rig;

    rig_open(&rig, harness_context(), one);
    for (uint32_t s = 0; s < SEQUENCES; s++)
        (void)rig_sequence(&rig);
    for (size_t c = 0; c < CALLS; c++) {
        vka_batch_entry entries[SEQUENCES];
        uint32_t past[SEQUENCES], row = 0;
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            past[s] = rig_length(&rig, s, 0);
            entries[s] = (vka_batch_entry){s, calls[c][s]};
        }
        rig_forward(&rig, &(rig_call){.entries = entries,
                                      .count = SEQUENCES,
                                      .result = result,
                                      .unchecked = mistake != LATENT_CORRECT});
        for (uint32_t s = 0; s < SEQUENCES; row += calls[c][s++])
            most = fmax(most, worst(&rig, s, past[s], calls[c][s], mistake, result + row * HIDDEN));
    }
    rig_close(&rig);
    return most;
}

/* Weights, the absorbed queries and the cache are rounded to F32 or F16 only. */
#define F32_SHARE     2e-6
#define F16_SHARE     4e-3
#define MISTAKE_SHARE 0.04

static void check_tp(const layer_case *base, uint32_t heads, uint32_t tp, bool reproducible)
{
    layer_case one = *base;

    one.desc.heads = one.desc.kv_heads = heads;
    one.tp = tp;
    one.reproducible = reproducible;
    double share = run_calls(&one, LATENT_CORRECT);
    require(share <= F32_SHARE, "%s, %u heads, tp %u: error %g of the largest output", one.name, heads, tp, share);
    one.weights = one.cache = VKA_F16;
    share = run_calls(&one, LATENT_CORRECT);
    require(share <= F16_SHARE, "%s, %u heads, tp %u, F16: error %g of the largest output", one.name, heads, tp, share);
}

static void every_tp(void **state)
{
    (void)state;
    for (uint32_t heads = 5; heads <= 8; heads++) {
        for (uint32_t tp = 1; tp <= heads; tp++) {
            if (heads % tp == 0) {
                check_tp(&odd, heads, tp, tp == 3 || tp == 8);
                check_tp(&whole, heads, tp, tp == 4 || tp == 7);
            }
        }
    }
}

static void mistakes_show(void **state)
{
    (void)state;
    for (int mistake = 1; mistake < LATENT_MISTAKES; mistake++) {
        double share = run_calls(&odd, (latent_mistake)mistake);
        require(share > MISTAKE_SHARE, "mistake %d moves the outputs by %g only", mistake, share);
    }
}

/* Prefill over many tiles, decoding with split keys. */
static void long_sequences(void **state)
{
    enum { LONG = 300 };
    layer_case one = odd;
    layer_rig rig;
    float *result = calloc(LONG * HIDDEN, sizeof(float));

    (void)state;
    require(result != NULL, "no memory");
    one.tp = 4;
    one.pages = 100;
    rig_open(&rig, harness_context(), &one);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, LONG, result);
    double share = worst(&rig, a, LONG - 3, 3, LATENT_CORRECT, result + (LONG - 3) * HIDDEN);
    require(share <= F32_SHARE, "prefill: error %g", share);
    rig_run(&rig, a, 1, result);
    share = worst(&rig, a, LONG, 1, LATENT_CORRECT, result);
    require(share <= F32_SHARE, "decoding: error %g", share);
    rig_close(&rig);
    free(result);
}

/* The cache holds the normed latent and the turned part of K, once per token on every device with ranks. */
static void cache_holds_the_latent(void **state)
{
    enum { TOKENS = 7 };
    layer_case one = odd;
    layer_rig rig;
    float k[TOKENS * 27], v[TOKENS * 21];

    (void)state;
    one.tp = 8;
    rig_open(&rig, harness_context(), &one);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, TOKENS, NULL);
    for (uint32_t d = 0; d < rig.devices; d++) {
        assert_int_equal(vka_cache_device_bytes(rig.cache, d), 64 * 4 * (24 + 8) * sizeof(float));
        assert_int_equal(vka_cache_read(rig.cache, d, 0, a, 0, 0, TOKENS, k, v, NULL), VKA_OK);
        assert_int_equal(vka_cache_read(rig.cache, d, 0, a, 1, 0, TOKENS, k, v, NULL), VKA_ERR_ARGUMENT);
        for (uint32_t t = 0; t < TOKENS; t++) {
            const float *norm = rig.weights.kv_a_norm.data;
            double squares = 0;
            assert_memory_equal(k + t * 27, v + t * 21, 21 * sizeof(float));
            for (uint32_t i = 0; i < 21; i++)
                squares += pow((double)(v[t * 21 + i] / norm[i]), 2);
            assert_true(fabs(squares / 21 - 1) < 1e-4);
        }
    }
    rig_close(&rig);
}

static int close_context(void **state)
{
    (void)state;
    harness_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tp),
        cmocka_unit_test(mistakes_show),
        cmocka_unit_test(long_sequences),
        cmocka_unit_test(cache_holds_the_latent),
    };

    return cmocka_run_group_tests(tests, NULL, close_context);
}
