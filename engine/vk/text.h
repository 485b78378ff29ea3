/* Inside vk/: pieces of a text, for the device grammar and for `pretend`. */
#ifndef VKA_VK_TEXT_H
#define VKA_VK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not NUL-terminated; start is NULL when there is nothing left. */
typedef struct gpu_text {
    const char *start;
    size_t length;
} gpu_text;

gpu_text gpu_text_of(const char *text);
/* Takes the piece before the next `separator` off *rest, without surrounding blanks; false when nothing is left. An
 * empty piece counts: "a,,b" has three. */
bool gpu_text_next(gpu_text *rest, char separator, gpu_text *piece);
bool gpu_text_is(gpu_text piece, const char *word);
/* Takes `prefix` off the front; false, and no change, when it is not there. */
bool gpu_text_skip(gpu_text *piece, const char *prefix);
/* All of the piece as an unsigned number in base 10 or 16; false when it is not one or does not fit. */
bool gpu_text_number(gpu_text piece, uint32_t base, uint64_t *value);

#endif
