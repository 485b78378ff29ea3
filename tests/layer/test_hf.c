/* The outputs of Hugging Face transformers' attention modules (tests/data/README.md): every block through the real
 * loader, at every valid tp up to 8, prefill and decoding.
 *
 * Their float32 outputs lie within 4e-6 of the same modules in float64, 1.2e-6 of the largest output. An engine
 * that computes in float32 too has an error of that size of its own, in another order of additions; HF_TOLERANCE = 5e-6
 * of the largest output leaves room for both. The mistakes of test_hf_mistakes.c move some outputs by far more than
 * that. */
#include <stdio.h>

#include "layer/hf_run.h"

/* Ranks on the devices in turn, so that no device's heads are neighbours. */
static void place_in_turn(char *place, uint32_t tp, uint32_t first)
{
    for (uint32_t t = 0; t < tp; t++)
        place += sprintf(place, "%s%u", t > 0 ? "," : "", (first + t) % vka_context_device_count(hf_context()));
}

static void on_every_placement(const hf_block *block, uint32_t tp)
{
    for (uint32_t first = 0; first < vka_context_device_count(hf_context()); first++) {
        char place[64];
        place_in_turn(place, tp, first);
        double worst = hf_run(block, tp, place);
        require(worst <= HF_TOLERANCE, "%s on %s: off by %g", block->name, place, worst);
    }
}

static void every_block_at_every_tp(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_case_count; i++) {
        hf_block block;
        vka_verdict verdict;
        hf_open(&block, &hf_cases[i]);
        assert_int_equal(vka_layout_judge(&block.desc, (vka_grid){0}, VKA_KV_DEFAULT, &verdict, NULL), VKA_OK);
        bool strict = block.desc.kv_policy == VKA_KV_STRICT;
        const uint32_t *valid = strict ? verdict.valid_strict : verdict.valid_replicate;
        uint32_t count = strict ? verdict.valid_strict_count : verdict.valid_replicate_count;
        for (uint32_t v = 0; v < count && valid[v] <= 8; v++)
            on_every_placement(&block, valid[v]);
        hf_close(&block);
    }
}

static int close_context(void **state)
{
    (void)state;
    hf_context_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_at_every_tp),
    };

    return cmocka_run_group_tests(tests, NULL, close_context);
}
