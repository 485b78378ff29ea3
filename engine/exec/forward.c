/* A call of a layer: pages are taken for all its tokens first, then it runs chunk by chunk: every device is submitted
 * before any is waited for, the partials are added, and the sequences grow. A failure anywhere gives back what was
 * taken. */
#include "exec/forward.h"

#include "base/clock.h"
#include "base/error.h"

static attention_kind attention_of(const vka_layer *layer)
{
    return (attention_kind){.qk_pad = layer->qk_pad,
                            .v_pad = layer->v_pad,
                            .v_stride = layer->v_stored > 0 ? layer->v_stored : layer->qk_pad,
                            .softcap = layer->desc.softcap != 0,
                            .alibi = layer->desc.alibi != 0,
                            .sinks = layer->desc.sinks != 0,
                            .gate = layer->desc.gate != VKA_GATE_NONE};
}

static pipeline_shape layer_shape(const vka_layer *layer, const vka_cache *cache, bool gives_kv)
{
    uint32_t cached = 1u << EPILOGUE_Q | 1u << EPILOGUE_K | (layer->v_stored > 0 ? 1u << EPILOGUE_V : 0) |
                      (layer->latent.rank > 0 ? 1u << EPILOGUE_Q_LATENT : 0);
    uint32_t given = 1u << EPILOGUE_K_ROWS | 1u << EPILOGUE_V_ROWS;
    pipeline_shape shape = {.kernels = PIPELINES_LAYER | 1u << VKA_KERNEL_PACK,
                            .weight_dtype = layer->weight_dtype,
                            .cache_dtype = cache->dtype,
                            .pack_dtype = VKA_F32,
                            .attention = attention_of(layer),
                            .epilogues = (gives_kv ? cached | given : cached) |
                                         (forward_norms_rows(layer) ? 1u << EPILOGUE_SQUARES : 0) |
                                         (layer->desc.gate != VKA_GATE_NONE ? 1u << EPILOGUE_GATE : 0),
                            .reproducible = layer->reproducible};

    forward_epilogue_kinds(layer, shape.epilogue);
    return shape;
}

static vka_status prepare_devices(forward_call *call, vka_error *error)
{
    const pipeline_shape shape = layer_shape(call->layer, call->cache, forward_gives_kv(call));
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

/* After the pipelines are chosen: what the planner needs to know for a pass, from the first row on. */
static void start_pass(forward_call *call, forward_pass pass)
{
    chunk_planner *planner = &call->planner;

    call->pass = pass;
    *planner = (chunk_planner){.context = call->context,
                               .sequence_count = forward_list_sequences(call),
                               .records = {.desc = &call->layer->desc,
                                           .paged = pass != FORWARD_ATTEND,
                                           .positions = call->params->positions,
                                           .axes = call->params->position_rows,
                                           .rows = call->rows},
                               .page_size = call->cache->pool.page_size,
                               .pages_per_slab = call->cache->pool.pages_per_slab,
                               .limits = forward_chunk_limits(call),
                               .append_only = pass == FORWARD_APPEND};
    for (uint32_t d = 0; d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            planner->devices[d] = forward_plan_device(call, &call->devices[d]);
        }
    }
}

/* Every device is submitted before any is waited for. */
static vka_status submit_part(forward_call *call, forward_chunk *chunk, forward_part part, vka_error *error)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < call->context->device_count; d++) {
        if (!forward_idle(&call->devices[d])) {
            status = forward_submit(call, chunk, &call->devices[d], part, error);
        }
    }
    return status;
}

static vka_status wait_chunk(forward_call *call, const forward_chunk *chunk, forward_part part, vka_error *error)
{
    timing_mark first = part == FORWARD_PART_REST ? MARK_EPILOGUE : MARK_UPLOAD;
    timing_mark last = part == FORWARD_PART_SQUARES ? MARK_QKV : MARK_DOWNLOAD;

    for (uint32_t d = 0; d < call->context->device_count; d++) {
        exec_device *device = call->devices[d].device;
        if (chunk->tickets[d] == 0) {
            continue;
        }
        vka_status status = exec_wait(device, chunk->tickets[d], error);
        if (status != VKA_OK) {
            return status;
        }
        timing_read_gpu(&call->timing, device->gpu, d, first, last);
    }
    return VKA_OK;
}

