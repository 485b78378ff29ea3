/* Status codes and the caller-owned error record.
 *
 * Every fallible function returns a vka_status and takes an optional `vka_error *` as its last parameter. The first
 * function that decides an error fills the record; callers pass it on unchanged. On failure no output is set. */
#ifndef VKATTN_STATUS_H
#define VKATTN_STATUS_H

#include <stdint.h>

#include "vkattn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, value, text): the one list of status codes. Values are stable. */
#define VKA_STATUS_LIST(X)                                                                  \
    X(VKA_OK, 0, "ok")                                                                      \
    X(VKA_ERR_ARGUMENT, 1, "invalid argument")                                              \
    X(VKA_ERR_LAYOUT, 2, "layout refused")                                                  \
    X(VKA_ERR_UNSUPPORTED, 3, "not supported")                                              \
    X(VKA_ERR_FORMAT, 4, "malformed file")                                                  \
    X(VKA_ERR_IO, 5, "input/output error")                                                  \
    X(VKA_ERR_HOST_MEMORY, 6, "out of host memory")                                         \
    X(VKA_ERR_DEVICE_MEMORY, 7, "out of device memory")                                     \
    X(VKA_ERR_LIMIT, 8, "device limit exceeded")                                            \
    X(VKA_ERR_CACHE_FULL, 9, "KV cache is full")                                            \
    X(VKA_ERR_BUSY, 10, "object is in use by another thread")                               \
    X(VKA_ERR_NO_DEVICE, 11, "no Vulkan device")                                            \
    X(VKA_ERR_DEVICE_LOST, 12, "device lost")                                               \
    X(VKA_ERR_VULKAN, 13, "Vulkan call failed")

typedef enum vka_status {
#define VKA_STATUS_ENUM(code, value, text) code = value,
    VKA_STATUS_LIST(VKA_STATUS_ENUM)
#undef VKA_STATUS_ENUM
} vka_status;

/* Where and why something failed. Owned by the caller; zero-initialise it or not, it is only written on failure. */
typedef struct vka_error {
    vka_status status;
    int32_t vk_result;  /* VkResult of the failing call, 0 when no Vulkan call failed */
    int32_t device;     /* index in the context's device list, -1 when no device is meant */
    int32_t rank;       /* logical rank, -1 when no rank is meant */
    char where[64];     /* the function that decided */
    char message[3072]; /* one or more sentences, NUL-terminated UTF-8, no trailing newline */
} vka_error;

/* The short text of a code, e.g. "layout refused"; "unknown status" for a value not in the list. Never NULL. */
VKA_API const char *vka_status_text(vka_status status);

#ifdef __cplusplus
}
#endif

#endif
