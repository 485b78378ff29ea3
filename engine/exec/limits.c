/* See limits.h. */
#include "exec/limits.h"

#include "base/error.h"

vka_status limits_check(const vka_caps *caps, uint32_t position, uint64_t bytes, const char *what, const char *advice,
                        vka_error *error)
{
    if (bytes <= vka_caps_max_tensor(caps)) {
        return VKA_OK;
    }
    vka_status status =
        vka_fail(error, VKA_ERR_LIMIT,
                 "%s needs %llu bytes in one piece, device %u allows %llu (storage range %llu, buffer %llu, allocation "
                 "%llu): %s",
                 what, (unsigned long long)bytes, position, (unsigned long long)vka_caps_max_tensor(caps),
                 (unsigned long long)caps->max_range, (unsigned long long)caps->max_buffer,
                 (unsigned long long)caps->max_alloc, advice);
    if (error != NULL) {
        error->device = (int32_t)position;
    }
    return status;
}

vka_status limits_check_layer(const vka_layer *layer, uint32_t device, vka_error *error)
{
    const vka_caps *caps = gpu_device_caps(layer->context->devices[device].gpu);
    const vka_shard *shard = &layer->devices[device].shard;
    uint64_t columns = layer_qkv_columns(layer, shard);
    uint64_t q_columns = (uint64_t)shard->q_heads * layer->qk_pad + layer_gate_columns(layer, shard),
             o_columns = (uint64_t)shard->q_heads * layer->o_pad;
    const vka_latent *part = &layer->latent; /* zeros, which fit, unless attention is latent */
    uint64_t size = vka_dtype_size(layer->weight_dtype);
    const char *fewer_heads = "raise tp, or place fewer ranks on this device";
    const char *too_wide = "a row of hidden states cannot be cut; use another device";
    const struct {
        uint64_t bytes;
        const char *what, *advice;
    } pieces[] = {
        {matrix_group_bytes(layer->hidden_pad, layer->weight_dtype), "a group of eight rows of the QKV weights",
         too_wide},
        {matrix_group_bytes(layer->kv_hidden_pad, layer->weight_dtype), "a group of eight rows of the KV weights",
         too_wide},
        {layer->kv_hidden_stride * 4ull, "a row of the other sequence", too_wide},
        {matrix_group_bytes((uint32_t)o_columns, layer->weight_dtype),
         "a group of eight rows of the output projection weights", fewer_heads},
        {layer_constants(layer, shard) * 4, "the biases and norm weights", fewer_heads},
        {layer->hidden_stride * 4ull, "a row of hidden states", too_wide},
        {layer->hidden_pad * 4ull * layer_partials(layer, shard), "a row of the partial sums", too_wide},
        {columns * 4, "a row of the QKV projection", fewer_heads},
        {q_columns * 4, "a row of queries", fewer_heads},
        {layer_attention_stride(layer, shard) * 4ull, "a row of attention outputs", fewer_heads},
        {layer_values_stride(layer, shard) * 4ull, "a row of values", fewer_heads},
        {matrix_group_bytes(part->rank, layer->weight_dtype), "a group of eight rows of the query weights", too_wide},
        {(uint64_t)part->latent * part->plain * size, "the key weights of a head", too_wide},
        {(uint64_t)part->latent * part->value * size, "the value weights of a head", too_wide},
    };

    for (size_t i = 0; shard->ranks > 0 && i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        vka_status status = limits_check(caps, device, pieces[i].bytes, pieces[i].what, pieces[i].advice, error);
        if (status != VKA_OK) {
            return status;
        }
    }
    return VKA_OK;
}
