/* Inside vk/: the container of a pipeline cache file. A file is used only when every byte of it is as it was written,
 * by this library, for the same driver, device and shader: drivers trust what they are given. No Vulkan here. */
#ifndef VKA_VK_CACHE_FILE_H
#define VKA_VK_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Native byte order; the key follows, then the data. */
typedef struct gpu_cache_header {
    char magic[8];
    uint64_t key_bytes;
    uint64_t data_bytes;
    uint64_t hash; /* of key and data */
} gpu_cache_header;

gpu_cache_header gpu_cache_file_header(const char *key, const void *data, size_t data_bytes);
/* True, and where the data stands, when `file` is whole and made for `key`. */
bool gpu_cache_file_read(const void *file, size_t size, const char *key, const void **data, size_t *data_bytes);

#endif
