/* Sliding windows: a window size, and which layers have it. The rule differs by family (see vka_window_rule);
 * layer_types, which newer files carry, must agree with it. */
#include "model/config.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/json.h"

typedef struct window_keys {
    uint32_t size;  /* 0: sliding_window is absent or null */
    uint32_t first; /* max_window_layers: layers from here on have the window */
    bool is_switched, on;
} window_keys;

static vka_status read_keys(const vka_config_source *source, window_keys *keys)
{
    vka_status status =
        vka_json_count(source->root, "sliding_window", 1, UINT32_MAX, &keys->size, source->label, source->error);

    if (status == VKA_OK)
        status = vka_json_count(source->root, "max_window_layers", 0, UINT32_MAX, &keys->first, source->label,
                                source->error);
    if (status == VKA_OK)
        status = vka_json_flag(source->root, "use_sliding_window", &keys->on, source->label, source->error);
    keys->is_switched = vka_json_get(source->root, "use_sliding_window") != NULL;
    return status;
}

/* Sets config->window and the layers that have it, from all keys but layer_types. */
static vka_status apply_rule(const vka_config_source *source, const window_keys *keys, vka_config *config)
{
    vka_window_rule rule = config->family->window;
    bool by_layer = rule == VKA_WINDOW_LAYERS;
    bool has_types = vka_json_get(source->root, "layer_types") != NULL;
    vka_status status = VKA_OK;

    if (rule == VKA_WINDOW_NEVER && keys->size > 0 && (keys->on || !keys->is_switched))
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED, "%s: sliding_window is %u, but %s layers have no window",
                        source->label, keys->size, config->family->name);
    if (rule == VKA_WINDOW_ALL && keys->size > 0 && keys->is_switched && !keys->on)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: sliding_window is %u, but use_sliding_window is false",
                        source->label, keys->size);
    if (rule == VKA_WINDOW_NEVER || (by_layer && !keys->on))
        return VKA_OK;
    status = vka_config_require(source, "sliding_window");
    if (status == VKA_OK && by_layer && !has_types && keys->size > 0)
        status = vka_config_require(source, "max_window_layers");
    if (status != VKA_OK)
        return status;
    config->window = keys->size;
    for (uint32_t i = 0; i < config->layers; i++)
        config->sliding[i] = keys->size > 0 && (!by_layer || i >= keys->first);
    return VKA_OK;
}

/* "full_attention" or "sliding_attention" for each layer. */
static vka_status apply_layer_types(const vka_config_source *source, const json_t *types, vka_config *config)
{
    char text[VKA_PRINTABLE_BYTES];

    if (!json_is_array(types) || json_array_size(types) != config->layers)
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: layer_types is not an array of num_hidden_layers = %u names", source->label,
                        config->layers);
    for (uint32_t i = 0; i < config->layers; i++) {
        const json_t *type = json_array_get(types, i);
        const char *name = json_is_string(type) ? json_string_value(type) : "";
        bool is_sliding = strcmp(name, "sliding_attention") == 0;

        if (!is_sliding && strcmp(name, "full_attention") != 0)
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: layer_types[%u] is %s; full_attention and sliding_attention are supported",
                            source->label, i, vka_json_describe(type, text));
        if ((is_sliding && config->window == 0) ||
            (config->family->window != VKA_WINDOW_LAYERS && is_sliding != config->sliding[i]))
            return vka_fail(source->error, VKA_ERR_FORMAT,
                            "%s: layer_types[%u] is %s, but the window of this %s layer is %u", source->label, i, name,
                            config->family->name, config->sliding[i] ? config->window : 0);
        config->sliding[i] = is_sliding;
    }
    return VKA_OK;
}

vka_status vka_config_window(const vka_config_source *source, vka_config *config)
{
    const json_t *types = vka_json_get(source->root, "layer_types");
    window_keys keys = {0};
    vka_status status = read_keys(source, &keys);

    if (status != VKA_OK)
        return status;
    config->sliding = vka_alloc(NULL, config->layers, sizeof(bool));
    if (!config->sliding)
        return vka_fail(source->error, VKA_ERR_HOST_MEMORY, "%s: no memory for %u layers", source->label,
                        config->layers);
    status = apply_rule(source, &keys, config);
    if (status == VKA_OK && types)
        status = apply_layer_types(source, types, config);
    return status;
}
