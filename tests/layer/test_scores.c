/* What a family may ask of the scores: softcap, sinks and ALiBi at several tp on all devices, and the same layers
 * against a reference that forgets one of them, which must find them wrong. */
#include "layer/layer_tests.h"

#include "layer/check.h"
#include "layer/script.h"

static const layer_case base = {
    .name = "softcap, sinks, ALiBi",
    .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 4, .head_dim = 8, .softcap = 0.5, .sinks = 1, .alibi = 1}};

static const struct {
    uint32_t tp;
    const char *place;
} grids[] = {{1, "0"}, {2, "0,1"}, {4, "1,0,1,0"}, {8, "0*3,1*5"}};

static void every_tp(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        layer_case setup = base;
        setup.tp = grids[i].tp;
        setup.place = grids[i].place;
        setup.cache = i % 2 == 0 ? VKA_F32 : VKA_F16;
        setup.reproducible = i == 2;
        run_case(harness_context(), &setup);
        setup.desc.attend = VKA_ATTEND_FULL;
        setup.desc.window = 9;
        run_case(harness_context(), &setup);
    }
}

/* Long enough for keys to be split over workgroups: sinks come in when the parts are combined. */
static void split_keys(void **state)
{
    layer_case setup = base;
    layer_rig rig;

    (void)state;
    setup.tp = 4;
    rig_open(&rig, harness_context(), &setup);
    uint32_t sequence = rig_sequence(&rig);
    rig_extend(&rig, sequence, 600, NULL);
    rig_extend(&rig, sequence, 1, NULL);
    rig_close(&rig);
}

static void forget_softcap(layer_rig *rig)
{
    rig->desc.softcap = 0;
}

static void forget_sinks(layer_rig *rig)
{
    rig->weights.sinks.data = NULL;
}

static void forget_slopes(layer_rig *rig)
{
    rig->weights.alibi_slopes.data = NULL;
}

/* Sinks of the heads in reverse. */
static void swap_sinks(layer_rig *rig)
{
    static float swapped[8];
    const float *sinks = rig->weights.sinks.data;

    for (int h = 0; h < 8; h++)
        swapped[h] = sinks[7 - h];
    rig->weights.sinks.data = swapped;
}

static void a_forgotten_option_is_found(void **state)
{
    static void (*const forget[])(layer_rig * rig) = {NULL, forget_softcap, forget_sinks, forget_slopes, swap_sinks};
    layer_case setup = base;
    layer_rig rig;

    (void)state;
    setup.tp = 2;
    rig_open(&rig, harness_context(), &setup);
    const layer_rig whole = rig;
    for (size_t i = 0; i < sizeof(forget) / sizeof(forget[0]); i++) {
        stage_report report = {0};
        const vka_batch_entry entry = {rig_sequence(&rig), 9};
        rig.desc = whole.desc;
        rig.weights = whole.weights;
        if (forget[i] != NULL)
            forget[i](&rig);
        rig_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .report = &report});
        for (int s = STAGE_UPLOAD; s < STAGE_COUNT; s++)
            require(verify_passed(&report.stages[s]) == (forget[i] == NULL || s != STAGE_ATTENTION),
                    "option %zu forgotten: stage %s is %g times its bound", i, stage_name((check_stage)s),
                    report.stages[s].max_ratio);
    }
    rig_close(&rig);
}

int run_scores_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tp),
        cmocka_unit_test(split_keys),
        cmocka_unit_test(a_forgotten_option_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
