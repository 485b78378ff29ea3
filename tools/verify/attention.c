/* Check of attention. With scores s_j, p = softmax(s), A = sum p_j |v_j|, n visible keys and nb rescales:
 *
 *     bound = E * A + u |O|
 *     E = 2 max ds + 4u (3 (1 + nb) + 2R) + 2uR + 2u + 2 (n + 2 nb) u + 5u
 *     ds_j = (d + 4) u * scale * sum |q||k_j|        R = min(max s - min s, 30)
 *
 * A softcap c adds 12 u c to ds: with x = s / c and tanh x = 1 - 2 / (exp 2x + 1), exp is off by (6 + 8x) u, which
 * tanh' / 2 <= 1/2 scales to 4 u at most; the division gives 5 u, that of s / c (5 u of x, scaled by tanh') 2.3 u, and
 * the difference is rounded. ALiBi and mask add a rounding of the product and one of each sum, 2 u of what is added and
 * of the score. A sink is one more score and one more rescale. A gate multiplies value and bound, and rounds once more.
 *
 * ds bounds the error of a score; exp is good to 3 + 2|x| ULP and is taken once per key and once per rescale; weights
 * below exp(-30) do not matter; then come the rounding of a weight, the sums over keys, and the division.
 * The log-sum-exp m + log l adds to E the error of log (3 ULP, 2^-21 near 1) and of the sum. */
#include "verify/internal.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"

enum { LANES = 4 };

typedef struct attention_row {
    const verify_attention_params *params;
    size_t row;
    size_t begin, end; /* keys that the row sees */
    size_t skipped;    /* left out by a mutant; SIZE_MAX: none */
    double *score;     /* [end - begin]; -INFINITY: masked, or left out */
    size_t seen;       /* keys that have a score */
    double highest, lowest;
    double score_error;                 /* max ds */
    double total;                       /* sum of exp(s - highest) */
    double sum[VKA_MAX_HEAD_DIM];       /* of exp(s - highest) v */
    double magnitude[VKA_MAX_HEAD_DIM]; /* of exp(s - highest) |v| */
} attention_row;

