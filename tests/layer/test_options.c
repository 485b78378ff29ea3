/* What a family may ask of the epilogue: every option at several tp on all devices, and the same layers against a
 * reference that forgets the option, which must find them wrong. */
#include "layer/layer_tests.h"

#include "layer/check.h"
#include "layer/script.h"

/* Heads of 12 in 16 elements' room; the turned elements begin and end within quads. */
static const layer_case base = {.name = "options",
                                .desc = {.hidden_size = 65,
                                         .heads = 8,
                                         .kv_heads = 4,
                                         .head_dim = 12,
                                         .rotary_dim = 6,
                                         .rotary_offset = 3,
                                         .rope_pairing = VKA_ROPE_INTERLEAVED,
                                         .clip_qkv = 0.8,
                                         .qk_norm = VKA_QK_NORM_PER_HEAD,
                                         .norm_unit_offset = 1},
                                .qkv_bias = true};

static const struct {
    uint32_t tp;
    const char *place;
} grids[] = {{1, "0"}, {2, "0,1"}, {4, "1,0,1,0"}, {8, "0*3,1*5"}};

static void every_option_at_every_tp(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        layer_case setup = base;
        setup.tp = grids[i].tp;
        setup.place = grids[i].place;
        setup.cache = i % 2 == 0 ? VKA_F32 : VKA_F16;
        run_case(harness_context(), &setup);
        setup.desc.rope_pairing = VKA_ROPE_HALF_SPLIT;
        setup.desc.clip_qkv = 0;
        setup.desc.norm_unit_offset = 0;
        run_case(harness_context(), &setup);
    }
}

/* [query | gate] of each head; the gate is neither normed nor turned. */
static void gates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        layer_case setup = base;
        setup.tp = grids[i].tp;
        setup.place = grids[i].place;
        setup.reproducible = i % 2;
        setup.qkv_bias = i < 2;
        setup.desc.gate = VKA_GATE_SIGMOID;
        setup.desc.qk_norm = i == 1 ? VKA_QK_NORM_FULL_WIDTH : VKA_QK_NORM_PER_HEAD;
        setup.desc.attend = i == 2 ? VKA_ATTEND_FULL : VKA_ATTEND_CAUSAL;
        setup.cache = i % 2 == 0 ? VKA_F32 : VKA_F16;
        run_case(harness_context(), &setup);
    }
}

/* A norm over all heads: the sums of squares go from device to device. */
static void norms_over_the_full_width(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        layer_case setup = base;
        setup.tp = grids[i].tp;
        setup.place = grids[i].place;
        setup.reproducible = i % 2;
        setup.desc.qk_norm = VKA_QK_NORM_FULL_WIDTH;
        run_case(harness_context(), &setup);
        setup.desc.norm_unit_offset = 0;
        setup.desc.clip_qkv = 0;
        setup.desc.attend = VKA_ATTEND_FULL;
        setup.qkv_bias = false;
        run_case(harness_context(), &setup);
    }
}

/* A reproducible layer gives the same bits wherever its ranks are, on devices of one kind. */
static void wide_norms_do_not_depend_on_placement(void **state)
{
    static const char *const places[] = {"0*4", "0,2,0,2", "2,2,2,0"};
    float rows[3][9 * 65];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        layer_case setup = base;
        layer_rig rig;
        setup.tp = 4;
        setup.place = places[i];
        setup.reproducible = true;
        setup.desc.qk_norm = VKA_QK_NORM_FULL_WIDTH;
        rig_open(&rig, harness_context(), &setup);
        rig_extend(&rig, rig_sequence(&rig), 9, rows[i]);
        rig_close(&rig);
        assert_memory_equal(rows[0], rows[i], sizeof(rows[0]));
    }
}

/* The factors themselves are judged: here by a reference with another eps. */
static void a_wrong_factor_is_found(void **state)
{
    layer_case setup = base;
    stage_report report = {0};
    layer_rig rig;

    (void)state;
    setup.tp = 8;
    setup.desc.qk_norm = VKA_QK_NORM_FULL_WIDTH;
    setup.desc.clip_qkv = 0;
    rig_open(&rig, harness_context(), &setup);
    const vka_batch_entry entry = {rig_sequence(&rig), 3};
    rig.desc.norm_eps = 0.01;
    rig_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .report = &report});
    assert_false(verify_passed(&report.stages[STAGE_EPILOGUE]));
    assert_true(verify_passed(&report.stages[STAGE_ATTENTION]));
    rig_close(&rig);
}

static void forget_pairing(vka_layer_desc *desc)
{
    desc->rope_pairing = VKA_ROPE_HALF_SPLIT;
}

static void forget_offset(vka_layer_desc *desc)
{
    desc->rotary_offset = 0;
}

static void forget_clip(vka_layer_desc *desc)
{
    desc->clip_qkv = 0;
}

static void forget_unit(vka_layer_desc *desc)
{
    desc->norm_unit_offset = 0;
}

static void a_forgotten_option_is_found(void **state)
{
    static void (*const forget[])(vka_layer_desc * desc) = {NULL, forget_pairing, forget_offset, forget_clip,
                                                            forget_unit};
    layer_case setup = base;
    layer_rig rig;

    (void)state;
    setup.tp = 2;
    rig_open(&rig, harness_context(), &setup);
    const vka_layer_desc whole = rig.desc;
    for (size_t i = 0; i < sizeof(forget) / sizeof(forget[0]); i++) {
        stage_report report = {0};
        const vka_batch_entry entry = {rig_sequence(&rig), 9};
        rig.desc = whole;
        if (forget[i] != NULL)
            forget[i](&rig.desc);
        rig_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .report = &report});
        for (int s = STAGE_UPLOAD; s < STAGE_COUNT; s++)
            require(verify_passed(&report.stages[s]) == (forget[i] == NULL || s != STAGE_EPILOGUE),
                    "option %zu forgotten: stage %s is %g times its bound", i, stage_name((check_stage)s),
                    report.stages[s].max_ratio);
    }
    rig_close(&rig);
}

int run_options_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_at_every_tp),  cmocka_unit_test(gates),
        cmocka_unit_test(norms_over_the_full_width), cmocka_unit_test(wide_norms_do_not_depend_on_placement),
        cmocka_unit_test(a_wrong_factor_is_found),   cmocka_unit_test(a_forgotten_option_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
