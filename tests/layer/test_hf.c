/* The outputs of Hugging Face transformers' attention modules (tests/data/README.md): every checkpoint through the real
 * loader, at every valid tp up to 8, prefill and decoding.
 *
 * Their float32 outputs lie within 1.7e-6 of the same modules in float64. An engine that computes in float32 too has an
 * error of that size of its own, in another order of additions; 1e-5 leaves room for a few times both. Outputs are of
 * size 1, and the planted mistakes below move some of them by a thousand times that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/harness.h"

#define TOLERANCE 1e-5

enum { PREFILL = 24, DECODE = 6 };

static const struct {
    const char *folder;
    uint32_t layer;
} checkpoints[] = {{"llama", 0}, {"llama-bias", 0}, {"mistral", 0}, {"qwen2", 0}, {"qwen2", 1}, {"qwen3", 0}};

enum { CHECKPOINTS = sizeof(checkpoints) / sizeof(checkpoints[0]) };

static vka_context *context;

static int open_context(void **state)
{
    vka_context_params params = harness_params();
    vka_error error;

    (void)state;
    params.devices = harness_devices()->grammar; /* each promised device once */
    require(vka_context_create(&context, &params, &error) == VKA_OK, "%s", error.message);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    vka_context_destroy(&context);
    return 0;
}

/* ---- one layer of a checkpoint, and what it should give ---- */

typedef struct checkpoint {
    const char *name;
    vka_model *model;
    vka_model_layer *loaded;
    vka_layer_desc desc;
    vka_layer_weights weights;
    vka_tensor_file *reference;
    const float *prefill_input, *prefill_output, *decode_input, *decode_output;
} checkpoint;

static const float *find_rows(const checkpoint *c, const char *name, uint32_t rows)
{
    const vka_named_tensor *found = vka_tensor_file_find(c->reference, name);

    require(found != NULL, "%s: no tensor %s", c->name, name);
    assert_int_equal(found->dtype, VKA_F32);
    assert_int_equal(found->dims, 2);
    assert_int_equal(found->shape[0], rows);
    assert_int_equal(found->shape[1], c->desc.hidden_size);
    return found->data;
}

static void open_checkpoint(checkpoint *c, size_t index)
{
    char path[512];
    vka_error error;

    *c = (checkpoint){.name = checkpoints[index].folder};
    snprintf(path, sizeof(path), "%s/%s", VKA_TEST_DATA, c->name);
    require(vka_model_open(&c->model, path, &error) == VKA_OK, "%s", error.message);
    require(vka_model_layer_load(&c->loaded, c->model, VKA_BLOCK_SELF, checkpoints[index].layer, &error) == VKA_OK,
            "%s", error.message);
    c->desc = *vka_model_layer_desc(c->loaded);
    c->weights = *vka_model_layer_weights(c->loaded);
    snprintf(path, sizeof(path), "%s/%s/reference-layer%u.safetensors", VKA_TEST_DATA, c->name,
             checkpoints[index].layer);
    require(vka_tensor_file_open(&c->reference, path, &error) == VKA_OK, "%s", error.message);
    c->prefill_input = find_rows(c, "prefill_input", PREFILL);
    c->prefill_output = find_rows(c, "prefill_output", PREFILL);
    c->decode_input = find_rows(c, "decode_input", DECODE);
    c->decode_output = find_rows(c, "decode_output", DECODE);
}

static void close_checkpoint(checkpoint *c)
{
    vka_tensor_file_close(&c->reference);
    vka_model_layer_free(&c->loaded);
    vka_model_close(&c->model);
}

/* ---- running it ---- */

typedef struct running {
    vka_layer *layer;
    vka_cache *cache;
    uint32_t sequence;
} running;

static void start(running *r, const checkpoint *c, uint32_t tp, const char *place)
{
    const vka_layer_params layer = {
        .struct_size = sizeof(layer), .desc = &c->desc, .weights = &c->weights, .grid = {.tp = tp}, .place = place};
    const vka_cache_params cache = {.struct_size = sizeof(cache), .page_size = 7, .pages = 5, .dtype = VKA_F32};
    vka_error error;

    require(vka_layer_create(&r->layer, context, &layer, &error) == VKA_OK, "%s: %s", c->name, error.message);
    require(vka_cache_create(&r->cache, r->layer, &cache, &error) == VKA_OK, "%s: %s", c->name, error.message);
    assert_int_equal(vka_cache_sequence_new(r->cache, &r->sequence, NULL), VKA_OK);
}

static void stop(running *r)
{
    vka_cache_destroy(&r->cache);
    vka_layer_destroy(&r->layer);
}

