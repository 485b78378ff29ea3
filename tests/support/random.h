/* Random numbers for property tests: the same on every machine. */
#ifndef VKA_SUPPORT_RANDOM_H
#define VKA_SUPPORT_RANDOM_H

#include <stdint.h>

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003): 0 .. below - 1 from a state that is not 0. */
static inline uint32_t random_below(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % below;
}

#endif
