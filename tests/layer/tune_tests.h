/* The groups of the tuning test program. Each returns the number of tests that failed. */
#ifndef VKA_TESTS_LAYER_TUNE_TESTS_H
#define VKA_TESTS_LAYER_TUNE_TESTS_H

int run_tune_results_tests(void);
int run_tune_choices_tests(void);
int run_tune_files_tests(void);

#endif
