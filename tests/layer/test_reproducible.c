/* Which results have the same bits: with `reproducible` those of one grid on any placement over devices of one kind;
 * without it those of one layer from run to run. */
#include "layer/layer_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/harness.h"

enum { HIDDEN = 65, PREFILL = 660, RAGGED = 12, ROWS = PREFILL + RAGGED + 2 };

static const layer_case setup = {
    .name = "reproducible",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 2, .head_dim = 8},
    .tp = 4,
    .place = "0*4",
    .qkv_bias = true,
    .o_bias = true,
    .reproducible = true,
    .pages = 100,
};

static const layer_case latent = {
    .name = "reproducible, latent attention",
    .desc = {.hidden_size = HIDDEN,
             .heads = 8,
             .kv_heads = 8,
             .head_dim = 12,
             .rotary_dim = 4,
             .rotary_offset = 8,
             .kv_lora_rank = 20,
             .q_lora_rank = 24},
    .tp = 4,
    .place = "0*4",
    .reproducible = true,
    .pages = 100,
};

/* A long prefill, prefill and decoding mixed, decoding that is split over keys. */
static float *run_all(vka_context *context, const layer_case *one)
{
    float *rows = calloc(ROWS * HIDDEN, sizeof(float));
    layer_rig rig;

    rig_open(&rig, context, one);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    const vka_batch_entry mixed[2] = {{a, 1}, {b, RAGGED - 1}}, decode[2] = {{b, 1}, {a, 1}};
    rig_run(&rig, a, PREFILL, rows);
    rig_forward(&rig, &(rig_call){.entries = mixed, .count = 2, .result = rows + PREFILL * HIDDEN, .unchecked = true});
    rig_forward(
        &rig,
        &(rig_call){.entries = decode, .count = 2, .result = rows + (PREFILL + RAGGED) * HIDDEN, .unchecked = true});
    rig_close(&rig);
    return rows;
}

static void check_same(vka_context *context, const layer_case *one, const char *place, const float *expected)
{
    layer_case placed = *one;

    placed.place = place;
    float *rows = run_all(context, &placed);
    for (size_t i = 0; i < ROWS * HIDDEN; i++)
        require(memcmp(&rows[i], &expected[i], sizeof(float)) == 0, "%s on %s: row %zu column %zu is %.9g, not %.9g",
                one->name, place, i / HIDDEN, i % HIDDEN, (double)rows[i], (double)expected[i]);
    free(rows);
}

static void check_placements(const layer_case *one)
{
    static const char *const places[] = {"2*4", "0*2,2*2", "0,2,0,2", "2,0,0,2", "2*3,0"};
    float *expected = run_all(harness_context(), one);

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        check_same(harness_context(), one, places[i], expected);
    free(expected);
}

static void any_placement(void **state)
{
    (void)state;
    check_placements(&setup);
    check_placements(&latent);
}

/* Contexts with other devices than the shared one: alone, twice. */
static void any_list_of_devices(void **state)
{
    static const char *const places[2] = {"0*4", "0,1,1,0"};
    float *expected = run_all(harness_context(), &setup);

    (void)state;
    for (int copies = 1; copies <= 2; copies++) {
        vka_context_params params = harness_params();
        vka_context *context = NULL;
        char devices[64];
        snprintf(devices, sizeof(devices), "%u,%u", harness_devices()->index[0], harness_devices()->index[0]);
        if (copies == 1)
            *strchr(devices, ',') = '\0';
        params.devices = devices;
        assert_int_equal(vka_context_create(&context, &params, NULL), VKA_OK);
        check_same(context, &setup, places[copies - 1], expected);
        vka_context_destroy(&context);
    }
    free(expected);
}

static void from_run_to_run(void **state)
{
    layer_case one = setup;

    (void)state;
    one.name = "default";
    one.reproducible = false;
    one.place = "0,1,0,1";
    float *expected = run_all(harness_context(), &one);
    check_same(harness_context(), &one, one.place, expected);
    free(expected);
}

int run_reproducible_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_placement),
        cmocka_unit_test(any_list_of_devices),
        cmocka_unit_test(from_run_to_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
