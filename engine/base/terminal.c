#include "base/terminal.h"

#include <unistd.h>

bool vka_stderr_is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}
