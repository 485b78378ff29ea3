/* Messages to the context's log callback. */
#ifndef VKA_BASE_LOG_H
#define VKA_BASE_LOG_H

#include "vkattn/context.h"

typedef struct vka_log {
    vka_log_fn fn; /* NULL: silent */
    void *user;
} vka_log;

enum { VKA_LOG_ERROR = 0, VKA_LOG_WARNING = 1, VKA_LOG_INFO = 2 };

void vka_log_print(const vka_log *log, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
