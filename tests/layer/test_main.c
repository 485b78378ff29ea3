/* Runs every group, also after one failed. */
#include "layer/layer_tests.h"

#include "layer/harness.h"

int main(void)
{
    int failed = 0;

    failed += run_stages_tests();
    failed += run_mutants_tests();
    failed += run_options_tests();
    failed += run_scores_tests();
    failed += run_attend_tests();
    failed += run_kv_tests();
    failed += run_rope_tests();
    failed += run_sequences_tests();
    failed += run_buffers_tests();
    failed += run_attention_tests();
    failed += run_reproducible_tests();
    failed += run_misuse_tests();
    harness_close();
    return failed != 0;
}
