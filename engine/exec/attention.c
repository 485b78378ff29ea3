/* See attention.h. */
#include "exec/attention.h"

#include <math.h>

#include "base/error.h"
#include "exec/buffer.h"
#include "exec/limits.h"
#include "layout/shard.h"

static vka_status check_sizes(const vka_attention_params *p, vka_error *error)
{
    if (p->batch == 0 || p->q_len == 0 || p->heads == 0 || p->kv_heads == 0 || p->heads % p->kv_heads != 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "batch %u, q_len %u, heads %u, kv_heads %u: all must be at least 1 and heads a multiple of "
                        "kv_heads",
                        p->batch, p->q_len, p->heads, p->kv_heads);
    }
    if (p->head_dim == 0 || p->head_dim > VKA_MAX_HEAD_DIM || p->v_head_dim > VKA_MAX_HEAD_DIM) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "head_dim %u, v_head_dim %u: expected 1 to %u", p->head_dim,
                        p->v_head_dim, VKA_MAX_HEAD_DIM);
    }
    if (p->kv_len > INT32_MAX || (uint64_t)p->batch * p->q_len > INT32_MAX || p->heads > 65535) {
        return vka_fail(
            error, VKA_ERR_ARGUMENT,
            "batch %u, q_len %u, kv_len %u, heads %u: rows and keys are limited to 2^31 - 1, heads to 65535", p->batch,
            p->q_len, p->kv_len, p->heads);
    }
    if (p->causal > VKA_CAUSAL_TOP_LEFT || p->align > VKA_ALIGN_TOP_LEFT) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "causal is %d, align is %d: expected a vka_causal and a vka_align",
                        (int)p->causal, (int)p->align);
    }
    if (!isfinite(p->scale)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "scale is %g, expected a finite number", p->scale);
    }
    if (p->cache_dtype != VKA_F32 && p->cache_dtype != VKA_F16) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache_dtype is %s, expected F32 or F16",
                        vka_dtype_name(p->cache_dtype));
    }
    return VKA_OK;
}

static vka_status check_tensor(const attention_call *call, vka_attention_tensor *tensor, const char *name,
                               uint64_t elements, bool required, vka_error *error)
{
    bool host = tensor->host != NULL, buffer = tensor->buffer != NULL;

    tensor->dtype = tensor->dtype != VKA_DTYPE_DEFAULT ? tensor->dtype : VKA_F32;
    if (!host && !buffer && !required) {
        return VKA_OK;
    }
    if (host == buffer) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s has %s: set exactly one of host and buffer", name,
                        host ? "both host memory and a buffer" : "neither host memory nor a buffer");
    }
    if (vka_dtype_size(tensor->dtype) == 0 || (buffer && tensor->dtype != VKA_F32)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s has dtype %s: host tensors are F32, F16 or BF16, buffers F32",
                        name, vka_dtype_name(tensor->dtype));
    }
    if (!buffer) {
        return VKA_OK;
    }
    if (tensor->buffer->context != call->context || tensor->buffer->device != call->params.device) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is on device %u of its context, the call runs on device %u", name,
                        tensor->buffer->device, call->params.device);
    }
    uint64_t size = gpu_buffer_bytes(tensor->buffer->gpu);
    if (tensor->offset % sizeof(float) != 0 || tensor->offset > size ||
        elements > (size - tensor->offset) / sizeof(float)) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s needs %llu F32 values from byte %llu (a multiple of 4), its buffer has %llu bytes", name,
                        (unsigned long long)elements, (unsigned long long)tensor->offset, (unsigned long long)size);
    }
    return VKA_OK;
}

static vka_status check_tensors(attention_call *call, vka_error *error)
{
    vka_attention_params *p = &call->params;
    uint64_t q_rows = (uint64_t)p->batch * p->q_len * p->heads, kv_rows = (uint64_t)p->batch * p->kv_len * p->kv_heads;
    bool keys = p->kv_len > 0;
    vka_status status = check_tensor(call, &p->q, "q", q_rows * p->head_dim, true, error);

    if (status == VKA_OK) {
        status = check_tensor(call, &p->k, "k", kv_rows * p->head_dim, keys, error);
    }
    if (status == VKA_OK) {
        status = check_tensor(call, &p->v, "v", kv_rows * p->v_head_dim, keys, error);
    }
    if (status == VKA_OK) {
        status = check_tensor(call, &p->o, "o", q_rows * p->v_head_dim, true, error);
    }
    return status == VKA_OK ? check_tensor(call, &p->lse, "lse", q_rows, false, error) : status;
}

static vka_status resolve(attention_call *call, vka_error *error)
{
    vka_attention_params *p = &call->params;

    if (p->device >= call->context->device_count) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u, the context has %u", p->device,
                        call->context->device_count);
    }
    p->repeat = p->repeat != 0 ? p->repeat : 1;
    p->v_head_dim = p->v_head_dim != 0 ? p->v_head_dim : p->head_dim;
    p->cache_dtype = p->cache_dtype != VKA_DTYPE_DEFAULT ? p->cache_dtype : VKA_F32;
    vka_status status = check_sizes(p, error);
    if (status != VKA_OK) {
        return status;
    }
    p->scale = p->scale != 0 ? p->scale : 1 / sqrt(p->head_dim);
    call->device = &call->context->devices[p->device];
    call->qk_pad = vka_pad8(p->head_dim);
    call->v_pad = vka_pad8(p->v_head_dim);
    return check_tensors(call, error);
}

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

static vka_status get_kernels(attention_call *call, const vka_variant *candidate, vka_error *error)
{
    const pipeline_shape shape = {.kernels = PIPELINES_ATTENTION,
                                  .cache_dtype = call->params.cache_dtype,
                                  .attention = {.qk_pad = call->qk_pad, .v_pad = call->v_pad},
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
    vka_status status = limits_check(caps, p->device, row_bytes, "a row of queries", "use fewer heads a call", error);

    if (status != VKA_OK) {
        return status;
    }
    uint64_t rows = vka_caps_max_tensor(caps) / row_bytes;
    double budget = exec_submit_flops(call->context, call->device);
    planner->context = call->context;
    planner->sequence_count = p->batch;
    planner->limits = (chunk_limits){.max_rows = rows < INT32_MAX ? (uint32_t)rows : INT32_MAX,
                                     .key_share = 2.0 * p->heads * (call->qk_pad + call->v_pad) / budget,
                                     .keys = attention_keys(p)};
    planned->device = call->device;
    planned->heads = call_count_heads(&call->set, p->kv_heads, call->kv_q_begin);
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
    vka_status status = resolve(call, error);

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
