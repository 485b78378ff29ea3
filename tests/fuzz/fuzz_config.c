/* A configuration that is accepted describes every layer by a description that resolves to itself. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "model/config.h"
#include "model/same_desc.h"

static void check_layer(const vka_config *config, uint32_t layer)
{
    vka_layer_desc desc, again;

    PROMISE(vka_config_layer(config, VKA_BLOCK_SELF, layer, &desc, "input", NULL) == VKA_OK);
    again = desc;
    PROMISE(vka_layer_desc_resolve(&again, NULL) == VKA_OK);
    PROMISE(same_desc(&desc, &again));
    PROMISE(desc.window == 0 || desc.window == config->window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vka_config config = {0};
    vka_error error = {0};

    if (vka_config_parse(&config, data, size, "input", &error) != VKA_OK) {
        PROMISE(!config.sliding && error.status != VKA_OK && strlen(error.message) > 0);
        return 0;
    }
    PROMISE(config.layers >= 1 && config.layers <= VKA_MAX_LAYERS);
    check_layer(&config, 0);
    check_layer(&config, config.layers - 1);
    vka_config_free(&config);
    return 0;
}
