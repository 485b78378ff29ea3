/* See crash.h. */
#include "crash.h"

#include <stdlib.h>

#include "base/signals.h"
#include "base/terminal.h"
#include "failure.h"

static void on_crash(int signal_number)
{
    (void)signal_number;
    vka_terminal_complain("vkattn: crashed, in the program or in a Vulkan driver; what was printed may not be all\n");
    _Exit(EXIT_STATUS_LOST);
}

void crash_watch(void)
{
    vka_watch_crashes(on_crash);
}
