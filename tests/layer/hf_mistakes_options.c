/* See hf_mistakes.h: options of the description. */
#include "layer/hf_mistakes.h"

static bool scale(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.scale *= 1.01;
    return true;
}

static bool norm_epsilon(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.norm_eps = 1e-2;
    return b->desc.qk_norm != VKA_QK_NORM_NONE || b->desc.kv_lora_rank > 0;
}

static bool unit_offset_forgotten(hf_block *b, void **owned)
{
    bool offset = b->desc.norm_unit_offset != 0;

    (void)owned;
    b->desc.norm_unit_offset = 0;
    return offset;
}

static bool norms_dropped(hf_block *b, void **owned)
{
    bool normed = b->desc.qk_norm != VKA_QK_NORM_NONE;

    (void)owned;
    b->desc.qk_norm = VKA_QK_NORM_NONE;
    b->weights.q_norm.data = b->weights.k_norm.data = NULL;
    return normed;
}

static bool window_off_by_one(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.window += b->desc.window > 0;
    return b->desc.window > 0;
}

static bool window_dropped(hf_block *b, void **owned)
{
    bool windowed = b->desc.window > 0;

    (void)owned;
    b->desc.window = 0;
    return windowed;
}

static bool causal(hf_block *b, void **owned)
{
    bool all = b->desc.attend == VKA_ATTEND_FULL;

    (void)owned;
    b->desc.attend = VKA_ATTEND_CAUSAL;
    return all;
}

static bool softcap_dropped(hf_block *b, void **owned)
{
    bool capped = b->desc.softcap != 0;

    (void)owned;
    b->desc.softcap = 0;
    return capped;
}

static bool clip_dropped(hf_block *b, void **owned)
{
    bool clipped = b->desc.clip_qkv != 0;

    (void)owned;
    b->desc.clip_qkv = 0;
    return clipped;
}

static bool sinks_dropped(hf_block *b, void **owned)
{
    bool sunk = b->desc.sinks != 0;

    (void)owned;
    b->desc.sinks = 0;
    b->weights.sinks.data = NULL;
    return sunk;
}

static bool alibi_dropped(hf_block *b, void **owned)
{
    bool sloped = b->desc.alibi != 0;

    (void)owned;
    b->desc.alibi = 0;
    b->weights.alibi_slopes.data = NULL;
    return sloped;
}

static bool norm_of_handed_keys_dropped(hf_block *b, void **owned)
{
    bool normed = b->desc.k_out_norm != 0;

    (void)owned;
    b->desc.k_out_norm = 0;
    b->weights.k_out_norm.data = NULL;
    return normed;
}

static bool cached_keys_dropped(hf_block *b, void **owned)
{
    bool cached = b->cached_k.data != NULL;

    (void)owned;
    b->cached_k = b->cached_v = (hf_rows){0};
    return cached;
}

const hf_mistake hf_mistakes_of_options[] = {
    {"softmax scale", scale},
    {"epsilon of norms", norm_epsilon},
    {"1 + w forgotten", unit_offset_forgotten},
    {"norms dropped", norms_dropped},
    {"window off by one", window_off_by_one},
    {"window dropped", window_dropped},
    {"causal", causal},
    {"softcap dropped", softcap_dropped},
    {"clip dropped", clip_dropped},
    {"sinks dropped", sinks_dropped},
    {"ALiBi dropped", alibi_dropped},
    {"norm of handed keys dropped", norm_of_handed_keys_dropped},
    {"cached keys dropped", cached_keys_dropped},
};

const size_t hf_mistakes_of_options_count = sizeof(hf_mistakes_of_options) / sizeof(hf_mistakes_of_options[0]);
