/* The stage checks can fail: with a bug planted in the reference, the right stage of a correct layer does, in prefill
 * and in decoding, and no other. */
#include "layer/layer_tests.h"

#include "layer/check.h"

static const layer_case setup = {
    .name = "planted bugs",
    .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 4, .head_dim = 8},
    .tp = 4,
    .place = "0,1,0,1",
};

static const layer_case latent = {
    .name = "planted bugs, latent attention",
    .desc = {.hidden_size = 65,
             .heads = 8,
             .kv_heads = 8,
             .head_dim = 15,
             .v_head_dim = 10,
             .rotary_dim = 6,
             .rotary_offset = 9,
             .rope_pairing = VKA_ROPE_INTERLEAVED,
             .kv_lora_rank = 19,
             .q_lora_rank = 21},
    .tp = 4,
    .place = "0,1,0,1",
};

static check_stage stage_of(verify_mutant mutant)
{
    switch (mutant) {
    case VERIFY_WRONG_ROPE_PAIRING:
        return STAGE_EPILOGUE;
    case VERIFY_PARTIAL_TWICE:
        return STAGE_SUM;
    default:
        return STAGE_ATTENTION;
    }
}

/* `sequence` grows by `tokens`; the report is of that call. */
static void judge(layer_rig *rig, uint32_t sequence, uint32_t tokens, verify_mutant mutant)
{
    const vka_batch_entry entry = {sequence, tokens};
    stage_report report = {.mutant = mutant};

    rig_forward(rig, &(rig_call){.entries = &entry, .count = 1, .report = &report});
    for (int s = STAGE_UPLOAD; s < STAGE_COUNT; s++) {
        bool planted = mutant != VERIFY_CORRECT && s == (int)stage_of(mutant);
        require(verify_passed(&report.stages[s]) == !planted, "%s, %u tokens: stage %s is %g times its bound",
                verify_mutant_name(mutant), tokens, stage_name((check_stage)s), report.stages[s].max_ratio);
    }
}

static void find_all(const layer_case *one)
{
    layer_rig rig;

    rig_open(&rig, harness_context(), one);
    for (int mutant = VERIFY_CORRECT; mutant < VERIFY_MUTANT_COUNT; mutant++) {
        uint32_t sequence = rig_sequence(&rig);
        rig.stream[sequence] = 3;
        judge(&rig, sequence, 24, (verify_mutant)mutant);
        judge(&rig, sequence, 1, (verify_mutant)mutant);
    }
    rig_close(&rig);
}

static void every_planted_bug_is_found(void **state)
{
    (void)state;
    find_all(&setup);
    find_all(&latent);
}

/* A check that looked at nothing does not pass. */
static void nothing_checked_is_not_passed(void **state)
{
    const stage_report report = {0};

    (void)state;
    for (int s = STAGE_UPLOAD; s < STAGE_COUNT; s++)
        assert_false(verify_passed(&report.stages[s]));
}

int run_mutants_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_bug_is_found),
        cmocka_unit_test(nothing_checked_is_not_passed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
