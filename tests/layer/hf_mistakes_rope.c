/* See hf_mistakes.h: how heads turn. */
#include <string.h>

#include "layer/hf_mistakes.h"

static bool rope_base(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.rope_theta *= 1.5;
    return b->desc.rope_type != VKA_ROPE_NONE && b->desc.rotary_dim > 2; /* the first pair turns by 1 whatever it is */
}

static bool rope_pairing(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.rope_pairing = b->desc.rope_pairing == VKA_ROPE_HALF_SPLIT ? VKA_ROPE_INTERLEAVED : VKA_ROPE_HALF_SPLIT;
    return b->desc.rope_type != VKA_ROPE_NONE && b->desc.rotary_dim > 2;
}

static bool rope_scaling_ignored(hf_block *b, void **owned)
{
    bool scaled = b->desc.rope_type > VKA_ROPE_NONE;

    (void)owned;
    if (scaled) {
        b->desc.rope_type = VKA_ROPE_DEFAULT;
        memset(&b->desc.rope_scaling, 0, sizeof(b->desc.rope_scaling));
    }
    return scaled;
}

static bool rope_factor(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.rope_scaling.factor *= 1.1;
    return b->desc.rope_scaling.factor != 0;
}

static bool yarn_truncation(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.rope_scaling.no_truncate = !b->desc.rope_scaling.no_truncate;
    return b->desc.rope_type == VKA_ROPE_YARN;
}

static bool longrope_lists_swapped(hf_block *b, void **owned)
{
    float kept[VKA_MAX_HEAD_DIM / 2];
    vka_rope_scaling *rope = &b->desc.rope_scaling;

    (void)owned;
    memcpy(kept, rope->short_factor, sizeof(kept));
    memcpy(rope->short_factor, rope->long_factor, sizeof(kept));
    memcpy(rope->long_factor, kept, sizeof(kept));
    return b->desc.rope_type == VKA_ROPE_LONGROPE;
}

static bool whole_head_turns(hf_block *b, void **owned)
{
    bool partial = b->desc.rope_type != VKA_ROPE_NONE && b->desc.rope_type != VKA_ROPE_LONGROPE &&
                   b->desc.kv_lora_rank == 0 && b->desc.mrope_section[0] == 0 && b->desc.rotary_dim < b->desc.head_dim;

    (void)owned;
    b->desc.rotary_dim = partial ? b->desc.head_dim : b->desc.rotary_dim;
    return partial;
}

/* Text has one position, three times. */
static bool axes_differ(const hf_block *b)
{
    size_t axis = b->position_count * sizeof(*b->positions);

    return b->position_rows == 3 && (memcmp(b->positions, b->positions + b->position_count, axis) != 0 ||
                                     memcmp(b->positions, b->positions + (size_t)2 * b->position_count, axis) != 0);
}

static bool sections_in_another_order(hf_block *b, void **owned)
{
    (void)owned;
    b->desc.mrope_interleaved = !b->desc.mrope_interleaved;
    return axes_differ(b);
}

static bool time_alone(hf_block *b, void **owned)
{
    uint32_t *section = b->desc.mrope_section;

    (void)owned;
    if (!axes_differ(b))
        return false;
    section[0] += section[1] + section[2];
    section[1] = section[2] = 0;
    return true;
}

const hf_mistake hf_mistakes_of_rope[] = {
    {"RoPE base", rope_base},
    {"RoPE pairing", rope_pairing},
    {"RoPE scaling ignored", rope_scaling_ignored},
    {"RoPE factor", rope_factor},
    {"yarn's truncation", yarn_truncation},
    {"longrope's lists swapped", longrope_lists_swapped},
    {"the whole head turns", whole_head_turns},
    {"mrope sections in another order", sections_in_another_order},
    {"mrope goes by time alone", time_alone},
};

const size_t hf_mistakes_of_rope_count = sizeof(hf_mistakes_of_rope) / sizeof(hf_mistakes_of_rope[0]);
