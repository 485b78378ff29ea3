/* include/vkattn/forward.h */
#include "vkattn/forward.h"

#include "api/guard.h"
#include "base/error.h"
#include "exec/forward.h"

const char *vka_stage_name(vka_stage stage)
{
    static const char *const names[VKA_STAGE_COUNT] = {
        [VKA_STAGE_UPLOAD] = "upload",     [VKA_STAGE_QKV] = "qkv",
        [VKA_STAGE_EPILOGUE] = "epilogue", [VKA_STAGE_ATTENTION] = "attention",
        [VKA_STAGE_OUTPUT] = "output",     [VKA_STAGE_DOWNLOAD] = "download",
        [VKA_STAGE_ADD] = "add",           [VKA_STAGE_RETURN] = "return",
    };

    return stage >= 0 && stage < VKA_STAGE_COUNT ? names[stage] : "unknown";
}

static vka_status check(const vka_forward_params *params, vka_error *error)
{
    if (params->layer == NULL || params->cache == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s of vka_forward_params is NULL",
                        params->layer == NULL ? "layer" : "cache");
    }
    if (params->batch.count == 0 || params->batch.entries == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "the batch is empty: expected at least one sequence with new tokens");
    }
    if ((params->input.data != NULL) == (params->input_buffers != NULL)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "set exactly one of input and input_buffers");
    }
    if (params->output.data == NULL && params->output_buffers == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "no output is wanted: set output, output_buffers or both");
    }
    if (params->position_rows != (params->positions == NULL ? 0u : 1u) &&
        (params->positions == NULL || params->position_rows != 3)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "position_rows is %u, expected %s", params->position_rows,
                        params->positions != NULL ? "1 or 3" : "0 without positions");
    }
    if (params->timing != NULL && params->timing->devices == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "timing->devices is NULL, expected room for every device");
    }
    return VKA_OK;
}

vka_status vka_forward(const vka_forward_params *params, vka_error *error)
{
    vka_forward_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_forward_params", error);

    if (status == VKA_OK) {
        status = check(&taken, error);
    }
    if (status == VKA_OK) {
        status = guard_enter(taken.layer->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_forward(&taken, error);
    guard_leave(taken.layer->context);
    return status;
}

vka_status vka_forward_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error)
{
    if (layer == NULL || cache == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", layer == NULL ? "layer" : "cache");
    }
    vka_status status = guard_enter(layer->context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = exec_prewarm(layer, cache, error);
    guard_leave(layer->context);
    return status;
}
