/* See rope.h; formulas: the papers named in vkattn/layer_desc.h, constants and order as in Hugging Face transformers
 * (modeling_rope_utils.py). */
#include "model/rope.h"

#include <math.h>

#define PI 3.14159265358979323846

static double base_inverse(const vka_layer_desc *desc, double theta, uint32_t pair)
{
    return pow(theta, -2.0 * pair / desc->rotary_dim);
}

/* theta * stretch^(d / (d - 2)) */
static double stretched_theta(const vka_layer_desc *desc, double stretch)
{
    double dim = desc->rotary_dim;

    return desc->rope_theta * pow(stretch, dim / (dim - 2));
}

static double dynamic_stretch(const vka_rope_scaling *s, uint32_t length)
{
    double longest = length > s->context ? length : s->context;

    return s->factor * longest / s->context - (s->factor - 1);
}

/* ---- yarn ---- */

/* The pair that turns `rotations` times within the original context. */
static double yarn_pair(const vka_layer_desc *desc, double rotations)
{
    return desc->rotary_dim * log(desc->rope_scaling.original_context / (rotations * 2 * PI)) /
           (2 * log(desc->rope_theta));
}

/* How far pair i is interpolated: 0 not at all, 1 by the whole factor. */
static double yarn_ramp(const vka_layer_desc *desc, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    double low = yarn_pair(desc, s->beta_fast > 0 ? s->beta_fast : 32);
    double high = yarn_pair(desc, s->beta_slow > 0 ? s->beta_slow : 1);

    if (s->no_truncate == 0) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, desc->rotary_dim - 1.0);
    high += low == high ? 0.001 : 0;
    return fmin(fmax((pair - low) / (high - low), 0), 1);
}

static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static double yarn_factor(const vka_rope_scaling *s)
{
    if (s->mscale > 0 && s->mscale_all_dim > 0) {
        return yarn_mscale(s->factor, s->mscale) / yarn_mscale(s->factor, s->mscale_all_dim);
    }
    return yarn_mscale(s->factor, 1);
}

/* ---- longrope ---- */

static double longrope_factor(const vka_rope_scaling *s)
{
    double factor = s->factor > 0 ? s->factor : (double)s->context / s->original_context;

    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(s->original_context));
}

static double longrope_inverse(const vka_layer_desc *desc, uint32_t length, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    const float *divisors = length > s->original_context ? s->long_factor : s->short_factor;

    return base_inverse(desc, desc->rope_theta, pair) / (double)divisors[pair];
}

/* ---- llama3 ---- */

static double llama3_inverse(const vka_layer_desc *desc, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    double inverse = base_inverse(desc, desc->rope_theta, pair);
    double turns = s->original_context * inverse / (2 * PI); /* within the original context */

    if (turns > s->high_freq_factor) {
        return inverse;
    }
    if (turns < s->low_freq_factor) {
        return inverse / s->factor;
    }
    double smooth = (turns - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
    return (1 - smooth) * inverse / s->factor + smooth * inverse;
}

/* ---- the table ---- */

static double inverse_of(const vka_layer_desc *desc, uint32_t length, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    double plain = base_inverse(desc, desc->rope_theta, pair), ramp;

    switch (desc->rope_type) {
    case VKA_ROPE_LINEAR:
        return plain / s->factor;
    case VKA_ROPE_NTK:
        return base_inverse(desc, stretched_theta(desc, s->factor), pair);
    case VKA_ROPE_DYNAMIC:
        return base_inverse(desc, stretched_theta(desc, dynamic_stretch(s, length)), pair);
    case VKA_ROPE_YARN:
        ramp = yarn_ramp(desc, pair);
        return plain / s->factor * ramp + plain * (1 - ramp);
    case VKA_ROPE_LONGROPE:
        return longrope_inverse(desc, length, pair);
    case VKA_ROPE_LLAMA3:
        return llama3_inverse(desc, pair);
    case VKA_ROPE_DEFAULT:
    case VKA_ROPE_NONE:
        break;
    }
    return plain;
}

static double factor_of(const vka_layer_desc *desc)
{
    const vka_rope_scaling *s = &desc->rope_scaling;

    if (desc->rope_type != VKA_ROPE_YARN && desc->rope_type != VKA_ROPE_LONGROPE) {
        return 1;
    }
    if (s->attention_factor > 0) {
        return s->attention_factor;
    }
    return desc->rope_type == VKA_ROPE_YARN ? yarn_factor(s) : longrope_factor(s);
}

static uint8_t axis_of(const vka_layer_desc *desc, uint32_t pair)
{
    const uint32_t *section = desc->mrope_section;

    if (!rope_has_axes(desc)) {
        return 0;
    }
    if (desc->mrope_interleaved != 0) {
        uint32_t axis = pair % 3;
        return axis > 0 && pair < 3 * section[axis] ? (uint8_t)axis : 0;
    }
    return pair < section[0] ? 0 : pair < section[0] + section[1] ? 1 : 2;
}

void rope_table_make(rope_table *out, const vka_layer_desc *desc, uint32_t length)
{
    out->pairs = desc->rope_type == VKA_ROPE_NONE ? 0 : desc->rotary_dim / 2;
    out->factor = factor_of(desc);
    for (uint32_t i = 0; i < out->pairs; i++) {
        out->inverse[i] = inverse_of(desc, length, i);
        out->axis[i] = axis_of(desc, i);
    }
}

uint32_t rope_length_limit(const vka_layer_desc *desc)
{
    switch (desc->rope_type) {
    case VKA_ROPE_DYNAMIC:
        return desc->rope_scaling.context;
    case VKA_ROPE_LONGROPE:
        return desc->rope_scaling.original_context;
    default:
        return 0;
    }
}
