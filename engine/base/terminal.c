#include "base/terminal.h"

#include <string.h>
#include <unistd.h>

bool vka_stderr_is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void vka_terminal_complain(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written; /* nobody is left to tell */
}
