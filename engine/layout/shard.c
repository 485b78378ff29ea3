/* The union of the ranks on one device. Both unions are built as sets, so that a KV head replicated on ranks of this
 * device appears once; local numbers follow the order in the whole layer. */
#include "layout/shard.h"

#include <assert.h>

#include "base/error.h"
#include "layout/head_set.h"
#include "layout/latent.h"

static void collect(vka_shard *shard, const vka_layer_desc *desc, vka_head_set *q, vka_head_set *kv,
                    const vka_rank *ranks, uint32_t rank_count)
{
    bool latent = desc->kv_lora_rank > 0;

    for (uint32_t i = 0; i < rank_count; i++) {
        if (ranks[i].device != shard->device)
            continue;
        assert(ranks[i].q_begin + ranks[i].q_count <= VKA_MAX_HEADS);
        shard->ranks++;
        shard->q_heads += vka_head_set_add(q, ranks[i].q_begin, ranks[i].q_count);
        shard->kv_heads +=
            latent ? vka_head_set_add(kv, 0, 1) : vka_head_set_add(kv, ranks[i].kv_begin, ranks[i].kv_count);
    }
}

static vka_status make_storage(vka_shard *shard, const vka_allocator *allocator, vka_error *error)
{
    size_t count = 3 * (size_t)shard->ranks + 2 * (size_t)shard->q_heads + 2 * (size_t)shard->kv_heads + 1;
    uint32_t *next = vka_alloc(allocator, count, sizeof(*next));

    if (!next)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the head tables of device %u (%zu bytes)",
                        shard->device, count * sizeof(*next));
    shard->storage = next;
    shard->rank = next;
    shard->rank_q_begin = shard->rank + shard->ranks;
    shard->rank_q_count = shard->rank_q_begin + shard->ranks;
    shard->q_head = shard->rank_q_count + shard->ranks;
    shard->q_kv = shard->q_head + shard->q_heads;
    shard->kv_head = shard->q_kv + shard->q_heads;
    shard->kv_q_begin = shard->kv_head + shard->kv_heads;
    return VKA_OK;
}

/* Walks both unions in order; a query head belongs to the KV head of its group. */
static void number_heads(vka_shard *shard, const vka_layer_desc *desc, const vka_head_set *q, const vka_head_set *kv)
{
    uint32_t kv_heads = vka_stored_kv_heads(desc), group = desc->heads / kv_heads;
    uint32_t local_q = 0, local_kv = 0;

    for (uint32_t kv_head = 0; kv_head < kv_heads; kv_head++) {
        if (!vka_head_set_has(kv, kv_head))
            continue;
        shard->kv_head[local_kv] = kv_head;
        shard->kv_q_begin[local_kv] = local_q;
        for (uint32_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            if (!vka_head_set_has(q, head))
                continue;
            shard->q_head[local_q] = head;
            shard->q_kv[local_q++] = local_kv;
        }
        local_kv++;
    }
    shard->kv_q_begin[local_kv] = local_q;
    assert(local_q == shard->q_heads && local_kv == shard->kv_heads);
}

static uint32_t local_number(const vka_shard *shard, uint32_t head)
{
    uint32_t local = 0;

    while (shard->q_head[local] != head)
        local++;
    return local;
}

vka_status vka_shard_create(vka_shard *out, const vka_layer_desc *desc, const vka_rank *ranks, uint32_t rank_count,
                            uint32_t device, const vka_allocator *allocator, vka_error *error)
{
    vka_shard shard = {.device = device};
    vka_head_set q = {0}, kv = {0};
    uint32_t next = 0;
    vka_status status;

    collect(&shard, desc, &q, &kv, ranks, rank_count);
    status = make_storage(&shard, allocator, error);
    if (status != VKA_OK)
        return status;
    number_heads(&shard, desc, &q, &kv);
    for (uint32_t i = 0; i < rank_count; i++) {
        if (ranks[i].device != device)
            continue;
        shard.rank[next] = ranks[i].rank;
        shard.rank_q_begin[next] = local_number(&shard, ranks[i].q_begin);
        shard.rank_q_count[next++] = ranks[i].q_count;
    }
    *out = shard;
    return VKA_OK;
}

void vka_shard_destroy(vka_shard *shard, const vka_allocator *allocator)
{
    if (!shard)
        return;
    vka_free(allocator, shard->storage);
    *shard = (vka_shard){0};
}
