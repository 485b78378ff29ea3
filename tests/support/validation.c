#include "support/validation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"

/* Messages may come from inside a driver, on any of its threads: no way back into the test is safe. */
static void end_at_error(void *user, int level, const char *message)
{
    (void)user;
    if (level != VKA_LOG_ERROR)
        return;
    fprintf(stderr, "FAILED: %s\n", message);
    fflush(stderr);
    _Exit(EXIT_FAILURE);
}

void support_validate(vka_context_params *params)
{
    const char *wanted = vka_environment("VKA_TEST_VALIDATION");

    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    params->validation = 1;
    params->log = end_at_error;
}
