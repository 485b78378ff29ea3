/* The groups of gpu_main.c; *state is the rig. */
#ifndef VKA_TEST_KERNELS_GPU_TESTS_H
#define VKA_TEST_KERNELS_GPU_TESTS_H

void projections_are_right(void **state);
void projections_do_not_depend_on_place(void **state);
void projections_of_blocks_are_those_of_each(void **state);

void every_half_is_exact(void **state);
void epilogues_are_right(void **state);
void pages_of_other_slabs_are_left_alone(void **state);
void halves_are_rounded_to_nearest_even(void **state);
void packing_is_exact(void **state);
void prefill_is_right(void **state);
void decoding_is_right(void **state);
void rows_do_not_depend_on_their_tile(void **state);
void unseen_values_do_not_matter(void **state);
/* One case of every kernel under the least limits, and where every tensor fits a texel view of every device. */
void floor_is_enough(void **state);
void small_tensors_are_seen_as_texels(void **state);

#endif
