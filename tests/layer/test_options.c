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
        cmocka_unit_test(every_option_at_every_tp),
        cmocka_unit_test(a_forgotten_option_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
