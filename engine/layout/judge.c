/* The integral-layout rule, and which sizes pass it. With q query heads, k KV heads and tp ranks a layout is accepted
 * iff q % k == 0, q % tp == 0, and k % tp == 0 or (policy replicate) tp % k == 0. */
#include "layout/judge.h"
#include "base/error.h"

_Static_assert(VKA_MAX_HEADS <= VKA_MAX_RANKS, "every tp that divides the heads must be a possible number of ranks");

const char *vka_layout_rule_name(vka_layout_rule rule)
{
    switch (rule) {
    case VKA_RULE_NONE:
        break;
    case VKA_RULE_GROUP:
        return "group";
    case VKA_RULE_QUERY_HEADS:
        return "query_heads";
    case VKA_RULE_KV_HEADS:
        return "kv_heads";
    case VKA_RULE_KV_REPLICATED:
        return "kv_replicated";
    case VKA_RULE_GRID:
        return "grid";
    }
    return "none";
}

vka_grid vka_grid_normal(vka_grid grid)
{
    grid.tp = grid.tp ? grid.tp : 1;
    grid.cp = grid.cp ? grid.cp : 1;
    grid.dp = grid.dp ? grid.dp : 1;
    return grid;
}

uint32_t vka_grid_ranks(vka_grid grid)
{
    uint64_t ranks;

    grid = vka_grid_normal(grid);
    ranks = (uint64_t)grid.tp * grid.cp; /* two factors of 32 bits fit */
    if (ranks > VKA_MAX_RANKS || ranks * grid.dp > VKA_MAX_RANKS)
        return 0;
    return (uint32_t)(ranks * grid.dp);
}

vka_kv_policy vka_kv_policy_of(const vka_layer_desc *desc, vka_kv_policy policy)
{
    return policy == VKA_KV_DEFAULT ? desc->kv_policy : policy;
}

static vka_layout_rule failed_rule(const vka_layer_desc *desc, uint32_t tp, vka_kv_policy policy)
{
    if (desc->heads % desc->kv_heads != 0)
        return VKA_RULE_GROUP;
    if (desc->heads % tp != 0)
        return VKA_RULE_QUERY_HEADS;
    if (desc->kv_heads % tp == 0)
        return VKA_RULE_NONE;
    if (tp % desc->kv_heads != 0)
        return VKA_RULE_KV_HEADS;
    return policy == VKA_KV_STRICT ? VKA_RULE_KV_REPLICATED : VKA_RULE_NONE;
}

/* No number up to VKA_MAX_HEADS has more than 48 divisors (3360 has), so the list always has room. */
static uint32_t list_valid(const vka_layer_desc *desc, vka_kv_policy policy, uint32_t valid[VKA_MAX_VALID_TP])
{
    uint32_t count = 0;

    for (uint32_t tp = 1; tp <= desc->heads && count < VKA_MAX_VALID_TP; tp++)
        if (failed_rule(desc, tp, policy) == VKA_RULE_NONE)
            valid[count++] = tp;
    return count;
}

vka_status vka_layout_judge(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy, vka_verdict *verdict,
                            vka_error *error)
{
    vka_layer_desc layer;
    vka_verdict answer = {0};
    vka_status status;

    if (!desc || !verdict)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", desc ? "verdict" : "desc");
    if (policy != VKA_KV_DEFAULT && policy != VKA_KV_REPLICATE && policy != VKA_KV_STRICT)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "KV policy is %d; expected VKA_KV_DEFAULT (%d), VKA_KV_REPLICATE (%d) or VKA_KV_STRICT (%d)",
                        (int)policy, (int)VKA_KV_DEFAULT, (int)VKA_KV_REPLICATE, (int)VKA_KV_STRICT);
    layer = *desc;
    status = vka_layer_desc_resolve(&layer, error);
    if (status != VKA_OK)
        return status;
    grid = vka_grid_normal(grid);
    answer.rule = failed_rule(&layer, grid.tp, vka_kv_policy_of(&layer, policy));
    if (answer.rule == VKA_RULE_NONE && vka_grid_ranks(grid) == 0)
        answer.rule = VKA_RULE_GRID;
    if (answer.rule == VKA_RULE_NONE)
        answer.replicas = grid.tp > layer.kv_heads ? grid.tp / layer.kv_heads : 1;
    answer.valid_strict_count = list_valid(&layer, VKA_KV_STRICT, answer.valid_strict);
    answer.valid_replicate_count = list_valid(&layer, VKA_KV_REPLICATE, answer.valid_replicate);
    *verdict = answer;
    return VKA_OK;
}
