/* include/vkattn/layer.h */
#include "vkattn/layer.h"

#include "api/guard.h"
#include "base/error.h"
#include "exec/layer.h"

static vka_status check(vka_layer *const *out, const vka_context *context, const vka_layer_params *params,
                        vka_error *error)
{
    if (out == NULL || context == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out == NULL ? "out" : "context");
    }
    if (params->desc == NULL || params->weights == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s of vka_layer_params is NULL",
                        params->desc == NULL ? "desc" : "weights");
    }
    return VKA_OK;
}

vka_status vka_layer_create(vka_layer **out, vka_context *context, const vka_layer_params *params, vka_error *error)
{
    vka_layer_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_layer_params", error);

    if (status == VKA_OK) {
        status = check(out, context, &taken, error);
    }
    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_layer_create(out, context, &taken, error);
    guard_leave(context);
    return status;
}

void vka_layer_destroy(vka_layer **layer)
{
    exec_layer_destroy(layer);
}

const vka_layer_desc *vka_layer_get_desc(const vka_layer *layer)
{
    return layer != NULL ? &layer->desc : NULL;
}

const vka_rank *vka_layer_ranks(const vka_layer *layer, uint32_t *count)
{
    if (count != NULL) {
        *count = layer != NULL ? layer->rank_count : 0;
    }
    return layer != NULL ? layer->ranks : NULL;
}

vka_dtype vka_layer_weight_dtype(const vka_layer *layer)
{
    return layer != NULL ? layer->weight_dtype : VKA_DTYPE_DEFAULT;
}
