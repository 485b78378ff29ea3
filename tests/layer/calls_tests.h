/* The groups of the program that watches Vulkan calls. Each returns the number of tests that failed. */
#ifndef VKA_TESTS_LAYER_CALLS_TESTS_H
#define VKA_TESTS_LAYER_CALLS_TESTS_H

int run_chunks_tests(void);
int run_cost_tests(void);
int run_growth_tests(void);
int run_order_tests(void);
int run_refused_tests(void);

#endif
