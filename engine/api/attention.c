/* include/vkattn/attention.h */
#include "vkattn/attention.h"

#include "api/guard.h"
#include "exec/attention.h"

vka_status vka_attention(vka_context *context, const vka_attention_params *params, vka_error *error)
{
    vka_attention_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_attention_params", error);

    if (status == VKA_OK) {
        status = guard_enter(context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_attention(context, &taken, error);
    guard_leave(context);
    return status;
}
