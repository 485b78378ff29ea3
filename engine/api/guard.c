/* See guard.h. */
#include "api/guard.h"

#include <string.h>

#include "base/error.h"

vka_status guard_params(void *out, size_t size, const void *params, const char *type, vka_error *error)
{
    uint32_t given = 0;

    if (params == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", type);
    }
    memcpy(&given, params, sizeof(given));
    if (given < sizeof(given)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "struct_size of %s is %u: set it to sizeof(%s)", type, given, type);
    }
    const unsigned char *bytes = params;
    for (size_t i = size; i < given; i++) {
        if (bytes[i] != 0) {
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "%s has %u bytes and sets fields that this library (%zu bytes) does not know: use the "
                            "headers of the library that runs",
                            type, given, size);
        }
    }
    memset(out, 0, size);
    memcpy(out, params, given < size ? given : size);
    const uint32_t known = (uint32_t)size;
    memcpy(out, &known, sizeof(known));
    return VKA_OK;
}

vka_status guard_enter(vka_context *context, vka_error *error)
{
    if (context == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "context is NULL");
    }
    if (atomic_flag_test_and_set_explicit(&context->busy, memory_order_acquire)) {
        return vka_fail(error, VKA_ERR_BUSY,
                        "the context is in use by another thread: one thread at a time, or a context for each");
    }
    return VKA_OK;
}

void guard_leave(vka_context *context)
{
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
}
