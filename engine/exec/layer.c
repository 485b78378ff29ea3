/* Creation of a layer: the layout is judged first (no device is touched), then every tensor is held against the limits
 * of its device, and only then is memory taken. */
#include "exec/layer.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "exec/limits.h"
#include "exec/rows.h"
#include "exec/shard_weights.h"

uint32_t layer_k_column(const vka_layer *layer, const vka_shard *shard)
{
    if (layer_is_latent(layer)) {
        return layer->latent.rank > 0 ? layer->latent.rank
                                      : shard->q_heads * (layer->latent.plain + layer->latent.rotary);
    }
    return shard->q_heads * layer->qk_pad + layer_gate_columns(layer, shard);
}

uint32_t layer_v_column(const vka_layer *layer, const vka_shard *shard)
{
    return layer_k_column(layer, shard) + shard->kv_heads * layer->qk_pad;
}

uint32_t layer_qkv_columns(const vka_layer *layer, const vka_shard *shard)
{
    return layer_v_column(layer, shard) + shard->kv_heads * layer->v_stored;
}

uint32_t layer_k_norm(const vka_layer *layer, const vka_shard *shard)
{
    return layer_is_latent(layer) ? layer->latent.rank
                                  : layer_qkv_columns(layer, shard) + layer_norm_floats(layer, shard->q_heads);
}

uint32_t layer_norm_floats(const vka_layer *layer, uint32_t heads)
{
    return layer->desc.qk_norm == VKA_QK_NORM_FULL_WIDTH ? heads * layer->qk_pad : layer->qk_pad;
}

uint64_t layer_constants(const vka_layer *layer, const vka_shard *shard)
{
    return (uint64_t)layer_qkv_columns(layer, shard) + layer_norm_floats(layer, shard->q_heads) +
           layer_norm_floats(layer, shard->kv_heads) + layer->qk_pad;
}

uint32_t layer_gate_columns(const vka_layer *layer, const vka_shard *shard)
{
    return layer->desc.gate != VKA_GATE_NONE ? shard->q_heads * layer->v_pad : 0;
}

uint32_t layer_attention_stride(const vka_layer *layer, const vka_shard *shard)
{
    return rows_stride(shard->q_heads * layer->v_pad);
}

uint32_t layer_values_stride(const vka_layer *layer, const vka_shard *shard)
{
    return rows_stride(shard->q_heads * layer->o_pad);
}

uint32_t layer_partials(const vka_layer *layer, const vka_shard *shard)
{
    return layer->reproducible || shard->ranks == 0 ? shard->ranks : 1;
}

static vka_status make_layout(vka_layer *layer, const vka_layer_params *params, vka_error *error)
{
    vka_context *context = layer->context;
    vka_status status;

    layer->rank_count = vka_grid_ranks(params->grid);
    layer->ranks = vka_alloc(&context->allocator, layer->rank_count > 0 ? layer->rank_count : 1, sizeof(*layer->ranks));
    layer->devices = vka_alloc(&context->allocator, context->device_count, sizeof(*layer->devices));
    layer->partials =
        vka_alloc(&context->allocator, (size_t)layer->rank_count + context->device_count, sizeof(*layer->partials));
    if (layer->ranks == NULL || layer->devices == NULL || layer->partials == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a table of %u ranks", layer->rank_count);
    }
    status = vka_partition(&layer->desc, params->grid, params->kv_policy, layer->ranks, layer->rank_count, error);
    if (status == VKA_OK) {
        status = vka_place(layer->ranks, layer->rank_count, context->device_count, params->place, error);
    }
    for (uint32_t d = 0; status == VKA_OK && d < context->device_count; d++) {
        status = vka_shard_create(&layer->devices[d].shard, &layer->desc, layer->ranks, layer->rank_count, d,
                                  &context->allocator, error);
    }
    return status;
}

static vka_status make_output_bias(vka_layer *layer, const vka_tensor *bias, vka_error *error)
{
    if (bias->data == NULL) {
        return VKA_OK;
    }
    layer->output_bias = vka_alloc(&layer->context->allocator, layer->desc.hidden_size, sizeof(float));
    if (layer->output_bias == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the output bias");
    }
    vka_convert(layer->output_bias, VKA_F32, bias->data, bias->dtype, layer->desc.hidden_size);
    return VKA_OK;
}

