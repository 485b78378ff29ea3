/* A float64 layer, written for clearness: projections by columns, then rows and heads one by one, on all cores. */
#include "run_chain.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"

enum { COLUMNS = 4, DEPTH = 256, LANES = 8 };

typedef struct chain_state {
    const vka_layer_desc *desc;
    const vka_layer_weights *weights;
    const stage_vectors *vectors;
    const run_rows *rows;
    vka_dtype stored;
    size_t q_columns, k_columns, v_columns;
    size_t q_step;     /* columns from one query head to the next */
    double *input;     /* [rows, hidden] */
    double *q, *k, *v; /* [rows, *_columns], first raw, then as attention takes them */
    double *attention; /* [rows, heads * v_head_dim] */
    double *output;    /* [rows, hidden] */
    atomic_bool out_of_memory;
} chain_state;

/* ---- projections ---- */

typedef struct projection {
    const chain_state *chain;
    const vka_tensor *weights;
    const double *x; /* [rows, weights->cols] */
    double *y;       /* [rows, weights->rows], zero before */
} projection;

static double dot(const double *a, const double *b, size_t count)
{
    double sum[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum[0] += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* Elements first .. first + count - 1 of row `row` of the weights, as the device holds them. */
static void load_weights(const projection *p, size_t row, size_t first, size_t count, double *out)
{
    size_t stride = (size_t)(p->weights->row_stride ? p->weights->row_stride : p->weights->cols);
    const unsigned char *from =
        (const unsigned char *)p->weights->data + (row * stride + first) * vka_dtype_size(p->weights->dtype);
    float stored[DEPTH], values[DEPTH];

    vka_convert(stored, p->chain->stored, from, p->weights->dtype, count);
    vka_convert(values, VKA_F32, stored, p->chain->stored, count);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)values[i];
}

static void project_columns(void *user, size_t begin, size_t end)
{
    const projection *p = user;
    size_t depth = (size_t)p->weights->cols, columns = (size_t)p->weights->rows;
    double w[COLUMNS][DEPTH];

    for (size_t column = begin; column < end; column += COLUMNS) {
        size_t width = end - column < COLUMNS ? end - column : COLUMNS;

        for (size_t first = 0; first < depth; first += DEPTH) {
            size_t count = depth - first < DEPTH ? depth - first : DEPTH;

            for (size_t c = 0; c < width; c++)
                load_weights(p, column + c, first, count, w[c]);
            for (size_t r = 0; r < p->chain->rows->rows; r++)
                for (size_t c = 0; c < width; c++)
                    p->y[r * columns + column + c] += dot(p->x + r * depth + first, w[c], count);
        }
    }
}

static void project(const chain_state *chain, const vka_tensor *weights, const double *x, double *y)
{
    projection job = {chain, weights, x, y};

    vka_parallel_for((size_t)weights->rows, COLUMNS, project_columns, &job);
}

/* ---- latent attention: Q, and K and V of every head, from latents ---- */

/* RMSNorm of the first `dim` of every `columns` columns of a row; rows of `dim` come out. */
static double *normed_rows(const chain_state *chain, const double *from, size_t columns, const vka_tensor *norm)
{
    size_t dim = (size_t)norm->cols, rows = chain->rows->rows;
    double *out = vka_alloc(NULL, rows, dim * sizeof(double)), offset = chain->desc->norm_unit_offset ? 1 : 0;

    for (size_t r = 0; out && r < rows; r++) {
        double squares = 0;

        for (size_t i = 0; i < dim; i++)
            squares += from[r * columns + i] * from[r * columns + i];
        for (size_t i = 0; i < dim; i++) {
            float weight;

            vka_convert(&weight, VKA_F32, (const unsigned char *)norm->data + i * vka_dtype_size(norm->dtype),
                        norm->dtype, 1);
            out[r * dim + i] =
                from[r * columns + i] * (offset + (double)weight) / sqrt(squares / (double)dim + chain->desc->norm_eps);
        }
    }
    return out;
}

static bool project_q_latent(chain_state *chain)
{
    const vka_layer_weights *w = chain->weights;
    size_t rank = chain->desc->q_lora_rank;
    double *latent = vka_alloc(NULL, chain->rows->rows, rank * sizeof(double)), *normed = NULL;

    if (latent) {
        project(chain, &w->q_a, chain->input, latent);
        normed = normed_rows(chain, latent, rank, &w->q_a_norm);
    }
    if (normed)
        project(chain, &w->q, normed, chain->q);
    vka_free(NULL, latent);
    vka_free(NULL, normed);
    return normed != NULL;
}

/* Heads of one row: `up` has, per head, the plain part of K and V, `shared` the part of K that all heads share. */
static void spread_row(chain_state *chain, size_t row, const double *up, const double *shared)
{
    const vka_layer_desc *desc = chain->desc;
    size_t plain = desc->head_dim - desc->rotary_dim, v_dim = desc->v_head_dim;

    for (size_t h = 0; h < desc->heads; h++, up += plain + v_dim) {
        double *k = chain->k + row * chain->k_columns + h * desc->head_dim;

        memcpy(k, up, plain * sizeof(double));
        memcpy(k + plain, shared, desc->rotary_dim * sizeof(double));
        memcpy(chain->v + row * chain->v_columns + h * v_dim, up + plain, v_dim * sizeof(double));
    }
}

static bool project_kv_latent(chain_state *chain)
{
    const vka_layer_weights *w = chain->weights;
    size_t rows = chain->rows->rows, columns = (size_t)w->kv_a.rows, up_columns = (size_t)w->kv_b.rows;
    double *down = vka_alloc(NULL, rows, columns * sizeof(double)), *normed = NULL;
    double *up = vka_alloc(NULL, rows, up_columns * sizeof(double));

    if (down && up) {
        project(chain, &w->kv_a, chain->input, down);
        normed = normed_rows(chain, down, columns, &w->kv_a_norm);
    }
    if (normed)
        project(chain, &w->kv_b, normed, up);
    for (size_t r = 0; normed && r < rows; r++)
        spread_row(chain, r, up + r * up_columns, down + r * columns + chain->desc->kv_lora_rank);
    vka_free(NULL, down);
    vka_free(NULL, up);
    vka_free(NULL, normed);
    return normed != NULL;
}

static void project_heads(chain_state *chain)
{
    const vka_layer_weights *w = chain->weights;
    bool done = true;

    if (chain->desc->q_lora_rank > 0)
        done = project_q_latent(chain);
    else
        project(chain, &w->q, chain->input, chain->q);
    if (chain->desc->kv_lora_rank > 0) {
        done = project_kv_latent(chain) && done;
    } else {
        project(chain, &w->k, chain->input, chain->k);
        project(chain, &w->v, chain->input, chain->v);
    }
    if (!done)
        atomic_store(&chain->out_of_memory, true);
}

/* ---- rows: where they stand ---- */

static size_t sequence_row(const run_rows *rows, uint32_t sequence, uint32_t position)
{
    size_t row = 0;

    if (position >= rows->prefill[sequence])
        return rows->prefill_rows + (size_t)(position - rows->prefill[sequence]) * rows->sequences + sequence;
    for (uint32_t s = 0; s < sequence; s++)
        row += rows->prefill[s];
    return row + position;
}

/* ---- epilogue ---- */

/* Where a row stands. */
typedef struct row_place {
    uint32_t position;
    uint32_t length; /* of the sequence in the call that brings it */
} row_place;

static void turn_head(const vka_layer_desc *desc, double *head, uint32_t position, uint32_t length)
{
    uint32_t pairs = desc->rotary_dim / 2, interleaved = desc->rope_pairing == VKA_ROPE_INTERLEAVED;
    double *turned = head + desc->rotary_offset, factor = verify_rope_factor(desc);

    for (uint32_t i = 0; desc->rope_type != VKA_ROPE_NONE && i < pairs; i++) {
        double angle = position * verify_rope_inverse(desc, length, i);
        double *first = turned + (interleaved ? 2 * i : i), *second = first + (interleaved ? 1 : pairs);
        double a = *first, b = *second;

        *first = factor * (a * cos(angle) - b * sin(angle));
        *second = factor * (b * cos(angle) + a * sin(angle));
    }
}

/* Bias and clipping of one head; its squares. */
static double shift_head(const vka_layer_desc *desc, double *head, uint32_t dim, const float *bias)
{
    double squares = 0;

    for (uint32_t i = 0; i < dim; i++) {
        head[i] += bias ? (double)bias[i] : 0;
        if (desc->clip_qkv > 0)
            head[i] = fmax(-desc->clip_qkv, fmin(desc->clip_qkv, head[i]));
        squares += head[i] * head[i];
    }
    return squares;
}

/* The heads of Q or K of a row. */
typedef struct head_rows {
    double *row;
    uint32_t heads;
    size_t step; /* elements from one head to the next: with a gate [query | gate] */
} head_rows;

/* All heads of Q or K of a row: bias, clipping, norm, RoPE. */
static void finish_heads(const vka_layer_desc *desc, head_rows of, const float *bias, const float *norm,
                         row_place place)
{
    uint32_t heads = of.heads;
    bool wide = desc->qk_norm == VKA_QK_NORM_FULL_WIDTH;
    uint32_t dim = desc->head_dim;
    double offset = desc->norm_unit_offset ? 1 : 0, total = 0;
    double squares[VKA_MAX_HEADS];

    for (uint32_t h = 0; h < heads; h++) {
        squares[h] = shift_head(desc, of.row + h * of.step, dim, bias ? bias + h * of.step : NULL);
        total += squares[h];
    }
    for (uint32_t h = 0; h < heads; h++) {
        double *head = of.row + h * of.step;
        double mean = wide ? total / ((double)heads * dim) : squares[h] / dim;

        for (uint32_t i = 0; norm && i < dim; i++)
            head[i] *= (offset + (double)norm[wide ? (size_t)h * dim + i : i]) / sqrt(mean + desc->norm_eps);
        turn_head(desc, head, place.position, place.length);
    }
}

static void finish_row(const chain_state *chain, size_t row, row_place place)
{
    const vka_layer_desc *desc = chain->desc;
    const stage_vectors *of = chain->vectors;

    const head_rows q = {chain->q + row * chain->q_columns, desc->heads, chain->q_step};
    const head_rows k = {chain->k + row * chain->k_columns, desc->kv_heads, desc->head_dim};

    finish_heads(desc, q, of->q_bias, of->q_norm, place);
    for (size_t i = desc->head_dim; of->q_bias && i < chain->q_columns; i++) /* gates */
        q.row[i] += i % chain->q_step >= desc->head_dim ? (double)of->q_bias[i] : 0;
    finish_heads(desc, k, of->k_bias, of->k_norm, place);
    for (size_t h = 0; h < desc->kv_heads; h++) {
        size_t at = h * desc->v_head_dim;

        shift_head(desc, chain->v + row * chain->v_columns + at, desc->v_head_dim, of->v_bias ? of->v_bias + at : NULL);
    }
}

static void finish_sequences(void *user, size_t begin, size_t end)
{
    const chain_state *chain = user;
    const run_rows *rows = chain->rows;

    for (uint32_t s = (uint32_t)begin; s < end; s++)
        for (uint32_t position = 0; position < rows->prefill[s] + rows->decode; position++)
            finish_row(chain, sequence_row(rows, s, position),
                       (row_place){position, position < rows->prefill[s] ? rows->prefill[s] : position + 1});
}

/* ---- attention ---- */

/* The end of the keys that a row sees: its own place, or all keys of the call that brings it. */
static uint32_t key_end(const chain_state *chain, uint32_t sequence, uint32_t position)
{
    uint32_t end = position + 1, right = chain->desc->window_right;

    if (chain->desc->attend == VKA_ATTEND_CAUSAL)
        return end;
    end = end > chain->rows->prefill[sequence] ? end : chain->rows->prefill[sequence];
    return right > 0 && position + right < end ? position + right : end;
}

/* What a score becomes: softcap, then ALiBi; `distance` is that of the key behind the row. */
static double adjusted(const chain_state *chain, double score, uint32_t head, double distance)
{
    const vka_layer_desc *desc = chain->desc;

    if (desc->softcap > 0)
        score = desc->softcap * tanh(score / desc->softcap);
    return score - (chain->vectors->slopes ? (double)chain->vectors->slopes[head] * distance : 0);
}

/* One query head of the row at `position` of `sequence`; `scores` has room for all keys. */
static void attend(const chain_state *chain, uint32_t sequence, uint32_t position, uint32_t head, double *scores)
{
    const vka_layer_desc *desc = chain->desc;
    size_t row = sequence_row(chain->rows, sequence, position);
    size_t kv_head = head / (desc->heads / desc->kv_heads);
    const double *q = chain->q + row * chain->q_columns + head * chain->q_step;
    double *out = chain->attention + (row * desc->heads + head) * desc->v_head_dim;
    uint32_t first = desc->window && position >= desc->window ? position - desc->window + 1 : 0;
    uint32_t end = key_end(chain, sequence, position);
    const float *sink = chain->vectors->sinks ? &chain->vectors->sinks[head] : NULL;
    double highest = sink ? (double)*sink : -INFINITY, sum = 0;

    for (uint32_t j = first; j < end; j++) {
        size_t key = sequence_row(chain->rows, sequence, j);

        scores[j] = desc->scale * dot(q, chain->k + key * chain->k_columns + kv_head * desc->head_dim, desc->head_dim);
        scores[j] = adjusted(chain, scores[j], head, (double)position - j);
        highest = fmax(highest, scores[j]);
    }
    sum = sink ? exp((double)*sink - highest) : 0;
    for (uint32_t j = first; j < end; j++) {
        const double *v =
            chain->v + sequence_row(chain->rows, sequence, j) * chain->v_columns + kv_head * desc->v_head_dim;
        double p = exp(scores[j] - highest);

        sum += p;
        for (uint32_t i = 0; i < desc->v_head_dim; i++)
            out[i] += p * v[i];
    }
    for (uint32_t i = 0; i < desc->v_head_dim; i++)
        out[i] /= desc->gate != VKA_GATE_NONE ? sum * (1 + exp(-q[desc->head_dim + i])) : sum;
}

static void attend_heads(void *user, size_t begin, size_t end)
{
    chain_state *chain = user;
    const run_rows *rows = chain->rows;
    double *scores = vka_alloc(NULL, (size_t)rows->prefill[0] + rows->decode, sizeof(double)); /* [0] is the longest */

    if (!scores) {
        atomic_store(&chain->out_of_memory, true);
        return;
    }
    for (uint32_t head = (uint32_t)begin; head < end; head++)
        for (uint32_t s = 0; s < rows->sequences; s++)
            for (uint32_t position = 0; position < rows->prefill[s] + rows->decode; position++)
                attend(chain, s, position, head, scores);
    vka_free(NULL, scores);
}

/* ---- the layer ---- */

static bool allocate(chain_state *chain)
{
    const vka_layer_desc *desc = chain->desc;
    size_t rows = chain->rows->rows;

    chain->q_step = desc->gate != VKA_GATE_NONE ? 2 * (size_t)desc->head_dim : desc->head_dim;
    chain->q_columns = desc->heads * chain->q_step;
    chain->k_columns = (size_t)desc->kv_heads * desc->head_dim;
    chain->v_columns = (size_t)desc->kv_heads * desc->v_head_dim;
    chain->input = vka_alloc(NULL, rows, desc->hidden_size * sizeof(double));
    chain->q = vka_alloc(NULL, rows, chain->q_columns * sizeof(double));
    chain->k = vka_alloc(NULL, rows, chain->k_columns * sizeof(double));
    chain->v = vka_alloc(NULL, rows, chain->v_columns * sizeof(double));
    chain->attention = vka_alloc(NULL, rows, (size_t)desc->heads * desc->v_head_dim * sizeof(double));
    chain->output = vka_alloc(NULL, rows, desc->hidden_size * sizeof(double));
    return chain->input && chain->q && chain->k && chain->v && chain->attention && chain->output;
}

static void compute(chain_state *chain)
{
    size_t hidden = chain->desc->hidden_size;

    for (size_t i = 0; i < chain->rows->rows * hidden; i++)
        chain->input[i] = (double)chain->rows->input[i];
    project_heads(chain);
    vka_parallel_for(chain->rows->sequences, 1, finish_sequences, chain);
    vka_parallel_for(chain->desc->heads, 1, attend_heads, chain);
    project(chain, &chain->weights->o, chain->attention, chain->output);
    for (size_t i = 0; chain->vectors->o_bias && i < chain->rows->rows * hidden; i++)
        chain->output[i] += (double)chain->vectors->o_bias[i % hidden];
}

vka_status run_chain_nmse(const run_layer *layer, const stage_vectors *vectors, vka_dtype stored, const run_rows *rows,
                          const float *output, double *nmse, vka_error *error)
{
    chain_state chain = {
        .desc = &layer->source.desc, .weights = &layer->weights, .vectors = vectors, .rows = rows, .stored = stored};
    bool ready = allocate(&chain);

    if (ready) {
        compute(&chain);
        *nmse = verify_nmse((size_t)rows->rows * rows->hidden, output, chain.output);
        ready = !atomic_load(&chain.out_of_memory);
    }
    vka_free(NULL, chain.input);
    vka_free(NULL, chain.q);
    vka_free(NULL, chain.k);
    vka_free(NULL, chain.v);
    vka_free(NULL, chain.attention);
    vka_free(NULL, chain.output);
    return ready ? VKA_OK
                 : vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for a float64 chain of %u rows",
                            rows->rows);
}
