/* See latent.h. */
#include "exec/latent.h"

#include "exec/rows.h"

/* ---- sizes ---- */

static uint32_t q_columns(const vka_layer *layer, uint32_t q_heads)
{
    return q_heads * (layer->latent.plain + layer->latent.rotary);
}

uint32_t latent_q_stride(const vka_layer *layer, const vka_shard *shard)
{
    return layer->latent.rank > 0 ? rows_stride(q_columns(layer, shard->q_heads)) : 0;
}

uint64_t latent_widest_row(const vka_layer *layer, uint32_t q_heads)
{
    uint64_t columns = (uint64_t)q_columns(layer, q_heads) + layer->latent.rank + layer->qk_pad;

    return layer_is_latent(layer) ? rows_stride((uint32_t)columns) : 0;
}

/* Multiply-adds of one row. */
static double up_work(const vka_layer *layer, uint32_t q_heads, uint32_t side)
{
    return (double)q_heads * layer->latent.latent * side;
}

double latent_projection_flops(const vka_layer *layer, uint32_t q_heads)
{
    const vka_latent *part = &layer->latent;
    double hidden = layer->hidden_pad, q = q_columns(layer, q_heads);
    double down = (part->rank > 0 ? part->rank : q) + layer->qk_pad;

    return 2 * (hidden * down + part->rank * q + up_work(layer, q_heads, part->plain) +
                up_work(layer, q_heads, part->value) + hidden * q_heads * layer->o_pad);
}

void latent_epilogues(const vka_layer *layer, epilogue_kind kinds[EPILOGUE_PARTS])
{
    const epilogue_kind turned = {.rotary_dim = call_rotary_dim(&layer->desc),
                                  .interleaved = layer->desc.rope_pairing == VKA_ROPE_INTERLEAVED};

    kinds[EPILOGUE_Q] = turned;
    kinds[EPILOGUE_K] = turned;
    kinds[EPILOGUE_K].rotary_offset = layer->latent.latent;
    kinds[EPILOGUE_K].paged = true;
    kinds[EPILOGUE_K].norm = true;
    kinds[EPILOGUE_K].norm_dim = layer->desc.kv_lora_rank;
    kinds[EPILOGUE_Q_LATENT] = (epilogue_kind){.norm = true};
}

/* ---- steps ---- */

static void count_projection(forward_call *call, const forward_chunk *chunk, const forward_device *device,
                             vka_stage stage, const weight_matrix *weights)
{
    double rows = chunk->rows, cells = (double)weights->rows * weights->depth;
    double blocks = weights->block_rows > 0 ? (double)weights->rows / weights->block_rows : 1;

    timing_work(&call->timing, device->index, stage, 2 * rows * cells,
                rows * (weights->rows + blocks * weights->depth) * sizeof(float) +
                    cells * (double)vka_dtype_size(weights->dtype));
}

vka_status latent_record_q(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                           vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    uint32_t stride = rows_stride(layer->latent.rank);
    gpu_buffer *latent = forward_scratch(device, chunk, EXEC_SCRATCH_Q_LATENT);
    const epilogue_step norm = {.part = EPILOGUE_Q_LATENT,
                                .push = {.rows = chunk->rows,
                                         .heads = 1,
                                         .head_dim = layer->desc.q_lora_rank,
                                         .head_pad = layer->latent.rank,
                                         .src_stride = layer_qkv_columns(layer, shard),
                                         .norm_eps = (float)layer->desc.norm_eps,
                                         .record_words = call_record_words(&layer->desc),
                                         .dst_stride = stride},
                                .call = forward_scratch(device, chunk, EXEC_SCRATCH_CALL),
                                .constants = device->shard->constants,
                                .source = forward_scratch(device, chunk, EXEC_SCRATCH_QKV),
                                .target = latent};
    const projection_step up = {.x = latent,
                                .x_stride = stride,
                                .weights = &device->shard->q_up,
                                .depth = layer->latent.rank,
                                .y = forward_scratch(device, chunk, EXEC_SCRATCH_Q_UP),
                                .y_stride = latent_q_stride(layer, shard),
                                .y_part = 1,
                                .rows = chunk->rows};
    vka_status status = step_epilogue(rec, &device->set, &norm, error);

    count_projection(call, chunk, device, VKA_STAGE_QKV, up.weights);
    return status == VKA_OK ? step_projection(rec, &device->set, &up, error) : status;
}

/* Hazard parts of the queries: the two steps below fill different columns. */
enum { PART_ROTARY = 1, PART_LATENT };

vka_status latent_record_queries(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                 vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    const vka_latent *part = &layer->latent;
    bool from_latent = part->rank > 0;
    gpu_buffer *q = forward_scratch(device, chunk, from_latent ? EXEC_SCRATCH_Q_UP : EXEC_SCRATCH_QKV);
    uint32_t q_stride = from_latent ? latent_q_stride(layer, shard) : layer_qkv_columns(layer, shard);
    gpu_buffer *queries = forward_scratch(device, chunk, EXEC_SCRATCH_Q);
    const epilogue_step turn = {.part = EPILOGUE_Q,
                                .push = {.rows = chunk->rows,
                                         .heads = shard->q_heads,
                                         .head_dim = layer->desc.rotary_dim,
                                         .head_pad = part->rotary,
                                         .src_offset = shard->q_heads * part->plain,
                                         .src_stride = q_stride,
                                         .record_words = call_record_words(&layer->desc),
                                         .dst_offset = part->latent,
                                         .dst_stride = shard->q_heads * layer->qk_pad,
                                         .dst_head_stride = layer->qk_pad},
                                .call = forward_scratch(device, chunk, EXEC_SCRATCH_CALL),
                                .constants = device->shard->constants,
                                .source = q,
                                .target = queries,
                                .target_part = PART_ROTARY};
    const projection_step absorb = {.x = q,
                                    .x_stride = q_stride,
                                    .x_step = part->plain,
                                    .weights = &device->shard->k_up,
                                    .depth = part->plain,
                                    .y = queries,
                                    .y_stride = shard->q_heads * layer->qk_pad,
                                    .y_step = layer->qk_pad,
                                    .y_part = PART_LATENT,
                                    .rows = chunk->rows};
    vka_status status = step_epilogue(rec, &device->set, &turn, error);

    count_projection(call, chunk, device, VKA_STAGE_EPILOGUE, absorb.weights);
    return status == VKA_OK ? step_projection(rec, &device->set, &absorb, error) : status;
}

vka_status latent_record_values(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                vka_error *error)
{
    const vka_layer *layer = call->layer;
    const vka_shard *shard = &device->shard->shard;
    const projection_step values = {.x = forward_scratch(device, chunk, EXEC_SCRATCH_ATTENTION),
                                    .x_stride = layer_attention_stride(layer, shard),
                                    .x_step = layer->latent.latent,
                                    .weights = &device->shard->v_up,
                                    .depth = layer->latent.latent,
                                    .y = forward_scratch(device, chunk, EXEC_SCRATCH_VALUES),
                                    .y_stride = layer_values_stride(layer, shard),
                                    .y_step = layer->latent.value,
                                    .y_part = 1,
                                    .rows = chunk->rows};

    count_projection(call, chunk, device, VKA_STAGE_ATTENTION, values.weights);
    return step_projection(rec, &device->set, &values, error);
}
