/* A call of a layer: pages are taken for all its tokens first, then it runs chunk by chunk: every device is submitted
 * before any is waited for, the partials are added, and the sequences grow. A failure anywhere gives back what was
 * taken. */
#include "exec/forward.h"

#include "base/clock.h"
#include "base/error.h"
#include "exec/buffer.h"
#include "model/rope.h"

static const vka_batch_entry *entry_at(const forward_call *call, uint32_t index)
{
    return &call->params->batch.entries[index];
}

/* RoPE types that turn long sequences in another way than short ones: keys of both kinds do not go together. */
static vka_status check_rope_length(const forward_call *call, const vka_batch_entry *entry,
                                    const page_sequence *sequence, uint32_t past, vka_error *error)
{
    uint32_t limit = rope_length_limit(&call->layer->desc), length = past + entry->new_tokens;
    uint32_t turned_for = sequence->turned_for[call->params->cache_layer];

    if (past == 0 || (turned_for > limit) == (length > limit)) {
        return VKA_OK;
    }
    return vka_fail(error, VKA_ERR_ARGUMENT,
                    "sequence %u holds %u keys that were turned for a length of %u and shall get %u more: RoPE is "
                    "another one past %u tokens; truncate the sequence to 0 and prefill it again",
                    entry->sequence, past, turned_for, entry->new_tokens, limit);
}

static vka_status enter_sequence(forward_call *call, uint32_t index, vka_error *error)
{
    const vka_batch_entry *entry = entry_at(call, index);
    page_sequence *sequence = page_sequence_get(&call->cache->pool, entry->sequence, error);

    if (sequence == NULL) {
        return VKA_ERR_ARGUMENT;
    }
    if (sequence->in_call) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "sequence %u is twice in the batch", entry->sequence);
    }
    uint32_t past = sequence->lengths[call->params->cache_layer];
    uint32_t most = INT32_MAX - past;
    if (entry->new_tokens == 0 || entry->new_tokens > most || entry->new_tokens > INT32_MAX - call->rows) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "sequence %u has %u tokens and shall get %u: expected 1 to %u new ones, and 2^31 - 1 in all",
                        entry->sequence, past, entry->new_tokens, most);
    }
    vka_status status = check_rope_length(call, entry, sequence, past, error);
    if (status != VKA_OK) {
        return status;
    }
    sequence->in_call = true;
    call->rows += entry->new_tokens;
    call->context->call.sequences[index] =
        (call_sequence){.rows = entry->new_tokens, .position = past, .keys = past + entry->new_tokens};
    return page_sequence_grow(&call->cache->pool, sequence, past + entry->new_tokens, error);
}

/* Takes the pages of the whole batch. */
static vka_status enter_batch(forward_call *call, vka_error *error)
{
    uint32_t count = call->params->batch.count;
    vka_status status = call_reserve_sequences(call->context, count, error);

    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        status = enter_sequence(call, i, error);
    }
    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        call->context->call.sequences[i].pages = call->cache->pool.sequences[entry_at(call, i)->sequence].pages;
    }
    return status;
}

/* Ends the call for every sequence; after a failure they are as they were before it. */
static void leave_batch(forward_call *call, bool failed)
{
    for (uint32_t i = 0; i < call->params->batch.count; i++) {
        uint32_t id = entry_at(call, i)->sequence;
        page_sequence *sequence = id < call->cache->pool.sequence_capacity ? &call->cache->pool.sequences[id] : NULL;
        if (sequence == NULL || !sequence->used || !sequence->in_call) {
            continue;
        }
        const call_sequence *taken = &call->context->call.sequences[i];
        sequence->in_call = false;
        if (failed) {
            sequence->lengths[call->params->cache_layer] = (uint32_t)taken->position;
            page_sequence_settle(&call->cache->pool, sequence);
        } else {
            sequence->turned_for[call->params->cache_layer] = taken->keys;
        }
    }
}

/* The sequences of a finished chunk hold its rows now. */
static void grow_sequences(forward_call *call, const forward_chunk *chunk)
{
    for (uint32_t i = chunk->begin.sequence; i <= chunk->end.sequence && i < call->params->batch.count; i++) {
        const call_sequence *sequence = &call->context->call.sequences[i];
        uint32_t rows = i < chunk->end.sequence ? sequence->rows : chunk->end.row;
        call->cache->pool.sequences[entry_at(call, i)->sequence].lengths[call->params->cache_layer] =
            (uint32_t)sequence->position + rows;
    }
}

