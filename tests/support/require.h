/* A check inside test support that fails the running test, with a formatted reason. */
#ifndef VKA_SUPPORT_REQUIRE_H
#define VKA_SUPPORT_REQUIRE_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define require(condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg(__VA_ARGS__);                                                                                     \
    } while (0)

#endif
