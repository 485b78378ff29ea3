/* Every stage of every call against float64: a representative list of layers, hidden states of every type, and many
 * keys. */
#include "layer/layer_tests.h"

#include "layer/script.h"

static void every_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCRIPT_CASES; i++)
        run_case(harness_context(), &script_cases[i]);
}

/* Hidden states of every type on either side, rows apart from each other. */
static void hidden_states_of_every_type(void **state)
{
    static const vka_dtype types[3] = {VKA_F32, VKA_F16, VKA_BF16};

    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        const script_tensors tensors = {types[i / 3], types[i % 3], i % 4, (i + 1) % 3};
        layer_rig rig;
        rig_open(&rig, harness_context(), &script_cases[i % 2 == 0 ? SCRIPT_BALANCED : SCRIPT_REPRODUCIBLE]);
        run_script(&rig, &tensors);
        rig_close(&rig);
    }
}

/* So many keys that a decoding row is split over workgroups. */
static void long_decoding(void **state)
{
    layer_rig rig;

    (void)state;
    layer_case setup = script_cases[SCRIPT_REPLICATED];
    setup.desc.window = 0;
    setup.pages = 200;
    rig_open(&rig, harness_context(), &setup);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    rig_extend(&rig, a, 700, NULL);
    rig_extend(&rig, b, 300, NULL);
    rig_extend(&rig, a, 1, NULL);
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{b, 2}, {a, 3}}, .count = 2});
    rig_close(&rig);
}

int run_stages_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(hidden_states_of_every_type),
        cmocka_unit_test(long_decoding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
