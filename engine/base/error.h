/* Filling the caller-owned vka_error. The first function that decides an error fills it; others pass it on. */
#ifndef VKA_BASE_ERROR_H
#define VKA_BASE_ERROR_H

#include "vkattn/status.h"

/* Fills *error (when not NULL) with device = rank = -1, vk_result = 0 and returns `status`. */
vka_status vka_fail_at(vka_error *error, vka_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define vka_fail(error, status, ...) vka_fail_at((error), (status), __func__, __VA_ARGS__)

/* The same for a failed Vulkan call: maps the VkResult to a status (device lost, out of memory, else VKA_ERR_VULKAN)
 * and keeps its number. `device` is the position in the context's list or -1. */
vka_status vka_fail_vk_at(vka_error *error, int32_t vk_result, int32_t device, const char *where, const char *format,
                          ...) __attribute__((format(printf, 5, 6)));

#define vka_fail_vk(error, result, device, ...) vka_fail_vk_at((error), (result), (device), __func__, __VA_ARGS__)

#endif