static vka_status check_params(const vka_layer_params *params, vka_error *error)
{
    if (params->grid.cp > 1 || params->grid.dp > 1) {
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "cp = %u, dp = %u: this release lays out cp and dp but runs tp only; set both to 1",
                        params->grid.cp, params->grid.dp);
    }
    if (params->weight_dtype > VKA_BF16) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "weight_dtype is %d, expected F32, F16, BF16 or the default",
                        (int)params->weight_dtype);
    }
    return VKA_OK;
}

static vka_status fill_layer(vka_layer *layer, const vka_layer_params *params, vka_error *error)
{
    vka_status status = make_layout(layer, params, error);

    if (status == VKA_OK) {
        status = vka_layer_weights_check(params->weights, &layer->desc, error);
    }
    for (uint32_t d = 0; status == VKA_OK && d < layer->context->device_count; d++) {
        status = limits_check_layer(layer, d, error);
    }
    if (status == VKA_OK) {
        status = make_output_bias(layer, &params->weights->o_bias, error);
    }
    for (uint32_t d = 0; status == VKA_OK && d < layer->context->device_count; d++) {
        if (layer->devices[d].shard.ranks > 0) {
            status = shard_weights_create(layer, d, params->weights, error);
        }
    }
    return status;
}

static void set_sizes(vka_layer *layer)
{
    const vka_layer_desc *desc = &layer->desc;
    const vka_latent latent = vka_latent_of(desc);
    bool is_latent = desc->kv_lora_rank > 0;

    layer->latent = latent;
    layer->k_dim = is_latent ? desc->kv_lora_rank + desc->rotary_dim : desc->head_dim;
    layer->v_dim = is_latent ? desc->kv_lora_rank : desc->v_head_dim;
    layer->qk_pad = is_latent ? latent.latent + latent.rotary : vka_pad8(desc->head_dim);
    layer->v_pad = is_latent ? latent.latent : vka_pad8(desc->v_head_dim);
    layer->v_stored = is_latent ? 0 : layer->v_pad;
    layer->o_pad = vka_pad8(desc->v_head_dim);
}

vka_status exec_layer_create(vka_layer **out, vka_context *context, const vka_layer_params *params, vka_error *error)
{
    vka_layer_desc desc = *params->desc;
    vka_status status = check_params(params, error);

    if (status == VKA_OK) {
        status = vka_layer_desc_resolve(&desc, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    vka_layer *layer = vka_alloc(&context->allocator, 1, sizeof(*layer));
    if (layer == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a layer");
    }
    layer->context = context;
    layer->desc = desc;
    layer->reproducible = params->reproducible != 0;
    layer->weight_dtype = params->weight_dtype != VKA_DTYPE_DEFAULT ? params->weight_dtype : params->weights->q.dtype;
    layer->hidden_pad = vka_pad8(desc.hidden_size);
    layer->hidden_stride = rows_stride(layer->hidden_pad);
    layer->kv_hidden_pad = vka_pad8(desc.kv_hidden_size);
    layer->kv_hidden_stride = rows_stride(layer->kv_hidden_pad);
    set_sizes(layer);
    layer->has_bias = params->weights->q_bias.data != NULL || params->weights->k_bias.data != NULL ||
                      params->weights->v_bias.data != NULL;
    status = fill_layer(layer, params, error);
    if (status != VKA_OK) {
        exec_layer_destroy(&layer);
        return status;
    }
    *out = layer;
    return VKA_OK;
}

void exec_layer_destroy(vka_layer **layer)
{
    if (layer == NULL || *layer == NULL) {
        return;
    }
    const vka_allocator *allocator = &(*layer)->context->allocator;
    for (uint32_t d = 0; (*layer)->devices != NULL && d < (*layer)->context->device_count; d++) {
        layer_device *device = &(*layer)->devices[d];
        gpu_buffer_destroy(&device->constants);
        vka_free(allocator, device->sinks);
        vka_free(allocator, device->slopes);
        matrix_destroy(&device->qkv, allocator);
        matrix_destroy(&device->kv, allocator);
        matrix_destroy(&device->output, allocator);
        matrix_destroy(&device->q_up, allocator);
        matrix_destroy(&device->k_up, allocator);
        matrix_destroy(&device->v_up, allocator);
        vka_shard_destroy(&device->shard, allocator);
    }
    vka_free(allocator, (*layer)->devices);
    vka_free(allocator, (*layer)->ranks);
    vka_free(allocator, (void *)(*layer)->partials);
    vka_free(allocator, (*layer)->output_bias);
    vka_free(allocator, *layer);
    *layer = NULL;
}
