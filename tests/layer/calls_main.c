/* Runs every group, also after one failed. */
#include "layer/calls_tests.h"

#include "layer/harness.h"

int main(void)
{
    int failed = 0;

    failed += run_refused_tests();
    failed += run_order_tests();
    failed += run_chunks_tests();
    failed += run_cost_tests();
    failed += run_growth_tests();
    harness_close();
    return failed != 0;
}
