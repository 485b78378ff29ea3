/* Monotonic clock. */
#ifndef VKA_BASE_CLOCK_H
#define VKA_BASE_CLOCK_H

double vka_clock_ms(void);

#endif
