/* A tensor file that is accepted has tensors that can be found by name and read to their last byte; one that is refused
 * leaves nothing behind but a message. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/safetensors.h"

static unsigned sum_bytes(const vka_named_tensor *tensor)
{
    const unsigned char *bytes = tensor->data;
    size_t size = vka_dtype_size(tensor->dtype);
    unsigned sum = 0;

    for (uint32_t i = 0; i < tensor->dims; i++)
        size *= (size_t)tensor->shape[i];
    for (size_t i = 0; i < size; i++)
        sum += bytes[i];
    return sum;
}

static void check_tensor(const vka_tensor_file *file, const vka_named_tensor *tensor)
{
    vka_tensor matrix;

    PROMISE(tensor->dims <= 8);
    PROMISE(strlen(vka_tensor_type_name(tensor)) > 0);
    PROMISE(vka_tensor_file_find(file, tensor->name) == tensor);
    PROMISE(sum_bytes(tensor) != 1u << 31); /* so that the sum, and with it the reads, cannot be left out */
    if (vka_tensor_as_matrix(&matrix, tensor, "input", NULL) == VKA_OK)
        PROMISE(matrix.data == tensor->data && vka_dtype_size(matrix.dtype) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_tensor_file *file = NULL;
    vka_error error = {0};

    if (vka_tensor_file_parse(&file, data, size, "input", &error) != VKA_OK) {
        PROMISE(!file && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    for (size_t i = 0; i < vka_tensor_file_count(file); i++)
        check_tensor(file, vka_tensor_file_at(file, i));
    vka_tensor_file_close(&file);
    return 0;
}
