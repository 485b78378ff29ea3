/* Names and orders of tensors as Hugging Face transformers uses them, written down once more beside the loader. */
#include "model/hf_rows.h"

#include <string.h>

enum { ONE_AFTER_THE_OTHER = -3, BY_HEAD_OR_GROUP = -4 };

static const struct {
    const char *name;
    int weight;
} names[] = {
    {"q_proj", VKA_WEIGHT_Q},
    {"k_proj", VKA_WEIGHT_K},
    {"v_proj", VKA_WEIGHT_V},
    {"o_proj", VKA_WEIGHT_O},
    {"out_proj", VKA_WEIGHT_O},
    {"qkv_proj", ONE_AFTER_THE_OTHER},
    {"Wqkv", ONE_AFTER_THE_OTHER},
    {"c_attn", ONE_AFTER_THE_OTHER},
    {"c_proj", VKA_WEIGHT_O},
    {"to_qkv", ONE_AFTER_THE_OTHER},
    {"to_out", VKA_WEIGHT_O},
    {"query_key_value", BY_HEAD_OR_GROUP},
    {"dense", VKA_WEIGHT_O},
    {"self.query", VKA_WEIGHT_Q},
    {"self.key", VKA_WEIGHT_K},
    {"self.value", VKA_WEIGHT_V},
    {"output.dense", VKA_WEIGHT_O},
    {"output.LayerNorm", HF_NOT_OF_ATTENTION},
    {"q", VKA_WEIGHT_Q},
    {"k", VKA_WEIGHT_K},
    {"v", VKA_WEIGHT_V},
    {"o", VKA_WEIGHT_O},
    {"q_norm", VKA_WEIGHT_Q_NORM},
    {"k_norm", VKA_WEIGHT_K_NORM},
    {"norm_q", VKA_WEIGHT_Q_NORM},
    {"norm_k", VKA_WEIGHT_K_NORM},
    {"k_norm_und_for_gen", VKA_WEIGHT_K_OUT_NORM},
    {"sinks", VKA_WEIGHT_SINKS},
    {"q_a_proj", VKA_WEIGHT_Q_A},
    {"q_a_layernorm", VKA_WEIGHT_Q_A_NORM},
    {"q_b_proj", VKA_WEIGHT_Q},
    {"kv_a_proj_with_mqa", VKA_WEIGHT_KV_A},
    {"kv_a_layernorm", VKA_WEIGHT_KV_A_NORM},
    {"kv_b_proj", VKA_WEIGHT_KV_B},
};

static hf_place in_order(const vka_layer_desc *d, uint64_t element)
{
    uint64_t q = (uint64_t)d->heads * d->head_dim, k = (uint64_t)d->kv_heads * d->head_dim;

    if (element < q)
        return (hf_place){VKA_WEIGHT_Q, element};
    if (element < q + k)
        return (hf_place){VKA_WEIGHT_K, element - q};
    return (hf_place){VKA_WEIGHT_V, element - q - k};
}

/* [queries | key | value] of a group of `queries` query heads, group by group. */
static hf_place in_groups(const vka_layer_desc *d, uint64_t queries, uint64_t element)
{
    uint64_t head = element / d->head_dim, inside = element % d->head_dim;
    uint64_t group = head / (queries + 2), which = head % (queries + 2);

    if (which < queries)
        return (hf_place){VKA_WEIGHT_Q, (group * queries + which) * d->head_dim + inside};
    return (hf_place){which == queries ? VKA_WEIGHT_K : VKA_WEIGHT_V, group * d->head_dim + inside};
}

static hf_place place_of(const hf_row *row, int weight, uint64_t element)
{
    if (weight == ONE_AFTER_THE_OTHER)
        return in_order(&row->desc, element);
    if (weight == BY_HEAD_OR_GROUP)
        return in_groups(&row->desc, row->by_group ? row->desc.heads / row->desc.kv_heads : 1, element);
    return (hf_place){weight, element};
}

hf_place hf_place_of(const hf_row *row, const char *name, uint64_t element)
{
    const char *dot = strrchr(name, '.');
    bool bias = dot && strcmp(dot, ".bias") == 0;
    size_t length = bias || (dot && strcmp(dot, ".weight") == 0) ? (size_t)(dot - name) : strlen(name);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0) {
            hf_place place = place_of(row, names[i].weight, element);
            place.weight += bias && place.weight >= 0 ? VKA_WEIGHT_Q_BIAS - VKA_WEIGHT_Q : 0;
            return place;
        }
    }
    return (hf_place){HF_UNKNOWN, 0};
}