/* One submission a device; with a QK-norm over the full width two, and an exchange between them. */
static vka_status submit_chunk(forward_call *call, forward_chunk *chunk, vka_error *error)
{
    vka_status status = VKA_OK;

    timing_chunk(&call->timing);
    if (!forward_norms_rows(call->layer)) {
        return submit_part(call, chunk, FORWARD_PART_ALL, error);
    }
    status = submit_part(call, chunk, FORWARD_PART_SQUARES, error);
    if (status == VKA_OK) {
        status = wait_chunk(call, chunk, FORWARD_PART_SQUARES, error);
    }
    if (status == VKA_OK) {
        status = forward_exchange_squares(call, chunk, error);
    }
    return status == VKA_OK ? submit_part(call, chunk, FORWARD_PART_REST, error) : status;
}

static vka_status finish_chunk(forward_call *call, const forward_chunk *chunk, vka_error *error)
{
    forward_part part = forward_norms_rows(call->layer) ? FORWARD_PART_REST : FORWARD_PART_ALL;
    vka_status status = wait_chunk(call, chunk, part, error);

    if (status == VKA_OK) {
        status = forward_give_kv(call, chunk, error);
    }
    if (status == VKA_OK && call->pass != FORWARD_APPEND) {
        status = forward_exchange(call, chunk, error);
    }
    if (status == VKA_OK && !call->appended) {
        forward_grow(call, chunk);
    }
    if (status == VKA_OK && call->params->trace != NULL &&
        (call->pass != FORWARD_APPEND || forward_reads_kv_input(call))) {
        status = forward_trace(call, chunk, error);
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

/* Appends all tokens of the call. */
static vka_status append_all(forward_call *call, vka_error *error)
{
    start_pass(call, FORWARD_APPEND);
    vka_status status = run_chunks(call, error);

    if (status == VKA_OK) {
        call->appended = true;
        forward_grow_all(call);
    }
    return status;
}

/* Whether the call is one chunk. */
static vka_status fits_one_chunk(forward_call *call, bool *fits, vka_error *error)
{
    start_pass(call, FORWARD_WHOLE);
    vka_status status = planner_next(&call->planner, error);

    *fits = call->planner.rows == call->rows;
    return status;
}

static vka_status run_passes(forward_call *call, vka_error *error)
{
    bool cross = call->layer->desc.attend == VKA_ATTEND_CROSS, at_once = !cross;
    vka_status status = VKA_OK;

    if (call->layer->desc.attend == VKA_ATTEND_FULL) {
        status = fits_one_chunk(call, &at_once, error);
    }
    if (status == VKA_OK && !at_once && call->kv_rows > 0) {
        status = append_all(call, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    /* A trace wants K and V of its rows as well: they are appended once more, with the same values. */
    start_pass(call, at_once || (!cross && call->params->trace != NULL) ? FORWARD_WHOLE : FORWARD_ATTEND);
    return run_chunks(call, error);
}

static vka_status run_batch(forward_call *call, vka_error *error)
{
    vka_status status = forward_check(call, error);

    if (status == VKA_OK) {
        status = prepare_devices(call, error);
    }
    if (status == VKA_OK) {
        status = run_passes(call, error);
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
    status = forward_enter(&call, error);
    if (status == VKA_OK) {
        status = run_batch(&call, error);
    }
    forward_leave(&call, status != VKA_OK);
    timing_end(&call.timing);
    return status;
}

vka_status exec_prewarm(vka_layer *layer, const vka_cache *cache, vka_error *error)
{
    const pipeline_shape shape = layer_shape(layer, cache, layer->desc.k_out_norm != 0);
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