static epilogue_kind head_epilogue(const vka_layer *layer, bool paged)
{
    return (epilogue_kind){.rotary_dim = call_rotary_dim(&layer->desc),
                           .paged = paged,
                           .bias = layer->has_bias,
                           .norm = layer->desc.qk_norm == VKA_QK_NORM_PER_HEAD,
                           .rotary_offset = layer->desc.rotary_offset,
                           .interleaved = layer->desc.rope_pairing == VKA_ROPE_INTERLEAVED,
                           .clip = (float)layer->desc.clip_qkv};
}

static pipeline_shape layer_shape(const vka_layer *layer, const vka_cache *cache)
{
    const epilogue_kind v = {.paged = true, .bias = layer->has_bias, .clip = (float)layer->desc.clip_qkv};

    return (pipeline_shape){
        .kernels = PIPELINES_LAYER | 1u << VKA_KERNEL_PACK,
        .weight_dtype = layer->weight_dtype,
        .cache_dtype = cache->dtype,
        .pack_dtype = VKA_F32,
        .attention = {.qk_pad = layer->qk_pad, .v_pad = layer->v_pad},
        .epilogue =
            {[EPILOGUE_Q] = head_epilogue(layer, false), [EPILOGUE_K] = head_epilogue(layer, true), [EPILOGUE_V] = v},
        .reproducible = layer->reproducible};
}

static vka_status prepare_devices(forward_call *call, vka_error *error)
{
    const pipeline_shape shape = layer_shape(call->layer, call->cache);
    double since = vka_clock_ms();
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        forward_device *device = &call->devices[d];
        device->device = &call->context->devices[d];
        device->shard = &call->layer->devices[d];
        device->index = d;
        if (!forward_idle(device)) {
            status = pipelines_get(call->context, device->device, &shape, &device->set, error);
        }
    }
    vka_status waited = exec_wait_all(call->context, status == VKA_OK ? error : NULL);
    timing_first(&call->timing, since);
    return status == VKA_OK ? waited : status;
}

/* After the pipelines are chosen: what the planner needs to know. */
static void start_planner(forward_call *call)
{
    chunk_planner *planner = &call->planner;

    planner->context = call->context;
    planner->sequence_count = call->params->batch.count;
    planner->records = (call_records){.desc = &call->layer->desc,
                                      .positions = call->params->positions,
                                      .axes = call->params->position_rows,
                                      .rows = call->rows};
    planner->page_size = call->cache->pool.page_size;
    planner->pages_per_slab = call->cache->pool.pages_per_slab;
    planner->limits = forward_chunk_limits(call);
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            planner->devices[d] = forward_plan_device(call, &call->devices[d]);
        }
    }
}

/* Every device is submitted before any is waited for. */
static vka_status submit_chunk(forward_call *call, forward_chunk *chunk, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            status = forward_submit(call, chunk, &call->devices[d], error);
        }
    }
    timing_chunk(&call->timing);
    return status;
}

static vka_status wait_chunk(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        exec_device *device = call->devices[d].device;
        if (chunk->tickets[d] == 0) {
            continue;
        }
        vka_status status = exec_wait(device, chunk->tickets[d], error);
        if (status != VKA_OK) {
            return status;
        }
        timing_read_gpu(&call->timing, device->gpu, d);
    }
    return VKA_OK;
}

static vka_status finish_chunk(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    vka_status status = wait_chunk(call, chunk, error);

    if (status == VKA_OK) {
        status = forward_exchange(call, chunk, error);
    }
    if (status == VKA_OK) {
        grow_sequences(call, chunk);
        status = call->params->trace != NULL ? forward_trace(call, chunk, error) : VKA_OK;
    }
    return status;
}

static forward_chunk planned_chunk(const chunk_planner *planner, uint32_t number)
{
    return (forward_chunk){
        .begin = planner->begin, .end = planner->cursor, .rows = planner->rows, .slot = number % EXEC_SLOTS};
}

/* While the devices work on one chunk, the host plans and submits the next and then adds up the one before. A trace
 * wants the scratch memory of its chunk as it was, so then each is finished before the next begins. */
