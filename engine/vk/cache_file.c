/* The container of a pipeline cache file. */
#include "vk/cache_file.h"

#include <string.h>

#include "base/hash.h"

static const char magic[8] = "vkaPC1\r\n";

gpu_cache_header gpu_cache_file_header(const char *key, const void *data, size_t data_bytes)
{
    gpu_cache_header header = {.key_bytes = strlen(key), .data_bytes = data_bytes};

    memcpy(header.magic, magic, sizeof(magic));
    header.hash = vka_hash(vka_hash(VKA_HASH_START, key, strlen(key)), data, data_bytes);
    return header;
}

bool gpu_cache_file_read(const void *file, size_t size, const char *key, const void **data, size_t *data_bytes)
{
    const unsigned char *bytes = file;
    size_t key_bytes = strlen(key);
    gpu_cache_header header;
    gpu_cache_header expected;

    if (size < sizeof(header) || size - sizeof(header) < key_bytes)
        return false;
    memcpy(&header, bytes, sizeof(header));
    bytes += sizeof(header);
    size -= sizeof(header) + key_bytes;
    if (memcmp(bytes, key, key_bytes) != 0)
        return false;
    expected = gpu_cache_file_header(key, bytes + key_bytes, size);
    if (memcmp(&header, &expected, sizeof(header)) != 0)
        return false;
    *data = bytes + key_bytes;
    *data_bytes = size;
    return true;
}
