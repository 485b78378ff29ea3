/* See signals.h. */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

void vka_watch_crashes(void (*handler)(int signal_number))
{
    static const int crashes[] = {
        SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGBUS, /* the last also for a mapped file that was cut short meanwhile */
    };

    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        void (*before)(int) = signal(crashes[i], handler);
        if (before != SIG_DFL && before != SIG_ERR)
            signal(crashes[i], before);
    }
}
