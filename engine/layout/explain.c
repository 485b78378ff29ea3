/* What a refused user reads: the numbers, the rule that failed, why it matters, the valid sizes, and the ways out that
 * fit these numbers. One line per part, so that a terminal and a log both show it well. */
#include "layout/explain.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

static void append_list(vka_text *out, const uint32_t *numbers, uint32_t count)
{
    if (count == 0)
        vka_append(out, "none");
    for (uint32_t i = 0; i < count; i++)
        vka_append(out, i == 0 ? "%u" : ", %u", numbers[i]);
}

static void append_rule(vka_text *out, const vka_layer_desc *desc, vka_grid grid, vka_layout_rule rule)
{
    uint32_t q = desc->heads, k = desc->kv_heads, tp = grid.tp;

    vka_append(out, "\nRule: ");
    switch (rule) {
    case VKA_RULE_NONE:
        break;
    case VKA_RULE_GROUP:
        vka_append(out, "heads must be divisible by kv_heads, but %u %% %u = %u.", q, k, q % k);
        vka_append(out, "\nWhy: heads / kv_heads query heads share one KV head; rounding that number would pair query "
                        "heads with KV heads they were not trained with.");
        break;
    case VKA_RULE_QUERY_HEADS:
        vka_append(out, "heads must be divisible by tp, but %u %% %u = %u.", q, tp, q % tp);
        vka_append(out,
                   "\nWhy: every rank computes the same whole number of query heads, and %u / %u is none; a head cut "
                   "between ranks would lose part of its dot products before the softmax.",
                   q, tp);
        break;
    case VKA_RULE_KV_HEADS:
        vka_append(out, "kv_heads must be divisible by tp, or tp by kv_heads, but %u %% %u = %u and %u %% %u = %u.", k,
                   tp, k % tp, tp, k, tp % k);
        vka_append(out,
                   "\nWhy: a rank holds whole KV heads, or a KV head lives whole on several ranks; here some KV head "
                   "would be cut, or its query heads would land on a rank that does not hold it.");
        break;
    case VKA_RULE_KV_REPLICATED:
        vka_append(out, "policy strict needs kv_heads divisible by tp, but %u %% %u = %u.", k, tp, k % tp);
        vka_append(
            out,
            "\nWhy: there are fewer KV heads than ranks, so each would have to live on %u ranks, and strict allows "
            "no copies (they multiply the KV cache by %u).",
            tp / k, tp / k);
        break;
    case VKA_RULE_GRID:
        vka_append(out, "tp * cp * dp must not exceed %u, but it is %u * %u * %u.", VKA_MAX_RANKS, tp, grid.cp,
                   grid.dp);
        vka_append(out, "\nWhy: a rank table has at most %u entries, so that every size below is safe to compute with.",
                   VKA_MAX_RANKS);
        break;
    }
}

/* A family that is strict by itself: no policy is a way out. */
static void append_family(vka_text *out, const vka_layer_desc *desc, vka_kv_policy policy, const vka_verdict *verdict)
{
    if (desc->kv_policy != VKA_KV_STRICT || policy != VKA_KV_STRICT || verdict->rule == VKA_RULE_GROUP)
        return;
    vka_append(out,
               "\nThis family never replicates KV heads: tp must divide kv_heads = %u and heads = %u, that is, be "
               "one of ",
               desc->kv_heads, desc->heads);
    append_list(out, verdict->valid_strict, verdict->valid_strict_count);
    vka_append(out, ".");
}

/* The nearest valid sizes round tp: *below and *above, 0 where there is none. */
static void neighbours(const uint32_t *valid, uint32_t count, uint32_t tp, uint32_t *below, uint32_t *above)
{
    *below = 0;
    *above = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (valid[i] < tp)
            *below = valid[i];
        else if (valid[i] > tp && *above == 0)
            *above = valid[i];
    }
}

/* The largest valid size that divides tp: with it, cp or dp can use the same number of ranks. Never 0: 1 is valid. */
static uint32_t largest_divisor(const uint32_t *valid, uint32_t count, uint32_t tp)
{
    uint32_t best = 1;

    for (uint32_t i = 0; i < count; i++)
        if (tp % valid[i] == 0)
            best = valid[i];
    return best;
}

