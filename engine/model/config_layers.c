/* Which layers have a window, or are no softmax attention, and how large the window is. The rule differs by family (see
 * vka_layer_rule); layer_types, which newer files carry, must agree with it. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model/config.h"
#include "model/json.h"

typedef struct layer_keys {
    uint32_t window; /* 0: sliding_window is absent or null */
    uint32_t first;  /* max_window_layers: layers from here on have the window */
    uint32_t period;
    bool is_switched, on;
    const json_t *types; /* NULL: there are none */
} layer_keys;

static vka_status read_keys(const vka_config_source *source, layer_keys *keys)
{
    const json_t *all = source->keys;
    const vka_family *family = source->family;
    vka_status status =
        vka_json_count(all, "sliding_window", 1, UINT32_MAX, &keys->window, source->label, source->error);

    keys->period = family->layer_period;
    keys->types = vka_json_get(all, "layer_types");
    if (status == VKA_OK)
        status = vka_json_count(all, "max_window_layers", 0, UINT32_MAX, &keys->first, source->label, source->error);
    if (status == VKA_OK)
        status = vka_json_flag(all, "use_sliding_window", &keys->on, source->label, source->error);
    if (status == VKA_OK && family->period_key)
        status =
            vka_json_count(all, family->period_key, 1, VKA_MAX_LAYERS, &keys->period, source->label, source->error);
    keys->is_switched = vka_json_get(all, "use_sliding_window") != NULL;
    return status;
}

/* Early Gemma 2 files give the window under two names. */
static vka_status check_periodic(const vka_config_source *source, const layer_keys *keys)
{
    uint32_t again = keys->window;
    vka_status status = vka_config_require(source, "sliding_window");

    if (status == VKA_OK)
        status =
            vka_json_count(source->keys, "sliding_window_size", 1, UINT32_MAX, &again, source->label, source->error);
    if (status == VKA_OK && again != keys->window)
        status = vka_fail(source->error, VKA_ERR_FORMAT, "%s: sliding_window is %u and sliding_window_size %u",
                          source->label, keys->window, again);
    return status;
}

/* What cannot be, and which keys a rule needs. */
static vka_status check_rule(const vka_config_source *source, const layer_keys *keys)
{
    vka_layer_rule rule = source->family->layers;
    vka_status status = VKA_OK;

    switch (rule) {
    case VKA_LAYERS_FULL:
    case VKA_LAYERS_LINEAR:
        if (keys->window > 0 && (keys->on || !keys->is_switched))
            return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                            "%s: sliding_window is %u, but %s layers have no window", source->label, keys->window,
                            source->family->name);
        return VKA_OK;
    case VKA_LAYERS_WINDOW:
        if (keys->window > 0 && keys->is_switched && !keys->on)
            return vka_fail(source->error, VKA_ERR_FORMAT, "%s: sliding_window is %u, but use_sliding_window is false",
                            source->label, keys->window);
        return source->family->window_optional ? VKA_OK : vka_config_require(source, "sliding_window");
    case VKA_LAYERS_SWITCHED:
        if (keys->on)
            status = vka_config_require(source, "sliding_window");
        if (status == VKA_OK && keys->on && !keys->types && keys->window > 0)
            status = vka_config_require(source, "max_window_layers");
        return status;
    case VKA_LAYERS_PERIODIC:
        return check_periodic(source, keys);
    }
    return status;
}

/* From all keys but layer_types. */
static vka_layer_kind kind_by_rule(const vka_config_source *source, const layer_keys *keys, uint32_t layer)
{
    bool full = keys->period > 0 && (layer + 1) % keys->period == 0;

    switch (source->family->layers) {
    case VKA_LAYERS_FULL:
        break;
    case VKA_LAYERS_WINDOW:
        return keys->window > 0 ? VKA_LAYER_SLIDING : VKA_LAYER_FULL;
    case VKA_LAYERS_SWITCHED:
        return keys->on && keys->window > 0 && layer >= keys->first ? VKA_LAYER_SLIDING : VKA_LAYER_FULL;
    case VKA_LAYERS_PERIODIC:
        return full || (keys->window == 0 && source->family->layer_period == 0) ? VKA_LAYER_FULL : VKA_LAYER_SLIDING;
    case VKA_LAYERS_LINEAR:
        return full ? VKA_LAYER_FULL : VKA_LAYER_LINEAR;
    }
    return VKA_LAYER_FULL;
}

static bool may_vary(const vka_config_source *source)
{
    vka_layer_rule rule = source->family->layers;

    return rule == VKA_LAYERS_SWITCHED || rule == VKA_LAYERS_PERIODIC || rule == VKA_LAYERS_LINEAR;
}

