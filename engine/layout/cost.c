/* What each device stores and moves. Distinct heads are counted, not ranks: a head held by several ranks of one device
 * is stored once. VKA_MAX_HEADS, VKA_MAX_HEAD_DIM and a 31-bit hidden size keep every product below 2^56. */
#include "base/error.h"
#include "layout/head_set.h"
#include "layout/latent.h"
#include "layout/shard.h"

static vka_status resolve_dtype(const char *what, vka_dtype *dtype, vka_error *error)
{
    if (*dtype == VKA_DTYPE_DEFAULT)
        *dtype = VKA_F16;
    if (vka_dtype_size(*dtype) != 0)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_ARGUMENT, "%s type is %d; expected VKA_F32, VKA_F16, VKA_BF16 or the default", what,
                    (int)*dtype);
}

static vka_status check_ranks(const vka_layer_desc *desc, const vka_rank *ranks, uint32_t rank_count,
                              uint32_t device_count, vka_error *error)
{
    for (uint32_t i = 0; i < rank_count; i++) {
        const vka_rank *rank = &ranks[i];

        if (rank->device >= device_count)
            return vka_fail(error, VKA_ERR_ARGUMENT, "rank %u is on device %u; there are %u devices", i, rank->device,
                            device_count);
        if ((uint64_t)rank->q_begin + rank->q_count > desc->heads ||
            (uint64_t)rank->kv_begin + rank->kv_count > desc->kv_heads)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "rank %u owns heads that a layer of %u query heads and %u KV heads has not", i, desc->heads,
                            desc->kv_heads);
    }
    return VKA_OK;
}

static vka_device_cost count_heads(const vka_rank *ranks, uint32_t rank_count, uint32_t device)
{
    vka_device_cost cost = {.device = device};
    vka_head_set q = {0}, kv = {0};

    for (uint32_t i = 0; i < rank_count; i++) {
        if (ranks[i].device != device)
            continue;
        cost.ranks++;
        cost.q_heads += vka_head_set_add(&q, ranks[i].q_begin, ranks[i].q_count);
        cost.kv_heads += vka_head_set_add(&kv, ranks[i].kv_begin, ranks[i].kv_count);
    }
    return cost;
}

/* Elements of a device's weights. */
static uint64_t count_weights(const vka_layer_desc *layer, const vka_device_cost *cost)
{
    uint64_t hidden = layer->hidden_size, k_dim = vka_pad8(layer->head_dim), v_dim = vka_pad8(layer->v_head_dim);
    vka_latent part = vka_latent_of(layer);
    uint64_t q_rows = (uint64_t)cost->q_heads * (part.plain + part.rotary);

    if (layer->kv_lora_rank == 0) /* q, o; k, v; gates */
        return (cost->q_heads * hidden + cost->kv_heads * (uint64_t)layer->kv_hidden_size) * (k_dim + v_dim) +
               (layer->gate != VKA_GATE_NONE ? cost->q_heads * hidden * v_dim : 0);
    return q_rows * (part.rank > 0 ? part.rank : hidden) + part.rank * hidden + /* q, q_a */
           (uint64_t)cost->kv_heads * (part.latent + part.rotary) * hidden +    /* kv_a */
           cost->q_heads * (uint64_t)part.latent * (part.plain + part.value) +  /* kv_b */
           cost->q_heads * part.value * hidden;                                 /* o */
}

static uint64_t cache_elements(const vka_layer_desc *layer, const vka_device_cost *cost)
{
    vka_latent part = vka_latent_of(layer);

    if (layer->kv_lora_rank > 0)
        return (uint64_t)cost->kv_heads * (part.latent + part.rotary);
    return (uint64_t)cost->kv_heads * (vka_pad8(layer->head_dim) + vka_pad8(layer->v_head_dim));
}

vka_status vka_placement_cost(const vka_layer_desc *desc, const vka_rank *ranks, uint32_t rank_count,
                              uint32_t device_count, vka_dtype weight_dtype, vka_dtype cache_dtype,
                              vka_device_cost *costs, vka_error *error)
{
    vka_layer_desc layer;
    vka_status status;

    if (!desc || !ranks || !costs)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", !desc ? "desc" : !ranks ? "ranks" : "costs");
    layer = *desc;
    status = vka_layer_desc_resolve(&layer, error);
    if (status == VKA_OK)
        status = resolve_dtype("weight", &weight_dtype, error);
    if (status == VKA_OK)
        status = resolve_dtype("cache", &cache_dtype, error);
    if (status == VKA_OK)
        status = check_ranks(&layer, ranks, rank_count, device_count, error);
    if (status != VKA_OK)
        return status;
    for (uint32_t device = 0; device < device_count; device++) {
        vka_device_cost cost = count_heads(ranks, rank_count, device);
        uint64_t vector = cost.ranks ? (uint64_t)layer.hidden_size * sizeof(float) : 0;

        if (layer.kv_lora_rank > 0)
            cost.kv_heads = cost.ranks > 0;
        cost.weight_bytes = (cost.ranks > 0 ? count_weights(&layer, &cost) : 0) * vka_dtype_size(weight_dtype);
        cost.cache_bytes_per_token = cache_elements(&layer, &cost) * vka_dtype_size(cache_dtype);
        cost.upload_bytes_per_token = vector;
        cost.download_bytes_per_token = vector;
        cost.exchanges = cost.ranks > 0;
        if (layer.qk_norm == VKA_QK_NORM_FULL_WIDTH && cost.ranks > 0) {
            cost.norm_bytes_per_token = (cost.q_heads + cost.kv_heads + 2ull) * sizeof(float);
            cost.exchanges++;
        }
        costs[device] = cost;
    }
    return VKA_OK;
}
