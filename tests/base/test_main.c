/* Runs every group, also after one failed. */
#include "base/test_base.h"

int main(void)
{
    int failed = 0;

    failed += run_alloc_tests();
    failed += run_error_tests();
    failed += run_files_tests();
    failed += run_half_tests();
    failed += run_identity_tests();
    failed += run_median_tests();
    failed += run_near_tests();
    failed += run_system_tests();
    failed += run_text_tests();
    failed += run_threads_tests();
    return failed != 0;
}
