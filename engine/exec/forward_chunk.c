/* One chunk on one device: upload, QKV projection, epilogue with cache append, attention, output projection, download;
 * recorded as one submission. */
#include "exec/forward.h"

#include "base/clock.h"
#include "exec/buffer.h"
#include "exec/latent.h"
#include "exec/rows.h"

/* Which of a tensor's copies a chunk uses. */
static uint32_t slot_of(const forward_chunk *chunk, exec_scratch which)
{
    bool doubled = which == EXEC_SCRATCH_CALL || which == EXEC_SCRATCH_HIDDEN || which == EXEC_SCRATCH_KV ||
                   which == EXEC_SCRATCH_PARTIAL;

    return doubled ? chunk->slot : 0;
}

gpu_buffer *forward_scratch(const forward_device *device, const forward_chunk *chunk, exec_scratch which)
{
    return device->device->scratch[which][slot_of(chunk, which)].buffer;
}

/* What the rows of a pass are, on the host and on the device. */
typedef struct input_shape {
    const vka_tensor *tensor;
    uint32_t cols, pad, stride;
} input_shape;

static input_shape input_rows(const forward_call *call)
{
    const vka_layer *layer = call->layer;

    if (forward_reads_kv_input(call)) {
        return (input_shape){&call->params->kv_input, layer->desc.kv_hidden_size, layer->kv_hidden_pad,
                             layer->kv_hidden_stride};
    }
    return (input_shape){&call->params->input, layer->desc.hidden_size, layer->hidden_pad, layer->hidden_stride};
}

static vka_status reserve_scratch(const forward_call *call, const forward_chunk *chunk, forward_device *device,
                                  vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    uint64_t row = (uint64_t)chunk->rows * sizeof(float), attended = call->pass != FORWARD_APPEND ? row : 0;
    uint64_t latent = layer_is_latent(layer) ? row : 0;
    const struct {
        exec_scratch which;
        uint64_t bytes;
    } wanted[] = {
        {EXEC_SCRATCH_CALL,
         call_device_bytes(device->device, &call->planner.devices[device->index].heads, call->planner.shared_words)},
        {EXEC_SCRATCH_HIDDEN, row * input_rows(call).stride},
        {EXEC_SCRATCH_QKV, row * layer_qkv_columns(layer, shard)},
        {EXEC_SCRATCH_SQUARES, forward_squares_bytes(call, shard, chunk->rows)},
        {EXEC_SCRATCH_KV, forward_kv_bytes(call, shard, chunk->rows)},
        {EXEC_SCRATCH_Q, attended * (shard->q_heads * layer->qk_pad + layer_gate_columns(layer, shard))},
        {EXEC_SCRATCH_ATTENTION, attended * layer_attention_stride(layer, shard)},
        {EXEC_SCRATCH_Q_LATENT, latent * rows_stride(layer->latent.rank)},
        {EXEC_SCRATCH_Q_UP, latent * latent_q_stride(layer, shard)},
        {EXEC_SCRATCH_VALUES, latent * layer_values_stride(layer, shard)},
        {EXEC_SCRATCH_SPLIT, device->device->plan.slots * exec_slot_bytes(shard->q_heads, layer->v_pad)},
        {EXEC_SCRATCH_PARTIAL, attended * layer->hidden_pad * layer_partials(layer, shard)},
    };
    vka_status status = VKA_OK;

    for (size_t i = 0; status == VKA_OK && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (wanted[i].bytes > 0) {
            status = exec_scratch_reserve(device->device, wanted[i].which, slot_of(chunk, wanted[i].which),
                                          wanted[i].bytes, error);
        }
    }
    return status;
}

static vka_status upload_host(const forward_call *call, const forward_chunk *chunk, forward_device *device,
                              recorder *rec, vka_error *error)
{
    const input_shape input = input_rows(call);
    const row_range rows = {chunk->begin.total, chunk->rows, input.stride};
    staged_tensor *tensor = &device->device->scratch[EXEC_SCRATCH_HIDDEN][chunk->slot];

    return rows_upload(tensor, rec, input.tensor, rows, error);
}

static vka_status upload_device(const forward_call *call, const forward_chunk *chunk, forward_device *device,
                                recorder *rec, vka_error *error)
{
    uint32_t hidden = call->layer->desc.hidden_size;
    pack_push push = rows_pack(chunk->rows, hidden, hidden, call->layer->hidden_pad, call->layer->hidden_stride);

    push.src_offset = chunk->begin.total * hidden;

    return step_pack(rec, &device->set, &push, call->params->input_buffers[device->index]->gpu,
                     forward_scratch(device, chunk, EXEC_SCRATCH_HIDDEN), HAZARD_WHOLE, error);
}

static vka_status record_upload(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                vka_error *error)
{
    double since = vka_clock_ms();
    bool on_device = call->params->input_buffers != NULL && !forward_reads_kv_input(call);
    vka_status status =
        on_device ? upload_device(call, chunk, device, rec, error) : upload_host(call, chunk, device, rec, error);

    timing_host(&call->timing, device->index, VKA_STAGE_UPLOAD, since);
    timing_work(&call->timing, device->index, VKA_STAGE_UPLOAD, 0,
                (double)chunk->rows * input_rows(call).cols * sizeof(float));
    return status;
}

