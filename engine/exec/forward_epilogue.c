/* The epilogue of Q, K and V: which options it has in a layer, and its dispatches in a chunk. */
#include "exec/latent.h"

static epilogue_kind head_epilogue(const vka_layer *layer, bool paged)
{
    static const uint32_t norms[] = {[VKA_QK_NORM_NONE] = EPILOGUE_NORM_NONE,
                                     [VKA_QK_NORM_PER_HEAD] = EPILOGUE_NORM_HEAD,
                                     [VKA_QK_NORM_FULL_WIDTH] = EPILOGUE_NORM_ROW};

    return (epilogue_kind){.rotary_dim = call_rotary_dim(&layer->desc),
                           .paged = paged,
                           .bias = layer->has_bias,
                           .norm = norms[layer->desc.qk_norm],
                           .rotary_offset = layer->desc.rotary_offset,
                           .interleaved = layer->desc.rope_pairing == VKA_ROPE_INTERLEAVED,
                           .clip = (float)layer->desc.clip_qkv};
}

void forward_epilogue_kinds(const vka_layer *layer, epilogue_kind kinds[EPILOGUE_PARTS])
{
    if (layer_is_latent(layer)) {
        latent_epilogues(layer, kinds);
        return;
    }
    kinds[EPILOGUE_Q] = head_epilogue(layer, false);
    kinds[EPILOGUE_K] = head_epilogue(layer, true);
    kinds[EPILOGUE_K_ROWS] = head_epilogue(layer, false);
    if (layer->desc.k_out_norm != 0) {
        kinds[EPILOGUE_K_ROWS].norm = EPILOGUE_NORM_HEAD;
    }
    kinds[EPILOGUE_GATE] = (epilogue_kind){.bias = layer->has_bias, .sigmoid = true};
    kinds[EPILOGUE_SQUARES] =
        (epilogue_kind){.bias = layer->has_bias, .clip = (float)layer->desc.clip_qkv, .squares = true};
    kinds[EPILOGUE_V_ROWS] = (epilogue_kind){.bias = layer->has_bias, .clip = (float)layer->desc.clip_qkv};
    kinds[EPILOGUE_V] = (epilogue_kind){.paged = true, .bias = layer->has_bias, .clip = (float)layer->desc.clip_qkv};
}

static bool chunk_appends_to(const forward_call *call, uint32_t slab)
{
    const page_pool *pool = &call->cache->pool;

    for (uint32_t i = 0; i < call->planner.source_count; i++) {
        const tile_source *source = &call->context->call.sources[i];
        uint32_t first = (uint32_t)source->position / pool->page_size;
        uint32_t last = ((uint32_t)source->position + source->rows - 1) / pool->page_size;
        for (uint32_t page = first; page <= last; page++) {
            if (source->pages[page] / pool->pages_per_slab == slab) {
                return true;
            }
        }
    }
    return false;
}

/* Hazard parts: K and V of a slab never overlap, nor do queries and gates. */
enum { PART_K = 1, PART_V = 2, PART_Q = 1, PART_GATE = 2 };

epilogue_push forward_k_push(const forward_call *call, const forward_device *device, epilogue_push shared)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;

    shared.heads = shard->kv_heads;
    shared.src_offset = shared.bias_offset = layer_k_column(layer, shard);
    shared.norm_offset = layer_k_norm(layer, shard);
    shared.head_dim = layer_is_latent(layer) ? layer->qk_pad : layer->desc.head_dim;
    shared.factor_offset++;
    return shared;
}

epilogue_push forward_v_push(const forward_call *call, const forward_device *device, epilogue_push shared)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;

    shared.heads = shard->kv_heads;
    shared.head_dim = layer->desc.v_head_dim;
    shared.head_pad = layer->v_pad;
    shared.src_offset = shared.bias_offset = layer_v_column(layer, shard);
    return shared;
}

