/* The Khronos validation layer under tests of the engine: on when VKA_TEST_VALIDATION is 1, as in .ci/run. */
#ifndef VKA_SUPPORT_VALIDATION_H
#define VKA_SUPPORT_VALIDATION_H

#include "vkattn/context.h"

/* Sets validation and log of *params. The first message of the layer ends the test program with a failure. */
void support_validate(vka_context_params *params);

#endif
