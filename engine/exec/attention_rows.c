/* See attention.h. The attention scratch holds the output rows (heads padded), then the log-sum-exp. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/half.h"
#include "exec/attention.h"
#include "exec/buffer.h"

static gpu_buffer *scratch(const attention_call *call, exec_scratch which)
{
    return call->device->scratch[which][0].buffer;
}

static uint64_t out_floats(const attention_call *call)
{
    return (uint64_t)call->planner.rows * call->params.heads * call->v_pad;
}

static bool wants_lse(const attention_call *call)
{
    return call->params.lse.host != NULL || call->params.lse.buffer != NULL;
}

/* Of the queries of a chunk; the mask follows. */
static uint64_t q_bytes(const attention_call *call)
{
    return (uint64_t)call->planner.rows * call->params.heads * call->qk_pad * sizeof(float);
}

static vka_status reserve(attention_call *call, vka_error *error)
{
    const planned_device *planned = &call->planner.devices[call->params.device];
    uint64_t rows = call->planner.rows, heads = call->params.heads;
    uint64_t split = call->device->plan.slots * planned->slot_bytes;
    vka_status status =
        exec_scratch_reserve(call->device, EXEC_SCRATCH_CALL, 0,
                             call_device_bytes(call->device, &planned->heads, call->planner.shared_words), error);

    if (status == VKA_OK) {
        status =
            exec_scratch_reserve(call->device, EXEC_SCRATCH_Q, 0, q_bytes(call) + attention_mask_bytes(call), error);
    }
    if (status == VKA_OK) {
        status = exec_scratch_reserve(call->device, EXEC_SCRATCH_ATTENTION, 0,
                                      (out_floats(call) + rows * heads) * sizeof(float), error);
    }
    return status == VKA_OK && split > 0 ? exec_scratch_reserve(call->device, EXEC_SCRATCH_SPLIT, 0, split, error)
                                         : status;
}

/* Rows of padded heads from the caller's dense ones. */
static void fill_queries(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const attention_call *call = user;
    const vka_attention_tensor *q = &call->params.q;
    size_t head_bytes = call->qk_pad * sizeof(float), size = vka_dtype_size(q->dtype), dim = call->params.head_dim;
    size_t first = (size_t)call->planner.begin.total * call->params.heads + (size_t)(offset / head_bytes);
    unsigned char *out = target;

    memset(out, 0, (size_t)bytes);
    for (size_t h = 0; h < bytes / head_bytes; h++) {
        vka_convert(out + h * head_bytes, VKA_F32, (const unsigned char *)q->host + (first + h) * dim * size, q->dtype,
                    dim);
    }
}

/* Heads of the chunk's rows between a dense tensor and a padded one. */
static pack_push head_pack(const attention_call *call, uint32_t src_dim, uint32_t src_pad, uint32_t dst_dim,
                           uint32_t dst_pad)
{
    uint32_t heads = call->params.heads;

    return (pack_push){.batch = 1,
                       .tokens = call->planner.rows,
                       .heads = heads,
                       .src_dim = src_dim,
                       .dst_dim = dst_dim,
                       .src_length_stride = heads * src_pad,
                       .src_head_stride = src_pad,
                       .dst_length_stride = heads * dst_pad,
                       .dst_head_stride = dst_pad};
}

static uint32_t dense_offset(const attention_call *call, const vka_attention_tensor *tensor, uint32_t dim)
{
    return (uint32_t)(tensor->offset / sizeof(float)) + call->planner.begin.total * call->params.heads * dim;
}

static vka_status load_queries(attention_call *call, recorder *rec, vka_error *error)
{
    const vka_attention_tensor *q = &call->params.q;
    uint32_t dim = call->params.head_dim, pad = call->qk_pad;

    if (q->buffer == NULL) {
        return VKA_OK;
    }
    pack_push push = head_pack(call, dim, dim, pad, pad);
    push.src_offset = dense_offset(call, q, dim);
    return step_pack(rec, &call->pack_floats, &push, q->buffer->gpu, scratch(call, EXEC_SCRATCH_Q), HAZARD_WHOLE,
                     error);
}

static vka_status record_attention(attention_call *call, recorder *rec, attention_step *step, vka_error *error)
{
    const vka_attention_params *p = &call->params;

    step->push = (attention_push){.heads = p->heads,
                                  .q_stride = p->heads * call->qk_pad,
                                  .out_stride = p->heads * call->v_pad,
                                  .lse_offset = wants_lse(call) ? (uint32_t)out_floats(call) : VKA_NO_OFFSET,
                                  .page_size = call->planner.page_size,
                                  .page_stride = call->page_elements,
                                  .v_offset = call->v_offset,
                                  .scale = (float)p->scale,
                                  .softcap = (float)p->softcap,
                                  .left = call->planner.limits.keys.left,
                                  .right = call->planner.limits.keys.right};
    attention_push_mask(call, (uint32_t)(q_bytes(call) / sizeof(float)), &step->push);
    step->v_pad = call->v_pad;
    step->q = scratch(call, EXEC_SCRATCH_Q);
    step->out = scratch(call, EXEC_SCRATCH_ATTENTION);
    step->split = scratch(call, EXEC_SCRATCH_SPLIT);
    step->slabs = call->slabs;
    vka_status status = VKA_OK;
    gpu_cmd_timestamp(rec->commands, 0);
    for (uint32_t i = 0; status == VKA_OK && i < p->repeat; i++) {
        status = step_attention(rec, &call->set, step, error);
    }
    gpu_cmd_timestamp(rec->commands, 1);
    return status;
}