static vka_status append_to_slab(const forward_call *call, const forward_device *device, recorder *rec,
                                 epilogue_step *step, uint32_t slab, vka_error *error)
{
    step->push.slab = slab;
    step->push.page_size = call->cache->pool.page_size;
    step->push.page_stride = call->cache->devices[device->index].page_elements;
    step->target = cache_slab(call->cache, device->index, call->params->cache_layer, slab);
    step->part = EPILOGUE_K;
    step->push = forward_k_push(call, device, step->push);
    step->target_part = PART_K;
    vka_status status = step_epilogue(rec, &device->set, step, error);
    if (status == VKA_OK && call->layer->v_stored > 0) {
        step->part = EPILOGUE_V;
        step->push = forward_v_push(call, device, step->push);
        step->push.dst_offset = call->cache->devices[device->index].v_offset;
        step->target_part = PART_V;
        status = step_epilogue(rec, &device->set, step, error);
    }
    return status;
}

/* Gates behind all rows of queries, where attention reads them. */
static vka_status record_gate(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                              epilogue_step *step, vka_error *error)
{
    const vka_layer *layer = call->layer;
    uint32_t q_columns = device->shard->shard.q_heads * layer->qk_pad;

    step->part = EPILOGUE_GATE;
    step->target_part = PART_GATE;
    step->push.head_dim = layer->desc.v_head_dim;
    step->push.head_pad = layer->v_pad;
    step->push.src_offset = step->push.bias_offset = q_columns;
    step->push.dst_offset = chunk->rows * q_columns;
    step->push.dst_stride = layer_gate_columns(layer, &device->shard->shard);
    step->push.dst_head_stride = layer->v_pad;
    return step_epilogue(rec, &device->set, step, error);
}

/* Q to float rows, and its gates. */
static vka_status record_q(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                           epilogue_step *step, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;

    step->part = EPILOGUE_Q;
    step->target = forward_scratch(device, chunk, EXEC_SCRATCH_Q);
    step->target_part = PART_Q;
    step->push.heads = shard->q_heads;
    step->push.norm_offset = layer_qkv_columns(layer, shard);
    step->push.dst_stride = shard->q_heads * layer->qk_pad;
    step->push.dst_head_stride = layer->qk_pad;
    vka_status status = step_epilogue(rec, &device->set, step, error);
    return status == VKA_OK && layer->desc.gate != VKA_GATE_NONE ? record_gate(call, chunk, device, rec, step, error)
                                                                 : status;
}

vka_status forward_record_epilogue(forward_call *call, const forward_chunk *chunk, forward_device *device,
                                   recorder *rec, vka_error *error)
{
    const vka_layer *layer = call->layer;
    uint32_t columns = layer_qkv_columns(layer, &device->shard->shard);
    const epilogue_push shared = {.rows = chunk->rows,
                                  .head_dim = layer->desc.head_dim,
                                  .head_pad = layer->qk_pad,
                                  .src_stride = columns,
                                  .norm_eps = (float)layer->desc.norm_eps,
                                  .factor_offset = call_factors_offset(&layer->desc, chunk->rows),
                                  .record_words = call_record_words(&layer->desc)};
    epilogue_step step = {.push = shared,
                          .call = forward_scratch(device, chunk, EXEC_SCRATCH_CALL),
                          .constants = device->shard->constants,
                          .source = forward_scratch(device, chunk, EXEC_SCRATCH_QKV)};
    vka_status status = VKA_OK;

    if (call->pass != FORWARD_APPEND) {
        status = layer_is_latent(layer) ? latent_record_queries(call, chunk, device, rec, error)
                                        : record_q(call, chunk, device, rec, &step, error);
    }
    for (uint32_t slab = 0; status == VKA_OK && slab < call->cache->pool.slabs; slab++) {
        if (call->pass != FORWARD_ATTEND && chunk_appends_to(call, slab)) {
            step.push = shared;
            status = append_to_slab(call, device, rec, &step, slab, error);
        }
    }
    if (status == VKA_OK && forward_gives_kv(call)) {
        step.push = shared;
        status = forward_record_kv(call, chunk, device, rec, &step, error);
    }
    timing_work(&call->timing, device->index, VKA_STAGE_EPILOGUE, 0, 2.0 * chunk->rows * columns * sizeof(float));
    return status;
}
