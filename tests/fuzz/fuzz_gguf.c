/* A GGUF file that is accepted has values and tensors that can be found by name and read to their last byte; one that
 * is refused leaves nothing behind but a message. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/gguf.h"

static void check_value(const vka_gguf *file, const vka_gguf_value *value)
{
    uint32_t count = 5;
    double number = 5;
    bool flag = true;
    const char *text = NULL;
    size_t length = 0, sum = 0;

    PROMISE(vka_gguf_find(file, value->key) == value);
    if (vka_gguf_count(file, value->key, value->count - 1, 1, 9, &count, NULL) == VKA_OK)
        PROMISE(count >= 1 && count <= 9);
    PROMISE(vka_gguf_number(file, value->key, &number, NULL) != VKA_OK || number == number);
    PROMISE(vka_gguf_flag(file, value->key, 0, &flag, NULL) != VKA_OK || !value->is_array || value->count > 0);
    if (vka_gguf_text(file, value->key, &text, &length, NULL) == VKA_OK)
        for (size_t i = 0; i < length; i++)
            sum += (unsigned char)text[i];
    PROMISE(sum != SIZE_MAX); /* so that the sum, and with it the reads, cannot be left out */
}

static void check_tensor(const vka_gguf *file, const vka_gguf_tensor *tensor)
{
    const unsigned char *bytes = tensor->data;
    float decoded[256];
    size_t sum = 0;

    PROMISE(vka_gguf_find_tensor(file, tensor->name) == tensor);
    PROMISE(tensor->dims >= 1 && tensor->dims <= 4);
    for (uint64_t i = 0; i < tensor->bytes; i++)
        sum += bytes[i];
    PROMISE(sum != SIZE_MAX);
    if (tensor->type && tensor->type->decode && tensor->bytes > 0)
        vka_dequantise(decoded, tensor->type, tensor->data, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_gguf *file = NULL;
    vka_error error = {0};

    if (vka_gguf_parse(&file, data, size, "input", &error) != VKA_OK) {
        PROMISE(!file && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    for (size_t i = 0; vka_gguf_value_at(file, i); i++)
        check_value(file, vka_gguf_value_at(file, i));
    for (size_t i = 0; vka_gguf_tensor_at(file, i); i++)
        check_tensor(file, vka_gguf_tensor_at(file, i));
    vka_gguf_close(&file);
    return 0;
}
