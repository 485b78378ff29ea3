/* The middle of measurements. */
#ifndef VKA_BASE_MEDIAN_H
#define VKA_BASE_MEDIAN_H

#include <stddef.h>

/* Sorts `values` (count >= 1, no NaN) and returns the middle one, or the mean of the two in the middle. */
double vka_median(double *values, size_t count);

#endif