static double weight_bytes(const weight_matrix *matrix)
{
    return (double)matrix->rows * matrix->depth * (double)vka_dtype_size(matrix->dtype);
}

/* Rows of the input times one matrix, whose columns begin at `column` of the QKV rows. */
static vka_status record_projection(forward_call *call, const forward_chunk *chunk, forward_device *device,
                                    recorder *rec, const weight_matrix *weights, uint32_t column, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const input_shape input = input_rows(call);
    const projection_step step = {.x = forward_scratch(device, chunk, EXEC_SCRATCH_HIDDEN),
                                  .x_stride = input.stride,
                                  .weights = weights,
                                  .depth = input.pad,
                                  .y = forward_scratch(device, chunk, EXEC_SCRATCH_QKV),
                                  .y_offset = column,
                                  .y_stride = layer_qkv_columns(layer, &device->shard->shard),
                                  .y_part = column > 0 ? 1 + device->shard->qkv.panels : 1,
                                  .rows = chunk->rows};
    double rows = chunk->rows, cols = input.cols;

    timing_work(&call->timing, device->index, VKA_STAGE_QKV, 2 * rows * cols * weights->rows,
                rows * (cols + weights->rows) * sizeof(float) + weight_bytes(weights));
    return step_projection(rec, &device->set, &step, error);
}

static vka_status record_qkv(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                             vka_error *error)
{
    const layer_device *shard = device->shard;
    vka_status status = VKA_OK;

    if (call->pass != FORWARD_APPEND) {
        status = record_projection(call, chunk, device, rec, &shard->qkv, 0, error);
    }
    if (status == VKA_OK && call->layer->latent.rank > 0) {
        status = latent_record_q(call, chunk, device, rec, error);
    }
    if (status == VKA_OK && call->pass != FORWARD_ATTEND && shard->kv.panels > 0) {
        status =
            record_projection(call, chunk, device, rec, &shard->kv, layer_k_column(call->layer, &shard->shard), error);
    }
    return status;
}

static void count_attention(forward_call *call, const forward_chunk *chunk, const forward_device *device)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    double pairs = 0, keys = 0;

    for (uint32_t i = 0; i < call->planner.source_count; i++) {
        const tile_source *source = &call->context->call.sources[i];
        const call_sequence rows = {.rows = source->rows, .position = source->position, .keys = source->keys};
        for (uint32_t r = 0; r < source->rows; r++) {
            pairs += chunk_visible_keys(&rows, &call->planner.limits, r);
        }
        /* what some row sees: each sees at most one key more than the row before it */
        uint32_t read = chunk_visible_keys(&rows, &call->planner.limits, 0) + source->rows - 1;
        keys += read < source->keys ? read : source->keys;
    }
    double dims = (double)layer->k_dim + layer->v_dim, stored = layer->v_stored > 0 ? dims : layer->k_dim;
    timing_work(&call->timing, device->index, VKA_STAGE_ATTENTION, 2 * pairs * shard->q_heads * dims,
                dims * chunk->rows * shard->q_heads * sizeof(float) +
                    stored * keys * shard->kv_heads * (double)vka_dtype_size(call->cache->dtype));
}

static vka_status record_attention(forward_call *call, const forward_chunk *chunk, forward_device *device,
                                   recorder *rec, attention_step *step, vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    const cache_device *cache = &call->cache->devices[device->index];

    step->push = (attention_push){.heads = shard->q_heads,
                                  .q_stride = shard->q_heads * layer->qk_pad,
                                  .out_stride = layer_attention_stride(layer, shard),
                                  .lse_offset = VKA_NO_OFFSET,
                                  .page_size = call->cache->pool.page_size,
                                  .page_stride = cache->page_elements,
                                  .v_offset = cache->v_offset,
                                  .scale = (float)layer->desc.scale,
                                  .softcap = (float)layer->desc.softcap,
                                  .gate_offset = chunk->rows * shard->q_heads * layer->qk_pad,
                                  .gate_stride = layer_gate_columns(layer, shard),
                                  .left = call->planner.limits.keys.left,
                                  .right = call->planner.limits.keys.right};
    step->v_pad = layer->v_pad;
    step->q = forward_scratch(device, chunk, EXEC_SCRATCH_Q);
    step->out = forward_scratch(device, chunk, EXEC_SCRATCH_ATTENTION);
    step->split = forward_scratch(device, chunk, EXEC_SCRATCH_SPLIT);
    step->slabs = &cache->slabs[(size_t)call->params->cache_layer * call->cache->pool.slabs];
    count_attention(call, chunk, device);
    vka_status status = step_attention(rec, &device->set, step, error);
    return status == VKA_OK && layer_is_latent(layer) ? latent_record_values(call, chunk, device, rec, error) : status;
}

