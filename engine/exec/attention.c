/* See attention.h. */
#include "exec/attention.h"

#include "base/error.h"
#include "exec/buffer.h"
#include "exec/limits.h"
#include "layout/shard.h"

static vka_status get_packs(attention_call *call, vka_error *error)
{
    const pipeline_shape cache = {.kernels = 1u << VKA_KERNEL_PACK, .pack_dtype = call->params.cache_dtype};
    const pipeline_shape floats = {.kernels = 1u << VKA_KERNEL_PACK, .pack_dtype = VKA_F32};
    vka_status status = pipelines_get(call->context, call->device, &cache, &call->pack_cache, error);

    if (status == VKA_OK) {
        status = exec_wait_all(call->context, error);
    }
    if (status == VKA_OK) {
        status = pipelines_get(call->context, call->device, &floats, &call->pack_floats, error);
    }
    return status == VKA_OK ? exec_wait_all(call->context, error) : status;
}

static attention_kind kind_of(const attention_call *call)
{
    const vka_attention_params *p = &call->params;

    return (attention_kind){.qk_pad = call->qk_pad,
                            .v_pad = call->v_pad,
                            .softcap = p->softcap != 0,
                            .alibi = p->alibi != NULL,
                            .mask = p->mask.rank != 0,
                            .sinks = p->sinks != NULL};
}

static vka_status get_kernels(attention_call *call, const vka_variant *candidate, vka_error *error)
{
    const pipeline_shape shape = {.kernels = PIPELINES_ATTENTION,
                                  .cache_dtype = call->params.cache_dtype,
                                  .attention = kind_of(call),
                                  .candidate = candidate};
    vka_status status = pipelines_get(call->context, call->device, &shape, &call->set, error);

    return status == VKA_OK ? exec_wait_all(call->context, error) : status;
}

static vka_status list_heads(attention_call *call, vka_error *error)
{
    uint32_t kv_heads = call->params.kv_heads, group = call->params.heads / kv_heads;

    call->kv_q_begin = vka_alloc(&call->context->allocator, (size_t)kv_heads + 1, sizeof(uint32_t));
    if (call->kv_q_begin == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a table of %u heads", kv_heads);
    }
    for (uint32_t h = 0; h <= kv_heads; h++) {
        call->kv_q_begin[h] = h * group;
    }
    return VKA_OK;
}

static bool is_top_left(const vka_attention_params *p)
{
    return p->causal == VKA_CAUSAL_NONE ? p->align == VKA_ALIGN_TOP_LEFT : p->causal == VKA_CAUSAL_TOP_LEFT;
}

static vka_status list_sequences(attention_call *call, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    vka_status status = call_reserve_sequences(call->context, p->batch, error);
    int64_t position = is_top_left(p) ? 0 : (int64_t)p->kv_len - p->q_len;

    for (uint32_t b = 0; status == VKA_OK && b < p->batch; b++) {
        call->context->call.sequences[b] = (call_sequence){.rows = p->q_len,
                                                           .position = position,
                                                           .keys = p->kv_len,
                                                           .pages = call->pages + (size_t)b * call->batch_pages};
    }
    return status;
}

static vka_status start_planner(attention_call *call, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    chunk_planner *planner = &call->planner;
    planned_device *planned = &planner->devices[p->device];
    const vka_caps *caps = gpu_device_caps(call->device->gpu);
    uint64_t row_bytes = (uint64_t)p->heads * ((call->qk_pad > call->v_pad ? call->qk_pad : call->v_pad) + 1) * 4;
    uint64_t mask_bytes = attention_mask_bytes(call);
    vka_status status = limits_check(caps, p->device, row_bytes + mask_bytes, "a row of queries and the mask",
                                     "use fewer heads a call, or a smaller mask", error);

    if (status != VKA_OK) {
        return status;
    }
    uint64_t rows = (vka_caps_max_tensor(caps) - mask_bytes) / row_bytes;
    double budget = exec_submit_flops(call->context, call->device);
    planner->context = call->context;
    planner->sequence_count = p->batch;
    planner->limits = (chunk_limits){.max_rows = rows < INT32_MAX ? (uint32_t)rows : INT32_MAX,
                                     .key_share = 2.0 * p->heads * (call->qk_pad + call->v_pad) / budget,
                                     .keys = attention_keys(p)};
    planned->device = call->device;
    planned->heads = call_count_heads(&call->set, p->kv_heads, call->kv_q_begin);
    planned->heads.sinks = p->sinks;
    planned->heads.slopes = p->alibi;
    planned->slot_bytes = exec_slot_bytes(p->heads, call->v_pad);
    planned->tiles = exec_tile_config(call->device, &call->set, planned->heads.decode_records, planned->slot_bytes);
    planned->tiles.page_size = planner->page_size;
    planned->tiles.pages_per_slab = planner->pages_per_slab;
    planned->tiles.keys = planner->limits.keys;
    return VKA_OK;
}

vka_status attention_call_begin(attention_call *call, vka_context *context, const vka_attention_params *params,
                                vka_error *error)
{
    *call = (attention_call){.params = *params, .context = context};
    vka_status status = attention_resolve(call, error);

    if (status == VKA_OK) {
        status = get_packs(call, error);
    }
    if (status == VKA_OK) {
        status = list_heads(call, error);
    }
    return status == VKA_OK ? attention_load_kv(call, error) : status;
}

vka_status attention_call_run(attention_call *call, const vka_variant *candidate, vka_error *error)
{
    vka_status status = get_kernels(call, candidate, error);

    call->gpu_ms = call->wall_ms = 0;
    call->planner.cursor = (chunk_cursor){0};
    if (status == VKA_OK) {
        status = list_sequences(call, error);
    }
    if (status == VKA_OK) {
        status = start_planner(call, error);
    }
    if (status == VKA_OK) {
        status = planner_next(&call->planner, error);
    }
    if (status == VKA_OK) {
        call->variant = call->set.kernel[call->device->plan.launches[0].kernel].variant;
    }
    while (status == VKA_OK && call->planner.rows > 0) {
        status = attention_run_chunk(call, error);
        if (status == VKA_OK) {
            status = planner_next(&call->planner, error);
        }
    }
    return status;
}

void attention_call_end(attention_call *call)
{
    (void)exec_wait_all(call->context, NULL);
    for (uint32_t i = 0; i < call->slab_count; i++) {
        gpu_buffer_destroy(&call->slabs[i]);
    }
    vka_free(&call->context->allocator, call->slabs);
    vka_free(&call->context->allocator, call->pages);
    vka_free(&call->context->allocator, call->kv_q_begin);
}

vka_status exec_attention(vka_context *context, const vka_attention_params *params, vka_error *error)
{
    attention_call call;
    vka_status status = attention_call_begin(&call, context, params, error);

    if (status == VKA_OK) {
        status = attention_call_run(&call, NULL, error);
    }
    attention_call_end(&call);
    if (status == VKA_OK && params->gpu_ms != NULL) {
        *params->gpu_ms = call.gpu_ms;
    }
    if (status == VKA_OK && params->wall_ms != NULL) {
        *params->wall_ms = call.wall_ms;
    }
    if (status == VKA_OK && params->variant != NULL) {
        *params->variant = call.variant->name;
    }
    return status;
}
