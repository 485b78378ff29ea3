/* Checks of the attention step's parameters: see attention.h. */
#include <math.h>

#include "base/error.h"
#include "exec/attention.h"
#include "exec/buffer.h"
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
    if (!isfinite(p->softcap) || p->softcap < 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "softcap is %g, expected 0 or a positive number", p->softcap);
    }
    if (p->cache_dtype != VKA_F32 && p->cache_dtype != VKA_F16) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache_dtype is %s, expected F32 or F16",
                        vka_dtype_name(p->cache_dtype));
    }
    return VKA_OK;
}

vka_status attention_check_tensor(const attention_call *call, vka_attention_tensor *tensor, const char *name,
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
    vka_status status = attention_check_tensor(call, &p->q, "q", q_rows * p->head_dim, true, error);

    if (status == VKA_OK) {
        status = attention_check_tensor(call, &p->k, "k", kv_rows * p->head_dim, keys, error);
    }
    if (status == VKA_OK) {
        status = attention_check_tensor(call, &p->v, "v", kv_rows * p->v_head_dim, keys, error);
    }
    if (status == VKA_OK) {
        status = attention_check_tensor(call, &p->o, "o", q_rows * p->v_head_dim, true, error);
    }
    if (status == VKA_OK) {
        status = attention_check_tensor(call, &p->lse, "lse", q_rows, false, error);
    }
    return status == VKA_OK ? attention_check_mask(call, error) : status;
}

vka_status attention_resolve(attention_call *call, vka_error *error)
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
