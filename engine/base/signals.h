/* Signals of a crash, for programs: the library itself never touches a signal. */
#ifndef VKA_BASE_SIGNALS_H
#define VKA_BASE_SIGNALS_H

/* Has `handler` called on every signal that a crash raises. A handler that is already there, as in sanitizer builds,
 * stays. */
void vka_watch_crashes(void (*handler)(int signal_number));

#endif
