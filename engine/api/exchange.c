/* include/vkattn/exchange.h */
#include "vkattn/exchange.h"

#include "api/guard.h"
#include "exec/all_reduce.h"

vka_status vka_all_reduce(vka_context *context, const vka_all_reduce_params *params, vka_error *error)
{
    vka_all_reduce_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_all_reduce_params", error);

    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_all_reduce(context, &taken, error);
    guard_leave(context);
    return status;
}