static vka_status store_to_devices(attention_call *call, recorder *rec, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    vka_status status = VKA_OK;

    if (p->o.buffer != NULL) {
        pack_push push = head_pack(call, p->v_head_dim, call->v_pad, p->v_head_dim, p->v_head_dim);
        push.dst_offset = dense_offset(call, &p->o, p->v_head_dim);
        status = step_pack(rec, &call->pack_floats, &push, scratch(call, EXEC_SCRATCH_ATTENTION), p->o.buffer->gpu,
                           HAZARD_WHOLE, error);
        recorder_host_read(rec, p->o.buffer->gpu);
    }
    if (status == VKA_OK && p->lse.buffer != NULL) {
        uint64_t row = p->heads * sizeof(float);
        recorder_copy(rec, scratch(call, EXEC_SCRATCH_ATTENTION), out_floats(call) * sizeof(float), p->lse.buffer->gpu,
                      p->lse.offset + call->planner.begin.total * row, call->planner.rows * row);
        recorder_host_read(rec, p->lse.buffer->gpu);
    }
    return status;
}

/* Copies `heads` heads of `dim` elements, `pad` apart in the attention scratch from float `first` on, to host memory.
 */
static vka_status read_heads(const attention_call *call, const vka_attention_tensor *out, uint64_t first, uint32_t dim,
                             uint32_t pad, vka_error *error)
{
    size_t heads = (size_t)call->planner.rows * call->params.heads, size = vka_dtype_size(out->dtype);
    size_t done = (size_t)call->planner.begin.total * call->params.heads;
    float *raw = vka_alloc(&call->context->allocator, heads * pad, sizeof(float));

    if (raw == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu values of the result", heads * pad);
    }
    vka_status status = staged_download(call->device->gpu, scratch(call, EXEC_SCRATCH_ATTENTION), first * sizeof(float),
                                        heads * pad * sizeof(float), raw, error);
    for (size_t h = 0; status == VKA_OK && h < heads; h++) {
        vka_convert((unsigned char *)out->host + (done + h) * dim * size, out->dtype, raw + h * pad, VKA_F32, dim);
    }
    vka_free(&call->context->allocator, raw);
    return status;
}

static vka_status store_to_host(const attention_call *call, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    vka_status status = VKA_OK;

    if (p->o.host != NULL) {
        status = read_heads(call, &p->o, 0, p->v_head_dim, call->v_pad, error);
    }
    if (status == VKA_OK && p->lse.host != NULL) {
        status = read_heads(call, &p->lse, out_floats(call), 1, 1, error);
    }
    return status;
}

static vka_status record_chunk(attention_call *call, recorder *rec, vka_error *error)
{
    const planned_device *planned = &call->planner.devices[call->params.device];
    attention_step step = {0};
    vka_status status = call_write_device(call->context, call->device, 0, rec, &call->set, &planned->heads,
                                          call->planner.shared_words, &step, error);

    if (status == VKA_OK) {
        status = load_queries(call, rec, error);
    }
    if (status == VKA_OK) {
        attention_copy_mask(call, rec, scratch(call, EXEC_SCRATCH_Q), q_bytes(call));
        status = record_attention(call, rec, &step, error);
    }
    if (status == VKA_OK) {
        status = store_to_devices(call, rec, error);
    }
    if (status == VKA_OK) {
        recorder_host_read(rec, scratch(call, EXEC_SCRATCH_ATTENTION));
    }
    return status;
}

static vka_status submit_chunk(attention_call *call, vka_error *error)
{
    recorder rec;
    vka_status status = recorder_begin(&rec, call->device->gpu, error);

    if (status != VKA_OK) {
        return status;
    }
    status = record_chunk(call, &rec, error);
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    status = recorder_submit(&rec, &call->device->pending, error);
    return status == VKA_OK ? exec_wait_all(call->context, error) : status;
}

vka_status attention_run_chunk(attention_call *call, vka_error *error)
{
    vka_status status = reserve(call, error);

    if (status == VKA_OK && call->params.q.host != NULL) {
        status = staged_upload(call->device->gpu, scratch(call, EXEC_SCRATCH_Q), 0, q_bytes(call),
                               call->qk_pad * sizeof(float), fill_queries, call, error);
    }
    if (status == VKA_OK) {
        status = attention_upload_mask(call, scratch(call, EXEC_SCRATCH_Q), q_bytes(call), error);
    }
    double since = vka_clock_ms();
    if (status == VKA_OK) {
        status = submit_chunk(call, error);
    }
    if (status == VKA_OK) {
        double ms = gpu_elapsed_ms(call->device->gpu, 0, 1);
        call->wall_ms += (vka_clock_ms() - since) / call->params.repeat;
        call->gpu_ms = ms < 0 ? -1 : call->gpu_ms + ms / call->params.repeat;
        status = store_to_host(call, error);
    }
    return status;
}
