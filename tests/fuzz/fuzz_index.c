/* An index that is accepted names plain files only, each tensor in one of them. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_index index = {0};
    vka_error error = {0};

    if (vka_index_parse(&index, data, size, "input", &error) != VKA_OK) {
        PROMISE(!index.entries && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    PROMISE(index.file_count >= 1 && index.file_count <= index.count);
    for (size_t i = 0; i < index.file_count; i++)
        PROMISE(!strpbrk(index.files[i], "/\\") && index.files[i][0] != '.' && strlen(index.files[i]) < 256);
    for (size_t i = 0; i < index.count; i++)
        PROMISE(index.entries[i].file < index.file_count && index.entries[i].tensor);
    vka_index_free(&index);
    return 0;
}
