/* Symbol visibility. VKA_SHARED is defined by users of the shared library (the CMake package and pkg-config do it
 * where a platform needs it); VKA_BUILD while the library itself is compiled. */
#ifndef VKATTN_EXPORT_H
#define VKATTN_EXPORT_H

#if defined(__GNUC__) && defined(VKA_BUILD)
#define VKA_API __attribute__((visibility("default")))
#else
#define VKA_API
#endif

#endif
