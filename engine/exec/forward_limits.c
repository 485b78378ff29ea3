/* See forward.h. */
#include "exec/forward.h"
#include "exec/latent.h"
#include "exec/rows.h"

/* Rows of a chunk at most: keeps scratch memory within some hundred MiB for large layers. */
#define MAX_CHUNK_ROWS 2048u

/* What counts as "the shard" when rows are cut: the device's own, or the whole layer when reproducible. */
typedef struct width {
    uint32_t q_heads, kv_heads, partials;
} width;

static width counted_width(const forward_call *call, const forward_device *device)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;

    if (layer->reproducible) {
        return (width){layer->desc.heads, vka_stored_kv_heads(&layer->desc), layer->rank_count};
    }
    return (width){shard->q_heads, shard->kv_heads, 1};
}

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of one query head: the query and its gate. */
static uint32_t q_columns(const vka_layer *layer)
{
    return layer->qk_pad + (layer->desc.gate != VKA_GATE_NONE ? layer->v_pad : 0);
}

/* Bytes of the widest scratch tensor, per row. */
static uint64_t widest_row(const forward_call *call, width w)
{
    const vka_layer *layer = call->layer;
    uint64_t qkv = (uint64_t)w.q_heads * q_columns(layer) + (uint64_t)w.kv_heads * (layer->qk_pad + layer->v_pad);
    uint64_t widest = largest(qkv, rows_stride(w.q_heads * layer->v_pad));

    widest = largest(widest, largest(layer->hidden_stride, layer->kv_hidden_stride));
    widest = largest(widest, latent_widest_row(layer, w.q_heads));
    widest = largest(widest, (uint64_t)layer->hidden_pad * w.partials);
    return largest(widest, 2ull * call_record_words(&layer->desc)) * sizeof(float);
}

static double projection_flops(const forward_call *call, width w)
{
    const vka_layer *layer = call->layer;
    double columns =
        (double)w.q_heads * (q_columns(layer) + layer->v_pad) + (double)w.kv_heads * (layer->qk_pad + layer->v_pad);

    if (layer_is_latent(layer)) {
        return latent_projection_flops(layer, w.q_heads);
    }
    return 2.0 * (double)largest(layer->hidden_pad, layer->kv_hidden_pad) * columns;
}

static key_limits forward_keys(const vka_layer *layer)
{
    return key_limits_of(layer->desc.attend == VKA_ATTEND_CAUSAL, layer->desc.window, layer->desc.window_right);
}

chunk_limits forward_chunk_limits(const forward_call *call)
{
    const vka_layer *layer = call->layer;
    chunk_limits limits = {.max_rows = MAX_CHUNK_ROWS, .keys = forward_keys(layer)};

    for (uint32_t d = 0; d < call->context->device_count; d++) {
        const forward_device *device = &call->devices[d];
        if (forward_idle(device) && !layer->reproducible) {
            continue;
        }
        width w = counted_width(call, device);
        double budget = exec_submit_flops(call->context, device->device);
        double row = projection_flops(call, w) / budget;
        double key = 2.0 * w.q_heads * (layer->qk_pad + layer->v_pad) / budget;
        uint64_t rows = vka_caps_max_tensor(gpu_device_caps(device->device->gpu)) / widest_row(call, w);
        limits.row_share = row > limits.row_share ? row : limits.row_share;
        if (call->pass != FORWARD_APPEND) {
            limits.key_share = key > limits.key_share ? key : limits.key_share;
        }
        limits.max_rows = rows < limits.max_rows ? (uint32_t)rows : limits.max_rows;
    }
    limits.max_rows = limits.max_rows > 0 ? limits.max_rows : 1;
    return limits;
}

/* Head records of one rank, the same on every rank of a layer. */
static uint32_t rank_records(const vka_layer *layer, uint32_t pack)
{
    const vka_rank *rank = &layer->ranks[0];
    uint32_t kv_count = layer_is_latent(layer) ? 1 : rank->kv_count, group = rank->q_count / kv_count;

    return kv_count * ((group + pack - 1) / pack);
}

planned_device forward_plan_device(const forward_call *call, const forward_device *device)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    planned_device planned = {.device = device->device,
                              .heads = call_count_heads(&device->set, shard->kv_heads, shard->kv_q_begin),
                              .slot_bytes = exec_slot_bytes(counted_width(call, device).q_heads, layer->v_pad)};
    uint32_t records = planned.heads.decode_records;

    planned.heads.sinks = device->shard->sinks;
    planned.heads.slopes = device->shard->slopes;
    if (layer->reproducible) {
        records = rank_records(layer, device->set.kernel[VKA_KERNEL_DECODE].variant->tile_cols);
    }
    planned.tiles = exec_tile_config(device->device, &device->set, records, planned.slot_bytes);
    planned.tiles.page_size = call->cache->pool.page_size;
    planned.tiles.pages_per_slab = call->cache->pool.pages_per_slab;
    planned.tiles.keys = forward_keys(layer);
    return planned;
}
