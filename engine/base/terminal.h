/* Standard error: whether somebody watches it, and how to reach it from a signal handler. */
#ifndef VKA_BASE_TERMINAL_H
#define VKA_BASE_TERMINAL_H

#include <stdbool.h>

bool vka_stderr_is_terminal(void);

/* Writes `text` to standard error without stdio; may be called from a signal handler. */
void vka_terminal_complain(const char *text);

#endif
