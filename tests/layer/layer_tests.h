/* The groups of the layer test programs. Each returns the number of tests that failed. */
#ifndef VKA_TESTS_LAYER_TESTS_H
#define VKA_TESTS_LAYER_TESTS_H

int run_attend_tests(void);
int run_attention_tests(void);
int run_buffers_tests(void);
int run_kv_tests(void);
int run_misuse_tests(void);
int run_mutants_tests(void);
int run_options_tests(void);
int run_reproducible_tests(void);
int run_rope_tests(void);
int run_scores_tests(void);
int run_sequences_tests(void);
int run_stages_tests(void);

#endif
