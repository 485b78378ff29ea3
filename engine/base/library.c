/* dlopen and friends. Symbols stay local, so that what is loaded cannot meet the host's own symbols. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool vka_library_open(vka_library *library, const char *const *names)
{
    for (void *handle; *names; names++) {
        handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (handle) {
            library->handle = handle;
            return true;
        }
    }
    return false;
}

vka_proc_fn vka_library_function(const vka_library *library, const char *name)
{
    void *address = dlsym(library->handle, name);
    vka_proc_fn function;

    /* ISO C has no cast between object and function pointers; POSIX promises that they look the same. */
    memcpy(&function, &address, sizeof(function));
    return function;
}

void vka_library_close(vka_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    library->handle = NULL;
}