static vka_status run_chunks(forward_call *call, vka_error *error)
{
    forward_chunk chunks[EXEC_SLOTS];
    uint32_t submitted = 0, finished = 0, ahead = call->params->trace != NULL ? 0 : EXEC_SLOTS - 1;
    vka_status status = planner_next(&call->planner, error);

    while (status == VKA_OK && call->planner.rows > 0) {
        forward_chunk *chunk = &chunks[submitted % EXEC_SLOTS];
        *chunk = planned_chunk(&call->planner, submitted++);
        status = submit_chunk(call, chunk, error);
        if (status == VKA_OK && submitted - finished > ahead) {
            status = finish_chunk(call, &chunks[finished++ % EXEC_SLOTS], error);
        }
        if (status == VKA_OK) {
            status = planner_next(&call->planner, error);
        }
    }
    while (status == VKA_OK && finished < submitted) {
        status = finish_chunk(call, &chunks[finished++ % EXEC_SLOTS], error);
    }
    return status;
}

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

static vka_status check_matrix(const forward_call *call, const char *name, vka_dtype dtype, uint64_t rows,
                               uint64_t cols, uint64_t stride, vka_error *error)
{
    uint32_t hidden = call->layer->desc.hidden_size;

    if (vka_dtype_size(dtype) == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s has dtype %d, expected F32, F16 or BF16", name, (int)dtype);
    }
    if (rows != call->rows || cols != hidden || (stride != 0 && stride < cols)) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s is [%llu, %llu] with row stride %llu, the batch needs [%u, %u] with a stride of 0 or at "
                        "least %u",
                        name, (unsigned long long)rows, (unsigned long long)cols, (unsigned long long)stride,
                        call->rows, hidden, hidden);
    }
    return VKA_OK;
}

static vka_status check_tensors(const forward_call *call, vka_error *error)
{
    const vka_tensor *in = &call->params->input;
    const vka_tensor_out *out = &call->params->output;
    vka_status status = VKA_OK;

    if (call->params->position_rows == 3 && !rope_has_axes(&call->layer->desc)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "position_rows is 3, but the layer has no mrope_section: expected 1");
    }
    if (in->data != NULL) {
        status = check_matrix(call, "input", in->dtype, in->rows, in->cols, in->row_stride, error);
    }
    if (status == VKA_OK && out->data != NULL) {
        status = check_matrix(call, "output", out->dtype, out->rows, out->cols, out->row_stride, error);
    }
    if (status == VKA_OK) {
        status = check_buffers(call, call->params->input_buffers, "input_buffers", error);
    }
    return status == VKA_OK ? check_buffers(call, call->params->output_buffers, "output_buffers", error) : status;
}

static vka_status run_batch(forward_call *call, vka_error *error)
{
    vka_status status = check_tensors(call, error);

    if (status == VKA_OK) {
        status = prepare_devices(call, error);
    }
    if (status == VKA_OK) {
        start_planner(call);
        status = run_chunks(call, error);
    }
    if (status != VKA_OK) {
        (void)exec_wait_all(call->context, NULL);
    }
    return status;
}

vka_status exec_forward(const vka_forward_params *params, vka_error *error)
{
    forward_call call = {
        .params = params, .context = params->layer->context, .layer = params->layer, .cache = params->cache};
    vka_status status = exec_cache_check(call.cache, call.layer, error);

    if (status == VKA_OK && params->cache_layer >= call.cache->pool.layers) {
        status = vka_fail(error, VKA_ERR_ARGUMENT, "cache_layer is %u, the cache has %u layers", params->cache_layer,
                          call.cache->pool.layers);
    }
    if (status != VKA_OK) {
        return status;
    }
    timing_begin(&call.timing, params->timing, call.context->device_count);
    status = enter_batch(&call, error);
    if (status == VKA_OK) {
        status = run_batch(&call, error);
    }
    leave_batch(&call, status != VKA_OK);
    timing_end(&call.timing);
    return status;
}

vka_status exec_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error)
{
    const pipeline_shape shape = layer_shape(layer, cache);
    pipeline_set set;
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < layer->context->device_count; d++) {
        if (layer->devices[d].shard.ranks > 0) {
            status = pipelines_get(layer->context, &layer->context->devices[d], &shape, &set, error);
        }
    }
    vka_status waited = exec_wait_all(layer->context, status == VKA_OK ? error : NULL);
    return status == VKA_OK ? waited : status;
}
