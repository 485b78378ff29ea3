/* Resolving what a layer description says of RoPE: each type has its own parameters, and those of another type must be
 * absent, since a factor that is given and not used would be a wrong result that nobody sees. */
#include "model/layer_desc.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

/* Parameters of vka_rope_scaling. */
enum {
    FACTOR = 1,
    CONTEXT = 2,
    ORIGINAL = 4,
    BANDS = 8,   /* low_freq_factor, high_freq_factor */
    RAMP = 16,   /* beta_fast, beta_slow, no_truncate, mscale, mscale_all_dim */
    SCALES = 32, /* attention_factor */
    LISTS = 64,
};

static const struct rope_rule {
    const char *name;
    int required, optional;
} rules[] = {
    [VKA_ROPE_DEFAULT] = {"VKA_ROPE_DEFAULT", 0, 0},
    [VKA_ROPE_NONE] = {"VKA_ROPE_NONE", 0, 0},
    [VKA_ROPE_LINEAR] = {"VKA_ROPE_LINEAR", FACTOR, 0},
    [VKA_ROPE_NTK] = {"VKA_ROPE_NTK", FACTOR, 0},
    [VKA_ROPE_DYNAMIC] = {"VKA_ROPE_DYNAMIC", FACTOR | CONTEXT, 0},
    [VKA_ROPE_YARN] = {"VKA_ROPE_YARN", FACTOR | ORIGINAL, RAMP | SCALES},
    [VKA_ROPE_LONGROPE] = {"VKA_ROPE_LONGROPE", ORIGINAL | LISTS, FACTOR | CONTEXT | SCALES},
    [VKA_ROPE_LLAMA3] = {"VKA_ROPE_LLAMA3", FACTOR | ORIGINAL | BANDS, 0},
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static bool any_divisor(const vka_rope_scaling *scaling)
{
    for (uint32_t i = 0; i < VKA_MAX_HEAD_DIM / 2; i++)
        if (scaling->short_factor[i] != 0 || scaling->long_factor[i] != 0)
            return true;
    return false;
}

static int given_parameters(const vka_rope_scaling *scaling)
{
    bool ramp = scaling->beta_fast != 0 || scaling->beta_slow != 0 || scaling->no_truncate != 0 ||
                scaling->mscale != 0 || scaling->mscale_all_dim != 0;

    return (scaling->factor != 0 ? FACTOR : 0) | (scaling->context != 0 ? CONTEXT : 0) |
           (scaling->original_context != 0 ? ORIGINAL : 0) |
           (scaling->low_freq_factor != 0 || scaling->high_freq_factor != 0 ? BANDS : 0) | (ramp ? RAMP : 0) |
           (scaling->attention_factor != 0 ? SCALES : 0) | (any_divisor(scaling) ? LISTS : 0);
}

static const char *parameter_name(int bit)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {{FACTOR, "factor"},
                 {CONTEXT, "context"},
                 {ORIGINAL, "original_context"},
                 {BANDS, "low_freq_factor, high_freq_factor"},
                 {RAMP, "beta_fast, beta_slow, no_truncate, mscale, mscale_all_dim"},
                 {SCALES, "attention_factor"},
                 {LISTS, "short_factor, long_factor"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (bit & names[i].bit)
            return names[i].name;
    return "";
}

static vka_status check_given(const vka_layer_desc *desc, vka_error *error)
{
    const struct rope_rule *rule = &rules[desc->rope_type];
    int given = given_parameters(&desc->rope_scaling);
    int missing = rule->required & ~given, unused = given & ~(rule->required | rule->optional);

    if (missing)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rope_scaling has no %s, which %s needs", parameter_name(missing),
                        rule->name);
    if (unused)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rope_scaling has %s, which %s does not use: set it to 0",
                        parameter_name(unused), rule->name);
    return VKA_OK;
}

static vka_status check_divisors(const vka_layer_desc *desc, vka_error *error)
{
    for (uint32_t i = 0; i < desc->rotary_dim / 2; i++) {
        double shorter = desc->rope_scaling.short_factor[i], longer = desc->rope_scaling.long_factor[i];
        if (!isfinite(shorter) || !isfinite(longer) || shorter <= 0 || longer <= 0)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "short_factor[%u] is %g and long_factor[%u] %g, expected %u finite numbers above 0 each", i,
                            shorter, i, longer, desc->rotary_dim / 2);
    }
    return VKA_OK;
}