/* Runs the next rows; the largest difference from what is expected. */
static double step(const running *r, const checkpoint *c, const float *input, const float *expected, uint32_t rows)
{
    uint32_t hidden = c->desc.hidden_size;
    float *output = malloc(rows * hidden * sizeof(float));
    const vka_batch_entry entry = {r->sequence, rows};
    const vka_forward_params params = {.struct_size = sizeof(params),
                                       .layer = r->layer,
                                       .cache = r->cache,
                                       .batch = {&entry, 1},
                                       .input = {input, VKA_F32, rows, hidden, 0},
                                       .output = {output, VKA_F32, rows, hidden, 0}};
    double worst = 0;
    vka_error error;

    require(vka_forward(&params, &error) == VKA_OK, "%s: %s", c->name, error.message);
    for (size_t i = 0; i < rows * hidden; i++) {
        double difference = fabs((double)output[i] - (double)expected[i]);
        worst = difference <= worst ? worst : isnan(difference) ? INFINITY : difference;
    }
    free(output);
    return worst;
}

static double run_all(const checkpoint *c, uint32_t tp, const char *place)
{
    running r = {0};

    start(&r, c, tp, place);
    double worst = step(&r, c, c->prefill_input, c->prefill_output, PREFILL);
    for (uint32_t i = 0; i < DECODE; i++)
        worst = fmax(worst, step(&r, c, c->decode_input + i * c->desc.hidden_size,
                                 c->decode_output + i * c->desc.hidden_size, 1));
    stop(&r);
    return worst;
}

/* Ranks on the devices in turn, so that no device's heads are neighbours. */
static void place_in_turn(char *place, uint32_t tp, uint32_t first)
{
    for (uint32_t t = 0; t < tp; t++)
        place += sprintf(place, "%s%u", t > 0 ? "," : "", (first + t) % vka_context_device_count(context));
}

/* ---- tests ---- */

static void every_checkpoint_at_every_tp(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECKPOINTS; i++) {
        checkpoint c;
        vka_verdict verdict;
        open_checkpoint(&c, i);
        assert_int_equal(vka_layout_judge(&c.desc, (vka_grid){0}, VKA_KV_REPLICATE, &verdict, NULL), VKA_OK);
        for (uint32_t v = 0; v < verdict.valid_replicate_count && verdict.valid_replicate[v] <= 8; v++) {
            for (uint32_t first = 0; first < vka_context_device_count(context); first++) {
                char place[64];
                place_in_turn(place, verdict.valid_replicate[v], first);
                double worst = run_all(&c, verdict.valid_replicate[v], place);
                require(worst <= TOLERANCE, "%s layer %u on %s: off by %g", c.name, checkpoints[i].layer, place, worst);
            }
        }
        close_checkpoint(&c);
    }
}

/* The same weights with the KV heads of K in another order. */
static void *rotate_heads(vka_tensor *k, uint32_t head_dim)
{
    size_t bytes = (size_t)(k->rows * k->cols) * vka_dtype_size(k->dtype);
    size_t head = (size_t)head_dim * (size_t)k->cols * vka_dtype_size(k->dtype);
    unsigned char *rotated = malloc(bytes);

    assert_int_equal(k->row_stride == 0 || k->row_stride == k->cols, 1);
    memcpy(rotated, (const unsigned char *)k->data + head, bytes - head);
    memcpy(rotated + bytes - head, k->data, head);
    k->data = rotated;
    return rotated;
}

typedef enum mistake {
    MISTAKE_ROPE_BASE,
    MISTAKE_SCALE,
    MISTAKE_KV_HEAD,
    MISTAKE_WINDOW,
    MISTAKE_NORM_EPS,
    MISTAKES
} mistake;

/* Makes a mistake in the description or the weights; false where it would change nothing. *owned is for free(). */
static bool plant(checkpoint *c, mistake which, void **owned)
{
    switch (which) {
    case MISTAKE_ROPE_BASE:
        c->desc.rope_theta *= 1.5;
        return true;
    case MISTAKE_SCALE:
        c->desc.scale *= 1.01;
        return true;
    case MISTAKE_KV_HEAD:
        *owned = c->desc.kv_heads > 1 ? rotate_heads(&c->weights.k, c->desc.head_dim) : NULL;
        return c->desc.kv_heads > 1;
    case MISTAKE_WINDOW:
        c->desc.window += c->desc.window > 0;
        return c->desc.window > 0;
    default:
        c->desc.norm_eps = 1e-2;
        return c->desc.qk_norm != VKA_QK_NORM_NONE;
    }
}

/* Each moves some output of every checkpoint far over the tolerance. */
static void mistakes_show(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECKPOINTS; i++) {
        for (int which = 0; which < MISTAKES; which++) {
            void *owned = NULL;
            checkpoint c;
            open_checkpoint(&c, i);
            if (plant(&c, (mistake)which, &owned)) {
                double worst = run_all(&c, 1, "0");
                require(worst > 20 * TOLERANCE, "%s layer %u: mistake %d moves the outputs by %g only", c.name,
                        checkpoints[i].layer, which, worst);
            }
            free(owned);
            close_checkpoint(&c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_checkpoint_at_every_tp),
        cmocka_unit_test(mistakes_show),
    };

    return cmocka_run_group_tests(tests, open_context, close_context);
}
