/* Library version. The SOVERSION is VKA_VERSION_MAJOR while it is > 0, else "0.MINOR". */
#ifndef VKATTN_VERSION_H
#define VKATTN_VERSION_H

#include "vkattn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKA_VERSION_MAJOR 0
#define VKA_VERSION_MINOR 1
#define VKA_VERSION_PATCH 0
#define VKA_VERSION_STRING "0.1.0"

VKA_API const char *vka_version(void); /* of the library that is running */

#ifdef __cplusplus
}
#endif

#endif
