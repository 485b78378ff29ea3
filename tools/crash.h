/* What the program does when it, or a driver inside it, crashes. */
#ifndef VKA_TOOLS_CRASH_H
#define VKA_TOOLS_CRASH_H

/* From now on a crash says so on stderr and ends the process with EXIT_STATUS_LOST. A handler that is already there, as
 * in sanitizer builds, stays. */
void crash_watch(void);

#endif