static vka_status check_numbers(const vka_layer_desc *desc, vka_error *error)
{
    const vka_rope_scaling *s = &desc->rope_scaling;
    const struct {
        const char *name;
        double value;
    } positive[] = {{"factor", s->factor},
                    {"low_freq_factor", s->low_freq_factor},
                    {"high_freq_factor", s->high_freq_factor},
                    {"beta_fast", s->beta_fast},
                    {"beta_slow", s->beta_slow},
                    {"mscale", s->mscale},
                    {"mscale_all_dim", s->mscale_all_dim},
                    {"attention_factor", s->attention_factor}};
    vka_status status = VKA_OK;

    for (size_t i = 0; i < sizeof(positive) / sizeof(positive[0]) && status == VKA_OK; i++)
        if (positive[i].value != 0)
            status = vka_desc_positive(positive[i].name, positive[i].value, error);
    if (status == VKA_OK && desc->rope_type == VKA_ROPE_LLAMA3 && s->low_freq_factor >= s->high_freq_factor)
        status = vka_fail(error, VKA_ERR_ARGUMENT, "low_freq_factor is %g, expected less than high_freq_factor = %g",
                          s->low_freq_factor, s->high_freq_factor);
    if (status == VKA_OK && desc->rope_type == VKA_ROPE_LONGROPE)
        status = check_divisors(desc, error);
    if (status == VKA_OK && (desc->rope_type == VKA_ROPE_NTK || desc->rope_type == VKA_ROPE_DYNAMIC) &&
        desc->rotary_dim <= 2)
        status = vka_fail(error, VKA_ERR_ARGUMENT, "rotary_dim is %u, expected more than 2 with %s", desc->rotary_dim,
                          rules[desc->rope_type].name);
    return status;
}

static vka_status check_sections(const vka_layer_desc *desc, vka_error *error)
{
    const uint32_t *section = desc->mrope_section;
    uint64_t sum = (uint64_t)section[0] + section[1] + section[2];

    if (sum == 0 && desc->mrope_interleaved == 0)
        return VKA_OK;
    if (sum != desc->rotary_dim / 2)
        return vka_fail(error, VKA_ERR_ARGUMENT, "mrope_section is %u, %u, %u, expected a sum of rotary_dim / 2 = %u",
                        section[0], section[1], section[2], desc->rotary_dim / 2);
    return VKA_OK;
}

/* Elements that turn. */
static vka_status resolve_dims(vka_layer_desc *desc, vka_error *error)
{
    if (desc->rotary_offset >= desc->head_dim)
        return vka_fail(error, VKA_ERR_ARGUMENT, "rotary_offset is %u, expected less than head_dim = %u",
                        desc->rotary_offset, desc->head_dim);
    if (desc->rotary_dim == 0)
        desc->rotary_dim = desc->head_dim - desc->rotary_offset;
    if (desc->rotary_dim > desc->head_dim - desc->rotary_offset || desc->rotary_dim % 2 != 0)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "rotary_dim is %u, expected an even number, at most head_dim - rotary_offset = %u",
                        desc->rotary_dim, desc->head_dim - desc->rotary_offset);
    return VKA_OK;
}

vka_status vka_desc_resolve_rope(vka_layer_desc *desc, vka_error *error)
{
    vka_status status;

    if ((int)desc->rope_type < 0 || (int)desc->rope_type >= RULES)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "rope_type is %d, expected VKA_ROPE_DEFAULT (0) .. VKA_ROPE_LLAMA3 (%d)", (int)desc->rope_type,
                        VKA_ROPE_LLAMA3);
    if (desc->rope_pairing != VKA_ROPE_HALF_SPLIT && desc->rope_pairing != VKA_ROPE_INTERLEAVED)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "rope_pairing is %d, expected VKA_ROPE_HALF_SPLIT (0) or VKA_ROPE_INTERLEAVED (1)",
                        (int)desc->rope_pairing);
    if (desc->rope_theta == 0)
        desc->rope_theta = 10000.0;
    status = vka_desc_positive("rope_theta", desc->rope_theta, error);
    if (status == VKA_OK)
        status = check_given(desc, error);
    if (status == VKA_OK && desc->rope_type == VKA_ROPE_NONE)
        desc->rotary_dim = desc->rotary_offset = 0;
    else if (status == VKA_OK)
        status = resolve_dims(desc, error);
    if (status == VKA_OK)
        status = check_sections(desc, error);
    return status == VKA_OK ? check_numbers(desc, error) : status;
}
