/* Two descriptions field by field: the structure has padding, whose bytes mean nothing. */
#ifndef VKA_TESTS_SAME_DESC_H
#define VKA_TESTS_SAME_DESC_H

#include <stdbool.h>
#include <string.h>

#include "vkattn/layer_desc.h"

/* memcmp, so that NaN equals itself */
static inline bool same_desc(const vka_layer_desc *a, const vka_layer_desc *b)
{
    return a->struct_size == b->struct_size && a->hidden_size == b->hidden_size && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->v_head_dim == b->v_head_dim &&
           memcmp(&a->scale, &b->scale, sizeof(a->scale)) == 0 && a->rope_type == b->rope_type &&
           a->rope_pairing == b->rope_pairing && a->rotary_dim == b->rotary_dim &&
           memcmp(&a->rope_theta, &b->rope_theta, sizeof(a->rope_theta)) == 0 && a->qk_norm == b->qk_norm &&
           memcmp(&a->norm_eps, &b->norm_eps, sizeof(a->norm_eps)) == 0 && a->window == b->window;
}

#endif
