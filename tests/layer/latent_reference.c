/* See latent_reference.h. */
#include "layer/latent_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

typedef struct reference {
    const layer_rig *rig;
    const vka_layer_desc *desc;
    latent_mistake mistake;
    uint32_t plain, tokens;
    double *latent; /* [tokens, kv_lora_rank] */
    double *shared; /* [tokens, rotary_dim] */
} reference;

static double *new_doubles(size_t count)
{
    double *made = calloc(count + 1, sizeof(double));

    require(made != NULL, "no memory");
    return made;
}

static double weight(const vka_tensor *tensor, size_t row, size_t col)
{
    const unsigned char *data = tensor->data;
    float value;

    vka_convert(&value, VKA_F32, data + (row * tensor->cols + col) * vka_dtype_size(tensor->dtype), tensor->dtype, 1);
    return (double)value;
}

/* out[i] = row first + i of the weights times x */
static void multiply(const vka_tensor *weights, size_t first, size_t rows, const double *x, double *out)
{
    for (size_t i = 0; i < rows; i++) {
        out[i] = 0;
        for (size_t k = 0; k < weights->cols; k++)
            out[i] += weight(weights, first + i, k) * x[k];
    }
}

static void norm(const reference *r, const vka_tensor *weights, double *x)
{
    double squares = 0;

    for (size_t i = 0; i < weights->cols; i++)
        squares += x[i] * x[i];
    for (size_t i = 0; i < weights->cols; i++)
        x[i] *= weight(weights, 0, i) / sqrt(squares / (double)weights->cols + r->desc->norm_eps);
}

static void turn(const reference *r, double *x, uint32_t position)
{
    uint32_t pairs = r->desc->rotary_dim / 2;
    bool neighbours = (r->desc->rope_pairing == VKA_ROPE_INTERLEAVED) != (r->mistake == LATENT_PAIRING);

    for (uint32_t i = 0; i < pairs; i++) {
        double angle = position * pow(r->desc->rope_theta, -2.0 * i / r->desc->rotary_dim);
        double *a = neighbours ? &x[2 * i] : &x[i], *b = neighbours ? &x[2 * i + 1] : &x[i + pairs];
        double turned = *a * cos(angle) - *b * sin(angle);
        *b = *a * sin(angle) + *b * cos(angle);
        *a = turned;
    }
}

static void load_hidden(const reference *r, uint32_t stream, uint32_t position, double *out)
{
    float *values = calloc(r->desc->hidden_size, sizeof(float));

    require(values != NULL, "no memory");
    rig_hidden(r->rig, stream, position, values);
    for (uint32_t i = 0; i < r->desc->hidden_size; i++)
        out[i] = (double)values[i];
    free(values);
}

static void add_token(reference *r, const double *hidden)
{
    const vka_layer_weights *w = &r->rig->weights;
    uint32_t rank = r->desc->kv_lora_rank, turned = r->desc->rotary_dim;
    double *latent = r->latent + (size_t)r->tokens * rank, *shared = r->shared + (size_t)r->tokens * turned;

    multiply(&w->kv_a, 0, rank, hidden, latent);
    multiply(&w->kv_a, rank, turned, hidden, shared);
    if (r->mistake != LATENT_NO_KV_NORM)
        norm(r, &w->kv_a_norm, latent);
    turn(r, shared, r->tokens);
    r->tokens++;
}

static void make_q(const reference *r, const double *hidden, uint32_t head, double *q)
{
    const vka_layer_weights *w = &r->rig->weights;
    uint32_t dim = r->desc->head_dim, rank = r->desc->q_lora_rank;
    double *latent = new_doubles(rank);

    if (rank > 0) {
        multiply(&w->q_a, 0, rank, hidden, latent);
        if (r->mistake != LATENT_NO_Q_NORM)
            norm(r, &w->q_a_norm, latent);
    }
    multiply(&w->q, (size_t)head * dim, dim, rank > 0 ? latent : hidden, q);
    turn(r, r->mistake == LATENT_FIRST_TURNED ? q : q + r->plain, r->tokens - 1);
    free(latent);
}

/* One head of the last token: its output before the output projection. */
static void attend(const reference *r, const double *q, uint32_t head, double *out)
{
    const vka_tensor *kv_b = &r->rig->weights.kv_b;
    uint32_t plain = r->plain, v_dim = r->desc->v_head_dim, turned = r->desc->rotary_dim;
    uint32_t from = r->mistake == LATENT_OTHER_HEAD ? (head + 1) % r->desc->heads : head;
    size_t first = (size_t)from * (plain + v_dim);
    size_t k_first = r->mistake == LATENT_V_BEFORE_K ? first + v_dim : first;
    size_t v_first = r->mistake == LATENT_V_BEFORE_K ? first : first + plain;
    double *k = new_doubles(plain), *v = new_doubles(v_dim), sum = 0;

    memset(out, 0, v_dim * sizeof(double));
    for (uint32_t j = 0; j < r->tokens; j++) {
        const double *latent = r->latent + (size_t)j * r->desc->kv_lora_rank, *shared = r->shared + (size_t)j * turned;
        double score = 0;
        multiply(kv_b, k_first, plain, latent, k);
        multiply(kv_b, v_first, v_dim, latent, v);
        for (uint32_t i = 0; i < plain; i++)
            score += q[i] * k[i];
        for (uint32_t i = 0; i < turned; i++)
            score += q[plain + i] * shared[i];
        double share = exp(score * r->desc->scale);
        sum += share;
        for (uint32_t i = 0; i < v_dim; i++)
            out[i] += share * v[i];
    }
    for (uint32_t i = 0; i < v_dim; i++)
        out[i] /= sum;
    free(k);
    free(v);
}

void latent_reference(const layer_rig *rig, uint32_t stream, uint32_t first, uint32_t rows, latent_mistake mistake,
                      double *out)
{
    const vka_layer_desc *desc = &rig->desc;
    reference r = {rig, desc, mistake, desc->head_dim - desc->rotary_dim, 0, NULL, NULL};
    size_t most = (size_t)first + rows;
    double *hidden = new_doubles(desc->hidden_size), *q = new_doubles(desc->head_dim);
    double *heads = new_doubles((size_t)desc->heads * desc->v_head_dim);

    r.latent = new_doubles(most * desc->kv_lora_rank);
    r.shared = new_doubles(most * desc->rotary_dim);
    for (uint32_t position = 0; position < most; position++) {
        load_hidden(&r, stream, position, hidden);
        add_token(&r, hidden);
        if (position < first)
            continue;
        for (uint32_t h = 0; h < desc->heads; h++) {
            make_q(&r, hidden, h, q);
            attend(&r, q, h, heads + (size_t)h * desc->v_head_dim);
        }
        multiply(&rig->weights.o, 0, desc->hidden_size, heads, out + (size_t)(position - first) * desc->hidden_size);
    }
    free(hidden);
    free(q);
    free(heads);
    free(r.latent);
    free(r.shared);
}
