/* Formats a message on the stack and hands it to the host's callback. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void vka_log_print(const vka_log *log, int level, const char *format, ...)
{
    char message[4096]; /* longer than vka_error.message, which is often what is logged */
    va_list arguments;

    if (!log || !log->fn)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    log->fn(log->user, level, message);
}
