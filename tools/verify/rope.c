/* Inverse frequencies of every RoPE type for the reference, from the formulas of the papers: by the wavelength of a
 * pair, lambda = 2 pi theta^(2i/d) tokens. */
#include "verify/verify.h"

#include <math.h>

static const double turn = 6.283185307179586476925;

/* 0 below `from`, 1 above `to`, straight between them. */
static double straight(double x, double from, double to)
{
    return fmin(1, fmax(0, (x - from) / (to - from)));
}

/* Share of the interpolated frequency (YaRN): pairs that turn more than beta_fast times in the original context keep
 * their frequency, pairs that turn less than beta_slow times are interpolated. */
static double yarn_share(const vka_layer_desc *desc, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    double dim = desc->rotary_dim, per_pair = 2 * log(desc->rope_theta) / dim;
    double fast = s->beta_fast == 0 ? 32 : s->beta_fast, slow = s->beta_slow == 0 ? 1 : s->beta_slow;
    double from = log(s->original_context / (turn * fast)) / per_pair;
    double to = log(s->original_context / (turn * slow)) / per_pair;

    if (!s->no_truncate) {
        from = floor(from);
        to = ceil(to);
    }
    from = from < 0 ? 0 : from;
    to = to > dim - 1 ? dim - 1 : to;
    return straight(pair, from, to > from || to < from ? to : to + 0.001);
}

/* Share of the interpolated frequency (Llama 3.1): by how often a pair turns in the original context. */
static double llama3_share(const vka_rope_scaling *s, double lambda)
{
    return 1 - straight(s->original_context / lambda, s->low_freq_factor, s->high_freq_factor);
}

double verify_rope_inverse(const vka_layer_desc *desc, uint32_t length, uint32_t pair)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    double dim = desc->rotary_dim, place = 2.0 * pair / dim, theta = desc->rope_theta, share = 0;
    double over = length > s->context ? (double)length / s->context : 1;

    if (desc->rope_type == VKA_ROPE_NTK)
        theta *= pow(s->factor, dim / (dim - 2));
    if (desc->rope_type == VKA_ROPE_DYNAMIC)
        theta *= pow(s->factor * (over - 1) + 1, dim / (dim - 2));
    double lambda = turn * pow(theta, place);
    if (desc->rope_type == VKA_ROPE_LONGROPE)
        lambda *= (double)(length > s->original_context ? s->long_factor[pair] : s->short_factor[pair]);
    if (desc->rope_type == VKA_ROPE_LINEAR)
        share = 1;
    if (desc->rope_type == VKA_ROPE_YARN)
        share = yarn_share(desc, pair);
    if (desc->rope_type == VKA_ROPE_LLAMA3)
        share = llama3_share(s, lambda);
    return turn / lambda * (share > 0 ? share / s->factor + 1 - share : 1);
}

static double yarn_get(double factor, double m)
{
    return factor > 1 ? 1 + m * log(factor) / 10 : 1;
}

double verify_rope_factor(const vka_layer_desc *desc)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    bool yarn = desc->rope_type == VKA_ROPE_YARN, longrope = desc->rope_type == VKA_ROPE_LONGROPE;

    if ((yarn || longrope) && s->attention_factor != 0)
        return s->attention_factor;
    if (yarn && s->mscale != 0 && s->mscale_all_dim != 0)
        return yarn_get(s->factor, s->mscale) / yarn_get(s->factor, s->mscale_all_dim);
    if (yarn)
        return yarn_get(s->factor, 1);
    if (!longrope)
        return 1;
    double stretch = s->factor != 0 ? s->factor : (double)s->context / s->original_context;
    return stretch > 1 ? sqrt(1 + log(stretch) / log(s->original_context)) : 1;
}

uint32_t verify_rope_axis(const vka_layer_desc *desc, uint32_t pair)
{
    uint32_t height = desc->mrope_section[1], width = desc->mrope_section[2], axis = 0, end = desc->mrope_section[0];

    if (desc->mrope_interleaved)
        return pair % 3 == 1 && pair < 3 * height ? 1 : pair % 3 == 2 && pair < 3 * width ? 2 : 0;
    while (axis < 2 && pair >= end && height + width > 0)
        end += desc->mrope_section[++axis];
    return axis;
}
