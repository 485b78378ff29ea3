/* One line that is written over and over; nothing at all in a file or a pipe. */
#include <stdarg.h>
#include <stdio.h>

#include "base/terminal.h"
#include "progress.h"

#define CLEAR_LINE "\r\x1b[K"

void progress_show(const char *format, ...)
{
    va_list arguments;

    if (!vka_stderr_is_terminal())
        return;
    fputs(CLEAR_LINE, stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

void progress_end(void)
{
    if (vka_stderr_is_terminal())
        fputs(CLEAR_LINE, stderr);
}