/* One partial for all ranks of the device, or one for each. */
static vka_status record_output(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    const weight_matrix *weights = &device->shard->output;
    uint32_t width = shard->q_heads * layer->o_pad, partials = layer_partials(layer, shard);
    double rows = chunk->rows, hidden = layer->desc.hidden_size;
    exec_scratch values = layer_is_latent(layer) ? EXEC_SCRATCH_VALUES : EXEC_SCRATCH_ATTENTION;
    vka_status status = VKA_OK;

    for (uint32_t p = 0; status == VKA_OK && p < partials; p++) {
        uint32_t begin = layer->reproducible ? shard->rank_q_begin[p] * layer->o_pad : 0;
        const projection_step step = {.x = forward_scratch(device, chunk, values),
                                      .x_column = begin,
                                      .x_stride = layer_values_stride(layer, shard),
                                      .weights = weights,
                                      .w_column = begin,
                                      .depth = layer->reproducible ? shard->rank_q_count[p] * layer->o_pad : width,
                                      .y = forward_scratch(device, chunk, EXEC_SCRATCH_PARTIAL),
                                      .y_offset = p * chunk->rows * layer->hidden_pad,
                                      .y_stride = layer->hidden_pad,
                                      .y_part = 1 + p * weights->panels,
                                      .rows = chunk->rows};
        status = step_projection(rec, &device->set, &step, error);
    }
    timing_work(&call->timing, device->index, VKA_STAGE_OUTPUT, 2 * rows * hidden * width,
                rows * (width + hidden * partials) * sizeof(float) + weight_bytes(weights));
    return status;
}

static void record_download(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec)
{
    staged_tensor *partial = &device->device->scratch[EXEC_SCRATCH_PARTIAL][chunk->slot];
    uint64_t bytes = (uint64_t)chunk->rows * call->layer->hidden_pad * sizeof(float) *
                     layer_partials(call->layer, &device->shard->shard);

    staged_pull(partial, rec, bytes);
    timing_work(&call->timing, device->index, VKA_STAGE_DOWNLOAD, 0, partial->staging != NULL ? (double)bytes : 0);
}

/* Upload and QKV projection. */
static vka_status record_front(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                               vka_error *error)
{
    vka_status status = record_upload(call, chunk, device, rec, error);

    timing_mark_gpu(&call->timing, rec, MARK_UPLOAD);
    if (status == VKA_OK) {
        status = record_qkv(call, chunk, device, rec, error);
    }
    return status;
}

/* Epilogue, attention, output projection. */
static vka_status record_back(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                              attention_step *attention, vka_error *error)
{
    bool attends = call->pass != FORWARD_APPEND;

    timing_mark_gpu(&call->timing, rec, MARK_QKV);
    vka_status status = forward_record_epilogue(call, chunk, device, rec, error);
    timing_mark_gpu(&call->timing, rec, MARK_EPILOGUE);
    if (status == VKA_OK && attends) {
        status = record_attention(call, chunk, device, rec, attention, error);
    }
    timing_mark_gpu(&call->timing, rec, MARK_ATTENTION);
    if (status == VKA_OK && attends) {
        status = record_output(call, chunk, device, rec, error);
    }
    timing_mark_gpu(&call->timing, rec, MARK_OUTPUT);
    if (status == VKA_OK && attends) {
        record_download(call, chunk, device, rec);
    }
    timing_mark_gpu(&call->timing, rec, MARK_DOWNLOAD);
    return status;
}

static vka_status record_part(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                              forward_part part, vka_error *error)
{
    attention_step attention = {0};
    vka_status status = VKA_OK;

    if (part != FORWARD_PART_REST) {
        timing_mark_gpu(&call->timing, rec, MARK_BEGIN);
    }
    if (part != FORWARD_PART_SQUARES) {
        status = call_write_device(call->context, device->device, chunk->slot, rec, &device->set,
                                   &call->planner.devices[device->index].heads, call->planner.shared_words, &attention,
                                   error);
    }
    if (status == VKA_OK && part != FORWARD_PART_REST) {
        status = record_front(call, chunk, device, rec, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    if (part != FORWARD_PART_SQUARES) {
        return record_back(call, chunk, device, rec, &attention, error);
    }
    status = forward_record_squares(call, chunk, device, rec, error);
    timing_mark_gpu(&call->timing, rec, MARK_QKV);
    return status;
}

vka_status forward_submit(forward_call *call, forward_chunk *chunk, forward_device *device, forward_part part,
                          vka_error *error)
{
    recorder rec;
    double since = vka_clock_ms();
    vka_status status = reserve_scratch(call, chunk, device, error);

    timing_first(&call->timing, since);
    if (status == VKA_OK) {
        status = recorder_begin(&rec, device->device->gpu, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    if (device->device->pending != 0) {
        recorder_follow(&rec);
    }
    status = record_part(call, chunk, device, &rec, part, error);
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    status = recorder_submit(&rec, &chunk->tickets[device->index], error);
    if (status == VKA_OK) {
        device->device->pending = chunk->tickets[device->index];
    }
    return status;
}
