/* include/vkattn/projection.h */
#include "vkattn/projection.h"

#include "api/guard.h"
#include "base/error.h"
#include "exec/projection.h"

vka_status vka_matrix_create(vka_matrix **out, vka_context *context, uint32_t device, const vka_tensor *weights,
                             vka_dtype stored, vka_error *error)
{
    if (out == NULL || context == NULL || weights == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL",
                        out == NULL       ? "out"
                        : context == NULL ? "context"
                                          : "weights");
    }
    vka_status status = guard_enter(context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = exec_matrix_create(out, context, device, weights, stored, error);
    guard_leave(context);
    return status;
}

void vka_matrix_destroy(vka_matrix **matrix)
{
    exec_matrix_destroy(matrix);
}

vka_status vka_projection(vka_context *context, const vka_projection_params *params, vka_error *error)
{
    vka_projection_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_projection_params", error);

    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_projection(context, &taken, NULL, error);
    guard_leave(context);
    return status;
}
