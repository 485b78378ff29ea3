/* A shared library of the system, loaded at run time. */
#ifndef VKA_BASE_LIBRARY_H
#define VKA_BASE_LIBRARY_H

#include <stdbool.h>

#include "vkattn/context.h"

typedef struct vka_library {
    void *handle; /* NULL: not loaded */
} vka_library;

/* Loads the first of `names` (ended by NULL) that can be loaded; false when none can. */
bool vka_library_open(vka_library *library, const char *const *names);
/* NULL when the library has no such function. */
vka_proc_fn vka_library_function(const vka_library *library, const char *name);
/* Accepts a library that is not loaded. */
void vka_library_close(vka_library *library);

#endif
