/* See hf_mistakes.h: the weights. */
#include <stdlib.h>
#include <string.h>

#include "layer/hf_mistakes.h"

/* The same rows, those from `by` on first. */
static void *rotate_rows(vka_tensor *tensor, size_t by)
{
    size_t row = (size_t)tensor->cols * vka_dtype_size(tensor->dtype);
    size_t bytes = (size_t)tensor->rows * row;
    unsigned char *rotated = malloc(bytes);

    assert_true(tensor->row_stride == 0 || tensor->row_stride == tensor->cols);
    memcpy(rotated, (const unsigned char *)tensor->data + by * row, bytes - by * row);
    memcpy(rotated + bytes - by * row, tensor->data, by * row);
    tensor->data = rotated;
    return rotated;
}

static bool k_heads_in_another_order(hf_block *b, void **owned)
{
    if (b->desc.kv_heads == 1 || !b->weights.k.data)
        return false;
    *owned = rotate_rows(&b->weights.k, b->desc.head_dim);
    return true;
}

static bool v_heads_in_another_order(hf_block *b, void **owned)
{
    if (b->desc.kv_heads == 1 || !b->weights.v.data)
        return false;
    *owned = rotate_rows(&b->weights.v, b->desc.v_head_dim);
    return true;
}

static bool query_and_gate_swapped(hf_block *b, void **owned)
{
    if (b->desc.gate == VKA_GATE_NONE)
        return false;
    *owned = rotate_rows(&b->weights.q, b->desc.head_dim);
    return true;
}

static bool latent_weights_of_the_next_head(hf_block *b, void **owned)
{
    if (b->desc.kv_lora_rank == 0)
        return false;
    *owned = rotate_rows(&b->weights.kv_b, b->desc.head_dim - b->desc.rotary_dim + b->desc.v_head_dim);
    return true;
}

static bool latent_and_rotary_part_swapped(hf_block *b, void **owned)
{
    if (b->desc.kv_lora_rank == 0)
        return false;
    *owned = rotate_rows(&b->weights.kv_a, b->desc.kv_lora_rank);
    return true;
}

/* The same for a vector's elements. */
static void *rotate_elements(vka_tensor *vector, size_t by)
{
    vka_tensor column = {vector->data, vector->dtype, vector->cols, 1, 0};
    void *rotated = rotate_rows(&column, by);

    vector->data = rotated;
    return rotated;
}

static bool sinks_in_another_order(hf_block *b, void **owned)
{
    if (!b->weights.sinks.data)
        return false;
    *owned = rotate_elements(&b->weights.sinks, 1);
    return true;
}

static bool slopes_in_another_order(hf_block *b, void **owned)
{
    if (!b->weights.alibi_slopes.data)
        return false;
    *owned = rotate_elements(&b->weights.alibi_slopes, 1);
    return true;
}

static bool norm_of_another_head(hf_block *b, void **owned)
{
    if (b->desc.qk_norm != VKA_QK_NORM_FULL_WIDTH)
        return false;
    *owned = rotate_elements(&b->weights.k_norm, b->desc.head_dim);
    return true;
}

static bool drop(vka_tensor *tensor)
{
    bool there = tensor->data != NULL;

    tensor->data = NULL;
    return there;
}

static bool q_bias_dropped(hf_block *b, void **owned)
{
    (void)owned;
    return drop(&b->weights.q_bias);
}

static bool v_bias_dropped(hf_block *b, void **owned)
{
    (void)owned;
    return drop(&b->weights.v_bias);
}

static bool o_bias_dropped(hf_block *b, void **owned)
{
    (void)owned;
    return drop(&b->weights.o_bias);
}

const hf_mistake hf_mistakes_of_weights[] = {
    {"heads of K in another order", k_heads_in_another_order},
    {"heads of V in another order", v_heads_in_another_order},
    {"query and gate swapped", query_and_gate_swapped},
    {"latent weights of the next head", latent_weights_of_the_next_head},
    {"latent and rotary part swapped", latent_and_rotary_part_swapped},
    {"sinks in another order", sinks_in_another_order},
    {"slopes in another order", slopes_in_another_order},
    {"norm of another head", norm_of_another_head},
    {"bias of q dropped", q_bias_dropped},
    {"bias of v dropped", v_bias_dropped},
    {"bias of o dropped", o_bias_dropped},
};

const size_t hf_mistakes_of_weights_count = sizeof(hf_mistakes_of_weights) / sizeof(hf_mistakes_of_weights[0]);
