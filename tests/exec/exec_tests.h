/* The groups of the exec unit test program. Each returns the number of tests that failed. */
#ifndef VKA_TESTS_EXEC_TESTS_H
#define VKA_TESTS_EXEC_TESTS_H

int run_chunk_tests(void);
int run_hazard_tests(void);
int run_pages_tests(void);
int run_panels_tests(void);
int run_tiles_tests(void);

#endif
