/* Runs every group, also after one failed. */
#include "layer/harness.h"
#include "layer/tune_tests.h"

int main(void)
{
    int failed = 0;

    failed += run_tune_results_tests();
    failed += run_tune_choices_tests();
    failed += run_tune_files_tests();
    harness_close();
    return failed != 0;
}
