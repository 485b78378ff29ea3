/* A GGUF file that is accepted has tensors that can be found by name and read to their last byte, and a configuration
 * that describes its layers or says why not. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/gguf_config.h"

static void check_tensor(const vka_gguf *file, const vka_gguf_tensor *found)
{
    const unsigned char *bytes = found->tensor.data;
    uint64_t elements = 1;
    unsigned sum = 0;

    PROMISE(vka_gguf_find(file, found->tensor.name) == found);
    PROMISE(found->tensor.dims >= 1 && found->tensor.dims <= 4);
    for (uint32_t i = 0; found->format && i < found->tensor.dims; i++)
        elements *= found->tensor.shape[i];
    for (uint64_t i = 0; found->format && i < elements / found->format->elements * found->format->bytes; i++)
        sum += bytes[i];
    PROMISE(sum != 1u << 31); /* so that the sum, and with it the reads, cannot be left out */
}

static void check_config(const vka_gguf *file)
{
    vka_config config = {0};
    vka_layer_desc desc;
    vka_error error = {0};

    if (vka_gguf_config(&config, file, "input", &error) != VKA_OK) {
        PROMISE(!config.root && error.status != VKA_OK && strlen(error.message) > 0);
        return;
    }
    PROMISE(config.layers >= 1 && config.layers <= VKA_MAX_LAYERS);
    if (vka_config_layer(&config, VKA_BLOCK_SELF, config.layers - 1, &desc, "input", &error) != VKA_OK)
        PROMISE(error.status != VKA_OK && strlen(error.message) > 0);
    vka_config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_gguf *file = NULL;
    vka_error error = {0};

    if (vka_gguf_parse(&file, data, size, "input", &error) != VKA_OK) {
        PROMISE(!file && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    for (size_t i = 0; i < vka_gguf_count(file); i++)
        check_tensor(file, vka_gguf_at(file, i));
    check_config(file);
    vka_gguf_close(&file);
    return 0;
}
