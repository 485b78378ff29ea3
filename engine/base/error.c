/* Filling vka_error, and the short texts of the status codes. Vulkan's headers are not visible here, so the few
 * VkResult values that mean something to us stand in a table of their own. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct vk_result_row {
    int32_t result;
    vka_status status;
    const char *name;
} vk_result_row;

static const vk_result_row vk_results[] = {
    {-1, VKA_ERR_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {-2, VKA_ERR_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {-3, VKA_ERR_VULKAN, "VK_ERROR_INITIALIZATION_FAILED"},
    {-4, VKA_ERR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {-5, VKA_ERR_VULKAN, "VK_ERROR_MEMORY_MAP_FAILED"},
    {-6, VKA_ERR_VULKAN, "VK_ERROR_LAYER_NOT_PRESENT"},
    {-7, VKA_ERR_VULKAN, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {-8, VKA_ERR_VULKAN, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {-9, VKA_ERR_VULKAN, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {-10, VKA_ERR_DEVICE_MEMORY, "VK_ERROR_TOO_MANY_OBJECTS"},
    {-12, VKA_ERR_DEVICE_MEMORY, "VK_ERROR_FRAGMENTED_POOL"},
    {-1000069000, VKA_ERR_DEVICE_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {-1000161000, VKA_ERR_DEVICE_MEMORY, "VK_ERROR_FRAGMENTATION"},
    {2, VKA_ERR_VULKAN, "VK_TIMEOUT"},
};

const char *vka_status_text(vka_status status)
{
    switch (status) {
#define STATUS_CASE(code, value, text)                                                                                 \
    case code:                                                                                                         \
        return text;
        VKA_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

/* Cuts a UTF-8 sequence that the end of the buffer left incomplete. */
static void trim_utf8(char *text)
{
    size_t length = strlen(text);
    size_t start = length;
    size_t want;
    unsigned char lead;

    while (start > 0 && length - start < 4 && ((unsigned char)text[start - 1] & 0xC0u) == 0x80u)
        start--;
    if (start == 0)
        return;
    lead = (unsigned char)text[start - 1];
    want = lead >= 0xF0u ? 4 : lead >= 0xE0u ? 3 : lead >= 0xC0u ? 2 : 1;
    if (want > 1 && length - start + 1 < want)
        text[start - 1] = '\0';
}

static void fill(vka_error *error, vka_status status, const char *where, const char *format, va_list arguments)
{
    int length;

    error->status = status;
    error->vk_result = 0;
    error->device = -1;
    error->rank = -1;
    snprintf(error->where, sizeof(error->where), "%s", where);
    length = vsnprintf(error->message, sizeof(error->message), format, arguments);
    if (length < 0)
        error->message[0] = '\0';
    else if ((size_t)length >= sizeof(error->message))
        trim_utf8(error->message);
}

vka_status vka_fail_at(vka_error *error, vka_status status, const char *where, const char *format, ...)
{
    va_list arguments;

    if (!error)
        return status;
    va_start(arguments, format);
    fill(error, status, where, format, arguments);
    va_end(arguments);
    return status;
}

vka_status vka_fail_vk_at(vka_error *error, int32_t vk_result, int32_t device, const char *where, const char *format,
                          ...)
{
    const vk_result_row unknown = {vk_result, VKA_ERR_VULKAN, NULL};
    const vk_result_row *row = &unknown;
    va_list arguments;
    size_t length;

    for (size_t i = 0; i < sizeof(vk_results) / sizeof(vk_results[0]); i++)
        if (vk_results[i].result == vk_result)
            row = &vk_results[i];
    if (!error)
        return row->status;
    va_start(arguments, format);
    fill(error, row->status, where, format, arguments);
    va_end(arguments);
    error->vk_result = vk_result;
    error->device = device;
    length = strlen(error->message);
    if (row->name)
        snprintf(error->message + length, sizeof(error->message) - length, " (%s)", row->name);
    else
        snprintf(error->message + length, sizeof(error->message) - length, " (VkResult %d)", (int)vk_result);
    return row->status;
}
