/* K and V of new tokens, handed to the caller: epilogues beside those that fill the cache put them into rows that the
 * host reads. */
#include "exec/forward.h"

#include "base/half.h"
#include "base/threads.h"

#define ROWS_PER_TASK 16

bool forward_gives_kv(const forward_call *call)
{
    bool wanted = call->params->k_output.data != NULL || call->params->v_output.data != NULL;

    return wanted && call->pass != FORWARD_ATTEND && !call->appended;
}

/* Floats between the rows of a chunk: K heads, then V heads. */
static uint32_t kv_stride(const forward_call *call, const vka_shard *shard)
{
    return shard->kv_heads * (call->layer->qk_pad + call->layer->v_pad);
}

uint64_t forward_kv_bytes(const forward_call *call, const vka_shard *shard, uint32_t rows)
{
    return forward_gives_kv(call) ? (uint64_t)rows * kv_stride(call, shard) * sizeof(float) : 0;
}

vka_status forward_record_kv(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                             epilogue_step *step, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    staged_tensor *rows = &device->device->scratch[EXEC_SCRATCH_KV][chunk->slot];

    step->target = rows->buffer;
    step->part = EPILOGUE_K_ROWS;
    step->target_part = 1;
    step->push = forward_k_push(call, device, step->push);
    if (layer->desc.k_out_norm != 0) {
        step->push.norm_offset += layer_norm_floats(layer, shard->kv_heads);
    }
    step->push.dst_stride = kv_stride(call, shard);
    step->push.dst_head_stride = layer->qk_pad;
    vka_status status = step_epilogue(rec, &device->set, step, error);
    if (status == VKA_OK) {
        step->part = EPILOGUE_V_ROWS;
        step->target_part = 2;
        step->push = forward_v_push(call, device, step->push);
        step->push.dst_offset = shard->kv_heads * layer->qk_pad;
        step->push.dst_head_stride = layer->v_pad;
        status = step_epilogue(rec, &device->set, step, error);
    }
    if (status == VKA_OK) {
        staged_pull(rows, rec, forward_kv_bytes(call, shard, chunk->rows));
    }
    return status;
}

/* Heads of one of K and V on their way to the caller's rows. */
typedef struct kv_job {
    const vka_tensor_out *out;
    vka_dtype cache;
    uint32_t first_row; /* of the call */
    uint32_t head, dim; /* number in the whole layer */
    const float *from;
    uint32_t stride;
} kv_job;

static void copy_rows(void *user, size_t begin, size_t end)
{
    const kv_job *job = user;
    uint64_t stride = job->out->row_stride != 0 ? job->out->row_stride : job->out->cols;
    float rounded[VKA_MAX_HEAD_DIM]; /* as the cache holds them; room for any type */

    for (size_t r = begin; r < end; r++) {
        uint64_t element = (job->first_row + r) * stride + (uint64_t)job->head * job->dim;
        unsigned char *to = (unsigned char *)job->out->data + element * vka_dtype_size(job->out->dtype);
        vka_convert(rounded, job->cache, job->from + r * job->stride, VKA_F32, job->dim);
        vka_convert(to, job->out->dtype, rounded, job->cache, job->dim);
    }
}

static bool holds(const vka_shard *shard, uint32_t head)
{
    for (uint32_t i = 0; i < shard->kv_heads; i++) {
        if (shard->kv_head[i] == head) {
            return true;
        }
    }
    return false;
}

/* A head that several devices hold comes from the first. */
static bool gives(const forward_call *call, uint32_t device, uint32_t head)
{
    for (uint32_t d = 0; d < device; d++) {
        if (holds(&call->devices[d].shard->shard, head)) {
            return false;
        }
    }
    return true;
}

static void copy_part(const forward_call *call, const forward_chunk *chunk, const forward_device *device, bool v)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    const float *rows = staged_host(&device->device->scratch[EXEC_SCRATCH_KV][chunk->slot]);
    uint32_t pad = v ? layer->v_pad : layer->qk_pad, first = v ? shard->kv_heads * layer->qk_pad : 0;
    const vka_tensor_out *out = v ? &call->params->v_output : &call->params->k_output;

    for (uint32_t h = 0; out->data != NULL && h < shard->kv_heads; h++) {
        kv_job job = {.out = out,
                      .cache = call->cache->dtype,
                      .first_row = chunk->begin.total,
                      .head = shard->kv_head[h],
                      .dim = v ? layer->desc.v_head_dim : layer->desc.head_dim,
                      .from = rows + first + h * pad,
                      .stride = kv_stride(call, shard)};
        if (gives(call, device->index, job.head)) {
            vka_parallel_for(chunk->rows, ROWS_PER_TASK, copy_rows, &job);
        }
    }
}

vka_status forward_give_kv(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && forward_gives_kv(call) && d < call->context->device_count; d++) {
        const forward_device *device = &call->devices[d];
        if (forward_idle(device)) {
            continue;
        }
        status = staged_finish(&device->device->scratch[EXEC_SCRATCH_KV][chunk->slot],
                               forward_kv_bytes(call, &device->shard->shard, chunk->rows), error);
        if (status == VKA_OK) {
            copy_part(call, chunk, device, false);
            copy_part(call, chunk, device, true);
        }
    }
    return status;
}
