/* "Did you mean": likeness of names. */
#ifndef VKA_BASE_NEAR_H
#define VKA_BASE_NEAR_H

#include <stdbool.h>

/* Whether somebody who wrote `given` may have meant `name`: `name` begins with it, or few edits (of one character, or
 * of two swapped) lead from one to the other. ASCII case is ignored. */
bool vka_near(const char *given, const char *name);

#endif
