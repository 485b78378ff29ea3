/* What a command is busy with: on stderr, and only when that is a terminal. */
#ifndef VKA_TOOLS_PROGRESS_H
#define VKA_TOOLS_PROGRESS_H

void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);

#endif
