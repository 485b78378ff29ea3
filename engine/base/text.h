/* Text of limited size that is appended to; what does not fit is cut. */
#ifndef VKA_BASE_TEXT_H
#define VKA_BASE_TEXT_H

#include <stddef.h>

typedef struct vka_text {
    char *data; /* [size], NUL-terminated from the first append on; NULL with size 0: everything is cut */
    size_t size;
    size_t used;
} vka_text;

void vka_append(vka_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
