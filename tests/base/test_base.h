/* The groups of the base test program. Each returns the number of tests that failed. */
#ifndef VKA_TESTS_TEST_BASE_H
#define VKA_TESTS_TEST_BASE_H

int run_alloc_tests(void);
int run_error_tests(void);
int run_files_tests(void);
int run_half_tests(void);
int run_identity_tests(void);
int run_median_tests(void);
int run_near_tests(void);
int run_system_tests(void);
int run_text_tests(void);
int run_threads_tests(void);

#endif
