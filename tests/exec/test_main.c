/* Runs every group, also after one failed. */
#include "exec/exec_tests.h"

int main(void)
{
    int failed = 0;

    failed += run_chunk_tests();
    failed += run_hazard_tests();
    failed += run_pages_tests();
    failed += run_panels_tests();
    failed += run_tiles_tests();
    return failed != 0;
}
