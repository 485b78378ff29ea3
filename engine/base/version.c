/* The version of the library that is running, as opposed to that of the headers a host was compiled with. */
#include "vkattn/version.h"

const char *vka_version(void)
{
    return VKA_VERSION_STRING;
}
