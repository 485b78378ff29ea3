/* See text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void vka_append(vka_text *text, const char *format, ...)
{
    size_t room = text->size - text->used;
    va_list arguments;
    int written;

    if (room <= 1)
        return;
    va_start(arguments, format);
    written = vsnprintf(text->data + text->used, room, format, arguments);
    va_end(arguments);
    if (written > 0)
        text->used += (size_t)written < room ? (size_t)written : room - 1;
}
