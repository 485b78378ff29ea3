/* Two descriptions value by value: the structure has padding, whose bytes mean nothing. */
#ifndef VKA_TESTS_SAME_DESC_H
#define VKA_TESTS_SAME_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "vkattn/layer_desc.h"

/* Bytes, so that NaN equals itself. */
#define SAME_FIELD(field) (memcmp(&a->field, &b->field, sizeof(a->field)) == 0)

static inline bool same_scaling(const vka_rope_scaling *a, const vka_rope_scaling *b)
{
    return SAME_FIELD(factor) && SAME_FIELD(context) && SAME_FIELD(original_context) && SAME_FIELD(low_freq_factor) &&
           SAME_FIELD(high_freq_factor) && SAME_FIELD(beta_fast) && SAME_FIELD(beta_slow) && SAME_FIELD(no_truncate) &&
           SAME_FIELD(mscale) && SAME_FIELD(mscale_all_dim) && SAME_FIELD(attention_factor) &&
           SAME_FIELD(short_factor) && SAME_FIELD(long_factor);
}

static inline bool same_geometry(const vka_layer_desc *a, const vka_layer_desc *b)
{
    return SAME_FIELD(struct_size) && SAME_FIELD(hidden_size) && SAME_FIELD(heads) && SAME_FIELD(kv_heads) &&
           SAME_FIELD(head_dim) && SAME_FIELD(v_head_dim) && SAME_FIELD(kv_hidden_size) && SAME_FIELD(kv_policy) &&
           SAME_FIELD(scale) && SAME_FIELD(kv_lora_rank) && SAME_FIELD(q_lora_rank);
}

static inline bool same_desc(const vka_layer_desc *a, const vka_layer_desc *b)
{
    return same_geometry(a, b) && SAME_FIELD(rope_type) && SAME_FIELD(rope_pairing) && SAME_FIELD(rotary_dim) &&
           SAME_FIELD(rotary_offset) && SAME_FIELD(rope_theta) && same_scaling(&a->rope_scaling, &b->rope_scaling) &&
           SAME_FIELD(mrope_section) && SAME_FIELD(mrope_interleaved) && SAME_FIELD(clip_qkv) && SAME_FIELD(qk_norm) &&
           SAME_FIELD(norm_eps) && SAME_FIELD(norm_unit_offset) && SAME_FIELD(k_out_norm) && SAME_FIELD(attend) &&
           SAME_FIELD(window) && SAME_FIELD(window_right) && SAME_FIELD(softcap) && SAME_FIELD(sinks) &&
           SAME_FIELD(alibi) && SAME_FIELD(gate);
}

#undef SAME_FIELD

#endif