static double dot(const float *a, const float *b, size_t count, double *magnitude)
{
    double sum[LANES] = {0};
    double absolute[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            double product = (double)a[i + lane] * (double)b[i + lane];
            sum[lane] += product;
            absolute[lane] += fabs(product);
        }
    }
    for (; i < count; i++) {
        sum[0] += (double)a[i] * (double)b[i];
        absolute[0] += fabs((double)a[i] * (double)b[i]);
    }
    *magnitude = (absolute[0] + absolute[1]) + (absolute[2] + absolute[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double mask_of(const attention_row *row, size_t key)
{
    const verify_attention_params *p = row->params;
    return key < p->mask_keys ? (double)p->mask[row->row * p->mask_row_stride + key * p->mask_key_stride] : -INFINITY;
}

static bool is_masked(const attention_row *row, size_t key)
{
    return row->params->mask && mask_of(row, key) == -INFINITY;
}

static void find_visible(attention_row *row)
{
    const verify_attention_params *p = row->params;
    int64_t position = p->position + (int64_t)row->row;
    int64_t begin = 0;
    int64_t end = (int64_t)p->keys;
    if (p->causal && position + 1 < end)
        end = position + 1;
    if (p->window > 0 && position - (int64_t)p->window + 1 > begin)
        begin = position - (int64_t)p->window + 1;
    if (p->window_right > 0 && position + (int64_t)p->window_right < end)
        end = position + (int64_t)p->window_right;
    if (end < begin)
        end = begin;
    row->begin = (size_t)begin;
    row->end = (size_t)end;
    row->skipped = SIZE_MAX;
    if (p->mutant == VERIFY_DROPPED_KEY && end > begin)
        row->skipped = (row->begin + row->end) / 2;
    if (p->mutant == VERIFY_MASK_OFF_BY_ONE && end > begin)
        row->skipped = row->end - 1;
    while (row->skipped != SIZE_MAX && row->skipped > row->begin && is_masked(row, row->skipped))
        row->skipped--;
}

/* Softcap, ALiBi and mask; returns what they add to the error of the score. */
static double adjust(const attention_row *row, size_t key, double *score)
{
    const verify_attention_params *p = row->params;
    double error = 0;
    if (p->softcap > 0) {
        *score = p->softcap * tanh(*score / p->softcap);
        error += 12 * UNIT * p->softcap;
    }
    double terms[2] = {p->slope * (double)((int64_t)key - p->position - (int64_t)row->row),
                       p->mask ? mask_of(row, key) : 0};
    for (int i = 0; i < 2; i++) {
        *score += terms[i];
        if (terms[i] != 0)
            error += 2 * UNIT * (fabs(terms[i]) + fabs(*score));
    }
    return error;
}

static void score_keys(attention_row *row, size_t kv_head)
{
    const verify_attention_params *p = row->params;
    double scale = p->mutant == VERIFY_WRONG_SCALE ? p->scale * 1.01 : p->scale;
    double units = ((double)p->qk_dim + 4) * UNIT * fabs(scale);
    row->highest = p->sink ? (double)*p->sink : -INFINITY;
    row->lowest = p->sink ? (double)*p->sink : INFINITY;
    row->score_error = 0;
    row->seen = 0;
    for (size_t j = row->begin; j < row->end; j++) {
        double magnitude;
        const float *key = p->k + j * p->k_key_stride + kv_head * p->k_head_stride;
        double *score = &row->score[j - row->begin];
        *score = -INFINITY;
        if (j == row->skipped || is_masked(row, j))
            continue;
        double product = scale * dot(p->q + row->row * p->q_stride, key, p->qk_dim, &magnitude);
        *score = product;
        double error = units * magnitude + adjust(row, j, score);
        row->highest = fmax(row->highest, *score);
        row->lowest = fmin(row->lowest, *score);
        row->score_error = fmax(row->score_error, error);
        row->seen++;
    }
}

static void add_values(attention_row *row, size_t kv_head)
{
    const verify_attention_params *p = row->params;
    row->total = p->sink && *p->sink > -INFINITY ? exp((double)*p->sink - row->highest) : 0;
    for (size_t i = 0; i < p->v_dim; i++) {
        row->sum[i] = 0;
        row->magnitude[i] = 0;
    }
    for (size_t j = row->begin; j < row->end; j++) {
        if (row->score[j - row->begin] == -INFINITY)
            continue;
        double weight = exp(row->score[j - row->begin] - row->highest);
        const float *value = p->v + j * p->v_key_stride + kv_head * p->v_head_stride;
        row->total += weight;
        for (size_t i = 0; i < p->v_dim; i++) {
            row->sum[i] += weight * (double)value[i];
            row->magnitude[i] += weight * fabs((double)value[i]);
        }
    }
}

/* E of the bound above. */
static double relative_error(const attention_row *row)
{
    double keys = (double)(row->end - row->begin);
    double rescales = row->params->rescales > 0 ? (double)row->params->rescales : keys / 16 + 2;
    rescales += row->params->sink ? 1 : 0;
    double range = fmin(row->highest - row->lowest, 30);
    return 2 * row->score_error +
           UNIT * (4 * (3 * (1 + rescales) + 2 * range) + 2 * range + 2 + 2 * (keys + 2 * rescales) + 5);
}

static void judge(const attention_row *row, verify_result results[2])
{
    const verify_attention_params *p = row->params;
    double error = row->total > 0 ? relative_error(row) : 0;
    for (size_t i = 0; i < p->v_dim; i++) {
        double want = row->seen > 0 ? row->sum[i] / row->total : 0;
        double bound = row->seen > 0 ? error * row->magnitude[i] / row->total + UNIT * fabs(want) : 0;
        if (p->gate) {
            double gate = (double)p->gate[row->row * p->gate_stride + i];
            want *= gate;
            bound = bound * fabs(gate) + UNIT * fabs(want);
        }
        verify_element(&results[0], row->row * p->v_dim + i, (double)p->got[row->row * p->got_stride + i], want, bound);
    }
    if (!p->lse)
        return;
    double want = row->total > 0 ? row->highest + log(row->total) : -INFINITY;
    double bound = error + 0x1p-21 + 8 * UNIT * (fabs(row->highest) + fabs(log(row->total)));
    verify_element(&results[1], row->row, (double)p->lse[row->row * p->lse_stride], want, bound);
}

static bool check_row(const void *params, size_t item, verify_result results[2])
{
    const verify_attention_params *p = params;
    attention_row row = {.params = p, .row = item};
    size_t kv_head = p->mutant == VERIFY_WRONG_KV_HEAD ? (p->kv_head + 1) % p->kv_heads : p->kv_head;
    find_visible(&row);
    row.score = vka_alloc(NULL, row.end - row.begin + 1, sizeof *row.score);
    if (!row.score)
        return false;
    score_keys(&row, kv_head);
    add_values(&row, kv_head);
    judge(&row, results);
    vka_free(NULL, row.score);
    return true;
}

vka_status verify_attention(const verify_attention_params *params, verify_result *result, verify_result *lse_result,
                            vka_error *error)
{
    if (params->qk_dim < 1 || params->qk_dim > VKA_MAX_HEAD_DIM || params->v_dim < 1 ||
        params->v_dim > VKA_MAX_HEAD_DIM)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: head sizes %zu and %zu, expected 1 .. %u", params->qk_dim,
                        params->v_dim, VKA_MAX_HEAD_DIM);
    if (params->kv_head >= params->kv_heads)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: KV head %zu of %zu", params->kv_head, params->kv_heads);
    return verify_items(params->rows, check_row, params, result, lse_result, error);
}