static void append_other_sizes(vka_text *out, const uint32_t *valid, uint32_t count, vka_grid grid)
{
    uint32_t ranks = vka_grid_ranks(grid);
    uint32_t below, above, shard, times;

    neighbours(valid, count, grid.tp, &below, &above);
    if (below)
        vka_append(out, "\n- fewer ranks: tp=%u (a device without a rank stays idle).", below);
    if (above)
        vka_append(out,
                   "\n- several ranks per device: tp=%u also runs on fewer devices than ranks, placed for instance "
                   "0*%u,1*%u; what the ranks of one device share is stored once.",
                   above, above - above / 2, above / 2);
    if (ranks == 0)
        return;
    shard = largest_divisor(valid, count, grid.tp);
    times = grid.tp / shard;
    vka_append(out, "\n- dp: tp=%u with dp=%u is also %u ranks; the sequences are shared out instead of the heads.",
               shard, grid.dp * times, ranks);
    vka_append(
        out,
        "\n- cp: tp=%u with cp=%u is also %u ranks; the KV sequence is split instead of the heads, so the number "
        "of KV heads is no limit.",
        shard, grid.cp * times, ranks);
    vka_append(out, "\nThis release lays out cp and dp, and runs tp.");
}

static void append_ways_out(vka_text *out, const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy,
                            const vka_verdict *verdict)
{
    bool strict = policy == VKA_KV_STRICT;
    const uint32_t *valid = strict ? verdict->valid_strict : verdict->valid_replicate;
    uint32_t count = strict ? verdict->valid_strict_count : verdict->valid_replicate_count;
    uint32_t below = desc->kv_heads, above = desc->kv_heads;

    vka_append(out, "\nWhat works instead:");
    if (verdict->rule == VKA_RULE_GROUP) {
        while (below > 1 && desc->heads % below != 0)
            below--;
        while (above < desc->heads && desc->heads % above != 0)
            above++;
        vka_append(out, "\n- no tp, cp, dp or placement: every one of them needs whole groups.");
        vka_append(out, "\n- check heads and kv_heads against the shapes of the weights");
        if (below < above && desc->heads % above == 0)
            vka_append(out, "; the nearest kv_heads for %u query heads are %u and %u", desc->heads, below, above);
        vka_append(out, ".");
        return;
    }
    if (verdict->rule == VKA_RULE_GRID) {
        vka_append(out, "\n- fewer ranks: tp * cp * dp up to %u; several ranks may share one device.", VKA_MAX_RANKS);
        return;
    }
    if (verdict->rule == VKA_RULE_KV_REPLICATED && desc->kv_policy != VKA_KV_STRICT)
        vka_append(out, "\n- policy replicate: accepts tp=%u with each KV head on %u ranks.", grid.tp,
                   grid.tp / desc->kv_heads);
    append_other_sizes(out, valid, count, grid);
}

vka_status vka_layout_refuse(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy,
                             const vka_verdict *verdict, vka_error *error)
{
    char message[sizeof(error->message)];
    vka_text out = {message, sizeof(message), 0};

    vka_append(&out, "Layout refused: %u query heads and %u KV heads over tp=%u, cp=%u, dp=%u, KV policy %s (rule %s).",
               desc->heads, desc->kv_heads, grid.tp, grid.cp, grid.dp, policy == VKA_KV_STRICT ? "strict" : "replicate",
               vka_layout_rule_name(verdict->rule));
    append_rule(&out, desc, grid, verdict->rule);
    vka_append(&out, "\nValid tp, strict (KV heads sharded): ");
    append_list(&out, verdict->valid_strict, verdict->valid_strict_count);
    vka_append(&out, "\nValid tp, replicate (KV heads sharded, or each on several ranks): ");
    append_list(&out, verdict->valid_replicate, verdict->valid_replicate_count);
    append_family(&out, desc, policy, verdict);
    append_ways_out(&out, desc, grid, policy, verdict);
    return vka_fail(error, VKA_ERR_LAYOUT, "%s", message);
}
