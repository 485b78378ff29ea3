/* The outputs of Hugging Face transformers would show mistakes: each of hf_mistakes.h moves some output of every block
 * of tests/data/hf that it can be made in, far over the tolerance of test_hf.c. */
#include <stdlib.h>

#include "layer/hf_mistakes.h"
#include "layer/hf_run.h"

static bool shows(const hf_case *which, const hf_mistake *mistake)
{
    void *owned = NULL;
    hf_block block;

    hf_open(&block, which);
    bool planted = mistake->plant(&block, &owned);
    if (planted) {
        double worst = hf_run(&block, 1, "0");
        require(worst > 100 * HF_TOLERANCE, "%s: %s moves the outputs by %g only", block.name, mistake->name, worst);
    }
    free(owned);
    hf_close(&block);
    return planted;
}

static void show(const hf_mistake *mistakes, size_t count)
{
    for (size_t m = 0; m < count; m++) {
        for (size_t i = 0; i < hf_case_count; i++)
            if (!hf_is_gguf(&hf_cases[i])) /* the same blocks again */
                shows(&hf_cases[i], &mistakes[m]);
    }
}

static void options_show(void **state)
{
    (void)state;
    show(hf_mistakes_of_options, hf_mistakes_of_options_count);
}

static void rope_shows(void **state)
{
    (void)state;
    show(hf_mistakes_of_rope, hf_mistakes_of_rope_count);
}

static void weights_show(void **state)
{
    (void)state;
    show(hf_mistakes_of_weights, hf_mistakes_of_weights_count);
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
        cmocka_unit_test(options_show),
        cmocka_unit_test(rope_shows),
        cmocka_unit_test(weights_show),
    };

    return cmocka_run_group_tests(tests, NULL, close_context);
}
