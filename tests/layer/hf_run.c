/* See hf_run.h. */
#include "layer/hf_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/harness.h"

enum { PAGE = 7 }; /* divides no length here: pages end inside prefills and between steps */

static vka_context *shared;

vka_context *hf_context(void)
{
    vka_context_params params = harness_params();
    vka_error error;

    if (shared)
        return shared;
    params.devices = harness_devices()->grammar;
    require(vka_context_create(&shared, &params, &error) == VKA_OK, "%s", error.message);
    return shared;
}

void hf_context_close(void)
{
    vka_context_destroy(&shared);
}

typedef struct running {
    const hf_block *block;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t sequence[HF_SEQUENCES];
    uint32_t done; /* positions used by all sequences */
    double worst;
} running;

static uint32_t pages_needed(const hf_block *b)
{
    uint32_t pages = 0;

    for (uint32_t s = 0; s < b->sequences; s++) {
        uint32_t own = b->cached_k.rows + b->length[s] + b->decode_steps;
        pages += (own > b->kv_length[s] ? own : b->kv_length[s]) / PAGE + 1;
    }
    return pages;
}

static void start(running *r, const hf_block *b, uint32_t tp, const char *place)
{
    const vka_layer_params layer = {
        .struct_size = sizeof(layer), .desc = &b->desc, .weights = &b->weights, .grid = {.tp = tp}, .place = place};
    const vka_cache_params cache = {
        .struct_size = sizeof(cache), .page_size = PAGE, .pages = pages_needed(b), .dtype = VKA_F32};
    vka_error error;

    *r = (running){.block = b};
    require(vka_layer_create(&r->layer, hf_context(), &layer, &error) == VKA_OK, "%s: %s", b->name, error.message);
    require(vka_cache_create(&r->cache, r->layer, &cache, &error) == VKA_OK, "%s: %s", b->name, error.message);
    for (uint32_t s = 0; s < b->sequences; s++)
        assert_int_equal(vka_cache_sequence_new(r->cache, &r->sequence[s], NULL), VKA_OK);
}

static void append_cached(running *r)
{
    const hf_block *b = r->block;
    const vka_tensor k = {b->cached_k.data, VKA_F32, b->cached_k.rows, b->cached_k.cols, 0};
    const vka_tensor v = {b->cached_v.data, VKA_F32, b->cached_v.rows, b->cached_v.cols, 0};
    vka_error error;

    if (!k.data)
        return;
    assert_int_equal(b->sequences, 1);
    require(vka_cache_append(r->cache, 0, r->sequence[0], &k, &v, &error) == VKA_OK, "%s: %s", b->name, error.message);
}

static void stop(running *r)
{
    vka_cache_destroy(&r->cache);
    vka_layer_destroy(&r->layer);
}

static double largest(hf_rows rows)
{
    double found = 0;

    for (size_t i = 0; i < (size_t)rows.rows * rows.cols; i++)
        found = fmax(found, fabs((double)rows.data[i]));
    return found;
}

static void compare(running *r, const float *got, hf_rows want)
{
    double size = largest(want);

    for (size_t i = 0; i < (size_t)want.rows * want.cols; i++) {
        double difference = fabs((double)got[i] - (double)want.data[i]) / size;
        r->worst = difference <= r->worst ? r->worst : isnan(difference) ? INFINITY : difference;
    }
}

/* Positions of the next `rows` rows of the one sequence; NULL: those of its places. */
static int32_t *next_positions(const running *r, uint32_t rows)
{
    const hf_block *b = r->block;
    int32_t *out;

    if (b->position_rows == 0)
        return NULL;
    assert_int_equal(b->sequences, 1);
    assert_true(r->done + rows <= b->position_count);
    out = malloc(sizeof(*out) * 3 * rows);
    for (uint32_t axis = 0; axis < 3; axis++)
        memcpy(out + axis * rows, b->positions + axis * b->position_count + r->done, sizeof(*out) * rows);
    return out;
}

static vka_tensor_out room_for(hf_rows want)
{
    if (!want.data)
        return (vka_tensor_out){0};
    return (vka_tensor_out){calloc((size_t)want.rows * want.cols, sizeof(float)), VKA_F32, want.rows, want.cols, 0};
}

static void compare_and_free(running *r, vka_tensor_out got, hf_rows want)
{
    if (got.data)
        compare(r, got.data, want);
    free(got.data);
}

typedef struct call {
    hf_rows input, output, kv_input, k_output, v_output;
    const uint32_t *tokens; /* of each sequence; NULL: 1 */
} call;

static void step(running *r, const call *c)
{
    const hf_block *b = r->block;
    vka_batch_entry entries[HF_SEQUENCES];
    int32_t *positions = next_positions(r, c->input.rows);
    vka_error error;

    for (uint32_t s = 0; s < b->sequences; s++)
        entries[s] = (vka_batch_entry){r->sequence[s], c->tokens ? c->tokens[s] : 1};
    const vka_forward_params params = {
        .struct_size = sizeof(params),
        .layer = r->layer,
        .cache = r->cache,
        .batch = {entries, b->sequences},
        .input = {c->input.data, VKA_F32, c->input.rows, c->input.cols, 0},
        .positions = positions,
        .position_rows = b->position_rows,
        .kv_input = {c->kv_input.data, VKA_F32, c->kv_input.rows, c->kv_input.cols, 0},
        .kv_tokens = c->kv_input.data ? b->kv_length : NULL,
        .output = room_for(c->output),
        .k_output = room_for(c->k_output),
        .v_output = room_for(c->v_output),
    };
    require(vka_forward(&params, &error) == VKA_OK, "%s: %s", b->name, error.message);
    compare_and_free(r, params.output, c->output);
    compare_and_free(r, params.k_output, c->k_output);
    compare_and_free(r, params.v_output, c->v_output);
    free(positions);
    r->done += c->tokens ? c->tokens[0] : 1;
}

/* Rows of decoding step `which`. */
static hf_rows rows_of(hf_rows all, uint32_t which, uint32_t rows)
{
    return (hf_rows){all.data + (size_t)which * rows * all.cols, rows, all.cols};
}

double hf_run(const hf_block *b, uint32_t tp, const char *place)
{
    const call prefill = {b->prefill_input, b->prefill_output, b->kv_input, b->k_output, b->v_output, b->length};
    running r;

    start(&r, b, tp, place);
    append_cached(&r);
    step(&r, &prefill);
    for (uint32_t i = 0; i < b->decode_steps; i++) {
        const call decode = {.input = rows_of(b->decode_input, i, b->sequences),
                             .output = rows_of(b->decode_output, i, b->sequences)};
        step(&r, &decode);
    }
    stop(&r);
    return r.worst;
}
