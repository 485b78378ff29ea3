/* Monotonic clock, for measurements and time budgets only: no result depends on it. */
#include "base/clock.h"

#include <time.h>

double vka_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
