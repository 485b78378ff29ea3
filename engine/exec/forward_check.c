/* The tensors and buffers of a call against its batch. */
#include "exec/forward.h"

#include "base/error.h"
#include "exec/buffer.h"
#include "model/rope.h"

static vka_status check_buffers(const forward_call *call, vka_buffer *const *buffers, const char *name,
                                vka_error *error)
{
    uint64_t bytes = (uint64_t)call->rows * call->layer->desc.hidden_size * sizeof(float);

    for (uint32_t d = 0; buffers != NULL && d < call->context->device_count; d++) {
        if (buffers[d] == NULL || buffers[d]->context != call->context || buffers[d]->device != d) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "%s[%u] is not a buffer of device %u of this context", name, d, d);
        }
        if (gpu_buffer_bytes(buffers[d]->gpu) < bytes) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "%s[%u] holds %llu bytes, %u rows of %u need %llu", name, d,
                            (unsigned long long)gpu_buffer_bytes(buffers[d]->gpu), call->rows,
                            call->layer->desc.hidden_size, (unsigned long long)bytes);
        }
    }
    return VKA_OK;
}

/* What the batch needs a matrix to be. */
typedef struct needed_matrix {
    const char *name;
    uint64_t rows, cols;
} needed_matrix;

static vka_status check_matrix(needed_matrix needed, vka_dtype dtype, uint64_t rows, uint64_t cols, uint64_t stride,
                               vka_error *error)
{
    const char *name = needed.name;

    if (vka_dtype_size(dtype) == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s has dtype %d, expected F32, F16 or BF16", name, (int)dtype);
    }
    if (rows != needed.rows || cols != needed.cols || (stride != 0 && stride < cols)) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s is [%llu, %llu] with row stride %llu, the batch needs [%llu, %llu] with a stride of 0 or "
                        "at least %llu",
                        name, (unsigned long long)rows, (unsigned long long)cols, (unsigned long long)stride,
                        (unsigned long long)needed.rows, (unsigned long long)needed.cols,
                        (unsigned long long)needed.cols);
    }
    return VKA_OK;
}

static vka_status check_in(needed_matrix needed, const vka_tensor *in, vka_error *error)
{
    return in->data == NULL ? VKA_OK : check_matrix(needed, in->dtype, in->rows, in->cols, in->row_stride, error);
}

static vka_status check_out(needed_matrix needed, const vka_tensor_out *out, vka_error *error)
{
    return out->data == NULL ? VKA_OK : check_matrix(needed, out->dtype, out->rows, out->cols, out->row_stride, error);
}

/* Positions and the other sequence: only where the layer has a use for them. */
static vka_status check_options(const forward_call *call, vka_error *error)
{
    const vka_forward_params *params = call->params;
    bool cross = call->layer->desc.attend == VKA_ATTEND_CROSS;

    if (layer_is_latent(call->layer) && (params->k_output.data != NULL || params->v_output.data != NULL)) {
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "k_output and v_output: K and V of latent attention are never made; read the latent with "
                        "vka_cache_read()");
    }
    if (params->position_rows == 3 && !rope_has_axes(&call->layer->desc)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "position_rows is 3, but the layer has no mrope_section: expected 1");
    }
    if (!cross && (params->kv_input.data != NULL || params->kv_tokens != NULL)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "kv_input and kv_tokens are for cross attention (VKA_ATTEND_CROSS)");
    }
    if (cross && (params->kv_input.data != NULL) != (call->kv_rows > 0)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "kv_tokens add up to %u, but kv_input %s", call->kv_rows,
                        params->kv_input.data != NULL ? "is given" : "is not");
    }
    return VKA_OK;
}

vka_status forward_check(const forward_call *call, vka_error *error)
{
    const vka_forward_params *params = call->params;
    const vka_layer_desc *desc = &call->layer->desc;
    vka_status status = check_options(call, error);

    if (status == VKA_OK) {
        status = check_in((needed_matrix){"input", call->rows, desc->hidden_size}, &params->input, error);
    }
    if (status == VKA_OK) {
        status = check_in((needed_matrix){"kv_input", call->kv_rows, desc->kv_hidden_size}, &params->kv_input, error);
    }
    if (status == VKA_OK) {
        status = check_out((needed_matrix){"output", call->rows, desc->hidden_size}, &params->output, error);
    }
    if (status == VKA_OK) {
        const needed_matrix k = {"k_output", call->kv_rows, (uint64_t)desc->kv_heads * desc->head_dim};
        status = check_out(k, &params->k_output, error);
    }
    if (status == VKA_OK) {
        const needed_matrix v = {"v_output", call->kv_rows, (uint64_t)desc->kv_heads * desc->v_head_dim};
        status = check_out(v, &params->v_output, error);
    }
    if (status == VKA_OK) {
        status = check_buffers(call, params->input_buffers, "input_buffers", error);
    }
    return status == VKA_OK ? check_buffers(call, params->output_buffers, "output_buffers", error) : status;
}
