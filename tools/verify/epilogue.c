/* Check of the epilogue. Errors are carried along: each element has a value and a bound on the error of the device's
 * value before the next step, in units of u = 2^-24.
 *
 * Bias: one addition, u |x + b|. Clipping makes no error larger.
 * RMSNorm, y = x * f * w with f = 1 / sqrt(S / n + eps): x is off by one unit (bias). S sums n squares, each off by
 * 2 (bias) + 1 (product) and n additions: n + 3. The division by n is good to 2.5 ULP or 5 units, eps is rounded and
 * added: 2; the root halves the sum of these. 1 / sqrt is an inverse square root (2 ULP), and up to two divisions
 * (2.5 ULP each): 14. Two products, and 1 + w: 3. Together (n + 10) / 2 + 18 units, taken as n / 2 + 24.
 * Over all heads of a row, the factor is an input (rounded to F32: 1 unit), and 1 + w, two products and the bias: 5.
 * RoPE, a cos - b sin: the errors of a and b, and per term the rounding of the table, of the product and of the sum:
 * 3 units, taken as 4.
 * Sigmoid, s = 1 / (1 + e) or e / (1 + e) with e = exp(-|x|): e is good to 3 + 2 |x| ULP, and s follows it with the
 * factor 1 - s (or s); then a sum (1), a division (5) and their slack: 8; the error of x itself enters as s (1 - s). */
#include "verify/internal.h"

#include <math.h>

#include "base/error.h"

typedef struct approximate {
    double value;
    double error;
} approximate;

typedef struct head_values {
    const verify_epilogue_params *params;
    size_t row, head;
    approximate element[VKA_MAX_HEAD_DIM]; /* after bias and norm */
} head_values;

static void add_bias(head_values *head)
{
    const verify_epilogue_params *p = head->params;
    const float *raw = p->raw + head->row * p->raw_stride + head->head * p->head_dim;
    for (size_t i = 0; i < p->head_dim; i++) {
        approximate *e = &head->element[i];
        *e = (approximate){(double)raw[i], 0};
        if (p->bias) {
            e->value += (double)p->bias[head->head * p->head_dim + i];
            e->error = UNIT * fabs(e->value);
        }
        if (p->desc->clip_qkv > 0 && !p->sigmoid) {
            double clip = (double)(float)p->desc->clip_qkv;
            e->value = fmax(-clip, fmin(clip, e->value));
        }
    }
}

static void normalise(head_values *head)
{
    const verify_epilogue_params *p = head->params;
    if (!p->norm)
        return;
    size_t dim = p->norm_dim > 0 ? p->norm_dim : p->head_dim;
    double squares = 0, units = (double)dim / 2 + 24;
    for (size_t i = 0; i < dim; i++)
        squares += head->element[i].value * head->element[i].value;
    double count = (double)dim;
    double factor = 1 / sqrt(squares / count + p->desc->norm_eps);
    if (p->factor) {
        factor = (double)p->factor[2 * head->row];
        units = 6;
    }
    double offset = p->desc->norm_unit_offset != 0 ? 1 : 0;
    for (size_t i = 0; i < dim; i++) {
        approximate *e = &head->element[i];
        e->value *= factor * (offset + (double)p->norm[i]);
        e->error = units * UNIT * fabs(e->value);
    }
}

void verify_add_squares(const verify_epilogue_params *params, double *squares)
{
    head_values head = {.params = params};
    for (head.row = 0; head.row < params->rows; head.row++) {
        for (head.head = 0; head.head < params->heads; head.head++) {
            add_bias(&head);
            for (size_t i = 0; i < params->head_dim; i++)
                squares[head.row] += head.element[i].value * head.element[i].value;
        }
    }
}

void verify_factor(verify_result *result, size_t index, double got, double squares, size_t width, double eps)
{
    double want = 1 / sqrt(squares / (double)width + eps);
    verify_element(result, index, got, want, ((double)width / 2 + 24) * UNIT * want);
}

/* Number of the pair that the i-th turned element belongs to, its partner, and whether it is the first of the two. */
typedef struct pairing {
    size_t pair, partner;
    bool first;
} pairing;

static pairing pair_of(const verify_epilogue_params *p, size_t i)
{
    bool interleaved = p->desc->rope_pairing == VKA_ROPE_INTERLEAVED;
    size_t half = p->desc->rotary_dim / 2;
    if (interleaved != (p->mutant == VERIFY_WRONG_ROPE_PAIRING))
        return (pairing){i / 2, i ^ 1, i % 2 == 0};
    return i < half ? (pairing){i, i + half, true} : (pairing){i - half, i - half, false};
}

static approximate turn(const head_values *head, size_t i)
{
    const verify_epilogue_params *p = head->params;
    approximate own = head->element[i];
    size_t first = p->desc->rotary_offset;
    if (!p->turned || p->desc->rope_type == VKA_ROPE_NONE || i < first || i - first >= p->desc->rotary_dim)
        return own;
    pairing pair = pair_of(p, i - first);
    approximate partner = head->element[first + pair.partner];
    uint32_t number = (uint32_t)pair.pair;
    int32_t position = p->position[verify_rope_axis(p->desc, number) * p->position_stride + head->row];
    double angle = position * verify_rope_inverse(p->desc, p->length, number);
    double factor = verify_rope_factor(p->desc);
    double cosine = factor * cos(angle);
    double sine = factor * (pair.first ? -sin(angle) : sin(angle));
    double terms = fabs(own.value * cosine) + fabs(partner.value * sine);
    return (approximate){own.value * cosine + partner.value * sine,
                         fabs(cosine) * own.error + fabs(sine) * partner.error + 4 * UNIT * terms};
}

static approximate activate(approximate x)
{
    double s = 1 / (1 + exp(-x.value));
    double smaller = fmin(s, 1 - s);
    return (approximate){s, s * (1 - s) * x.error + UNIT * (smaller * (6 + 4 * fabs(x.value)) + 8 * s)};
}

static approximate finished(const head_values *head, size_t i)
{
    return head->params->sigmoid ? activate(head->element[i]) : turn(head, i);
}

static bool check_row(const void *params, size_t item, verify_result results[2])
{
    const verify_epilogue_params *p = params;
    head_values head = {.params = p, .row = item};
    for (head.head = 0; head.head < p->heads; head.head++) {
        add_bias(&head);
        normalise(&head);
        for (size_t i = 0; i < p->head_dim; i++) {
            approximate want = finished(&head, i);
            double bound = want.error + 0x1p-126; /* flushed subnormals */
            if (p->got_dtype != VKA_F32)
                bound += verify_rounding_error(fabs(want.value) + want.error, p->got_dtype);
            size_t index = head.head * p->head_dim + i;
            verify_element(&results[0], item * p->heads * p->head_dim + index,
                           (double)p->got[item * p->got_stride + index], want.value, bound);
        }
    }
    return true;
}

vka_status verify_epilogue(const verify_epilogue_params *params, verify_result *result, vka_error *error)
{
    if (params->head_dim < 1 || params->head_dim > VKA_MAX_HEAD_DIM || params->norm_dim > params->head_dim)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: head_dim %zu, norm_dim %zu; expected 1 .. %u, and up to it",
                        params->head_dim, params->norm_dim, VKA_MAX_HEAD_DIM);
    if (params->turned && params->desc->rotary_offset + params->desc->rotary_dim > params->head_dim)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: rotary_offset %u + rotary_dim %u, expected at most %zu",
                        params->desc->rotary_offset, params->desc->rotary_dim, params->head_dim);
    return verify_items(params->rows, check_row, params, result, NULL, error);
}
