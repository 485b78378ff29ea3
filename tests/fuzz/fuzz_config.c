/* A configuration that is accepted describes every layer by a description that resolves to itself, or says why not. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/config.h"
#include "model/same_desc.h"

static void check_layer(const vka_config *config, vka_block block, uint32_t layer)
{
    vka_layer_desc desc, again;
    vka_error error = {0};

    if (vka_config_layer(config, block, layer, &desc, "input", &error) != VKA_OK) {
        PROMISE(error.status != VKA_OK && strlen(error.message) > 0);
        return;
    }
    again = desc;
    PROMISE(vka_layer_desc_resolve(&again, NULL) == VKA_OK);
    PROMISE(same_desc(&desc, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_config config = {0};
    vka_error error = {0};

    if (vka_config_parse(&config, data, size, "input", &error) != VKA_OK) {
        PROMISE(!config.root && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    PROMISE(config.layers >= 1 && config.layers <= VKA_MAX_LAYERS);
    for (int block = 0; block < VKA_BLOCKS; block++) {
        uint32_t layers = vka_config_layers(&config, (vka_block)block);

        PROMISE(layers <= VKA_MAX_LAYERS);
        check_layer(&config, (vka_block)block, 0);
        check_layer(&config, (vka_block)block, layers > 0 ? layers - 1 : 0);
    }
    vka_config_free(&config);
    return 0;
}
