/* Whether there is somebody to show progress to. */
#ifndef VKA_BASE_TERMINAL_H
#define VKA_BASE_TERMINAL_H

#include <stdbool.h>

bool vka_stderr_is_terminal(void);

#endif
