/* What every fuzz target has: libFuzzer's entry point, called by libFuzzer itself in a VKA_FUZZ build and by replay.c
 * in every other. A broken promise ends the process, which both report with the input. */
#ifndef VKA_TESTS_FUZZ_H
#define VKA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

#endif