static vka_status kind_by_type(const vka_config_source *source, const layer_keys *keys, uint32_t layer,
                               vka_layer_kind *kind)
{
    static const char *const names[] = {[VKA_LAYER_FULL] = "full_attention",
                                        [VKA_LAYER_SLIDING] = "sliding_attention",
                                        [VKA_LAYER_LINEAR] = "linear_attention"};
    bool linear = source->family->layers == VKA_LAYERS_LINEAR;
    const json_t *type = json_array_get(keys->types, layer);
    const char *name = json_is_string(type) ? json_string_value(type) : "";
    char text[VKA_PRINTABLE_BYTES];

    *kind = linear ? VKA_LAYER_LINEAR : VKA_LAYER_SLIDING;
    if (strcmp(name, names[VKA_LAYER_FULL]) == 0)
        *kind = VKA_LAYER_FULL;
    else if (strcmp(name, names[*kind]) != 0)
        return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                        "%s: layer_types[%u] is %s; full_attention and %s are supported", source->label, layer,
                        vka_json_describe(type, text), names[*kind]);
    if (*kind == VKA_LAYER_SLIDING &&
        (keys->window == 0 || (source->family->layers == VKA_LAYERS_SWITCHED && !keys->on)))
        return vka_fail(source->error, VKA_ERR_FORMAT,
                        "%s: layer_types[%u] is %s, but the window of this %s layer is 0", source->label, layer, name,
                        source->family->name);
    return VKA_OK;
}

static vka_status check_types(const vka_config_source *source, const layer_keys *keys, vka_layer_kind by_rule)
{
    vka_status status = VKA_OK;

    if (!json_is_array(keys->types) || json_array_size(keys->types) != source->layers)
        return vka_fail(source->error, VKA_ERR_FORMAT, "%s: layer_types is not an array of %s = %u names",
                        source->label, source->family->keys->layers, source->layers);
    for (uint32_t i = 0; i < source->layers && status == VKA_OK; i++) {
        vka_layer_kind kind;

        status = kind_by_type(source, keys, i, &kind);
        if (status == VKA_OK && !may_vary(source) && kind != by_rule)
            status = vka_fail(source->error, VKA_ERR_FORMAT,
                              "%s: layer_types[%u] is %s, but the window of this %s layer is %u", source->label, i,
                              json_string_value(json_array_get(keys->types, i)), source->family->name,
                              by_rule == VKA_LAYER_SLIDING ? keys->window : 0);
    }
    return status;
}

static vka_status read_checked(const vka_config_source *source, layer_keys *keys)
{
    vka_status status = read_keys(source, keys);

    if (status == VKA_OK)
        status = check_rule(source, keys);
    if (status == VKA_OK && keys->types)
        status = check_types(source, keys, kind_by_rule(source, keys, 0));
    return status;
}

/* The keys are checked. */
static vka_layer_kind kind_of(const vka_config_source *source, const layer_keys *keys, uint32_t layer)
{
    vka_layer_kind kind = kind_by_rule(source, keys, layer);

    if (keys->types)
        kind_by_type(source, keys, layer, &kind);
    return kind;
}

vka_status vka_config_layer_kind(const vka_config_source *source, vka_layer_kind *kind)
{
    layer_keys keys = {0};
    vka_status status;

    *kind = VKA_LAYER_FULL;
    if (source->family->not_run)
        return VKA_OK;
    status = read_checked(source, &keys);
    if (status == VKA_OK)
        *kind = kind_of(source, &keys, source->layer);
    return status;
}

vka_status vka_config_first_attention(const vka_config_source *source, uint32_t *layer)
{
    layer_keys keys = {0};
    vka_status status;

    *layer = 0;
    if (source->family->not_run)
        return VKA_OK;
    status = read_checked(source, &keys);
    if (status != VKA_OK)
        return status;
    while (*layer < source->layers && kind_of(source, &keys, *layer) == VKA_LAYER_LINEAR)
        ++*layer;
    if (*layer == source->layers)
        *layer = 0;
    return VKA_OK;
}

/* "no softmax attention", with the layers that have it. */
static vka_status refuse_linear(const vka_config_source *source)
{
    char list[160];
    vka_text out = {list, sizeof(list), 0};
    layer_keys keys = {0};
    uint32_t count = 0;
    vka_status status = read_checked(source, &keys);

    if (status != VKA_OK)
        return status;
    for (uint32_t i = 0; i < source->layers && count <= 16; i++)
        if (kind_of(source, &keys, i) == VKA_LAYER_FULL && ++count <= 16)
            vka_append(&out, "%s%u", count == 1 ? "" : ", ", i);
    vka_append(&out, "%s", count == 0 ? "none" : count > 16 ? ", ..." : "");
    return vka_fail(source->error, VKA_ERR_UNSUPPORTED,
                    "%s: layer %u is linear attention, which this release neither lays out nor runs; layers of full "
                    "attention: %s",
                    source->label, source->layer, list);
}

vka_status vka_config_window(const vka_config_source *source, vka_layer_desc *desc)
{
    if (source->kind == VKA_LAYER_LINEAR)
        return refuse_linear(source);
    if (source->kind == VKA_LAYER_SLIDING)
        return vka_config_count(source, source->keys, "sliding_window", UINT32_MAX, &desc->window);
    return VKA_OK;
}
