/* Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
 */
#ifndef VKA_MODEL_PHILOX_H
#define VKA_MODEL_PHILOX_H

#include <stdint.h>

/* A bijection of the counter, chosen by the key. Pure. */
void vka_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
