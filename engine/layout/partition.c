/* The rank table. Heads are dealt out in contiguous blocks: with k % tp == 0 a rank owns k / tp KV heads and all query
 * heads of their groups; with tp % k == 0 the r = tp / k ranks from i*r on hold KV head i, and each takes one r-th of
 * its group. The ranks of every (c, d) hold the same heads. */
#include "base/error.h"
#include "layout/explain.h"
#include "layout/judge.h"

static vka_rank head_shard(const vka_layer_desc *desc, uint32_t tp, uint32_t t)
{
    vka_rank rank = {.t = t, .q_count = desc->heads / tp};
    uint32_t replicas = tp > desc->kv_heads ? tp / desc->kv_heads : 1;

    rank.q_begin = t * rank.q_count;
    rank.kv_count = replicas > 1 ? 1 : desc->kv_heads / tp;
    rank.kv_begin = replicas > 1 ? t / replicas : t * rank.kv_count;
    rank.replica = t % replicas;
    rank.replicas = replicas;
    return rank;
}

vka_status vka_partition(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy, vka_rank *ranks,
                         uint32_t capacity, vka_error *error)
{
    vka_verdict verdict;
    vka_status status = vka_layout_judge(desc, grid, policy, &verdict, error);
    uint32_t count = vka_grid_ranks(grid);

    if (status != VKA_OK)
        return status;
    grid = vka_grid_normal(grid);
    if (verdict.rule != VKA_RULE_NONE)
        return vka_layout_refuse(desc, grid, vka_kv_policy_of(desc, policy), &verdict, error);
    if (!ranks || capacity < count)
        return vka_fail(error, VKA_ERR_ARGUMENT, "room for %u ranks; the grid has %u (see vka_grid_ranks)",
                        ranks ? capacity : 0, count);
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = head_shard(desc, grid.tp, i % grid.tp);
        ranks[i].rank = i;
        ranks[i].c = i / grid.tp % grid.cp;
        ranks[i].d = i / grid.tp / grid.cp;
    }
    return VKA_OK;
}
