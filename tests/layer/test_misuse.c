/* What a caller may get wrong: an error that says so, and nothing has changed. */
#include "layer/layer_tests.h"

#include <string.h>

#include "layer/harness.h"

enum { HIDDEN = 65 };

static const layer_case setup = {
    .name = "misuse",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 4, .head_dim = 8},
    .tp = 2,
    .place = "0,1",
    .page_size = 16,
    .pages = 5,
    .cache_layers = 2,
};

/* A layer with two sequences, and what must not change. */
typedef struct scene {
    layer_rig rig;
    uint32_t a, b;
    uint32_t free_pages, lengths[2][2];
    float rows[64 * HIDDEN];
    unsigned char out[64 * HIDDEN * sizeof(float)];
} scene;

static void remember(scene *s)
{
    s->free_pages = vka_cache_free_pages(s->rig.cache);
    for (uint32_t layer = 0; layer < 2; layer++) {
        s->lengths[0][layer] = rig_length(&s->rig, s->a, layer);
        s->lengths[1][layer] = rig_length(&s->rig, s->b, layer);
    }
}

static void check_unchanged(scene *s)
{
    assert_int_equal(vka_cache_free_pages(s->rig.cache), s->free_pages);
    for (uint32_t layer = 0; layer < 2; layer++) {
        assert_int_equal(rig_length(&s->rig, s->a, layer), s->lengths[0][layer]);
        assert_int_equal(rig_length(&s->rig, s->b, layer), s->lengths[1][layer]);
    }
}

static void open_scene(scene *s)
{
    memset(s, 0, sizeof(*s));
    rig_open(&s->rig, harness_context(), &setup);
    s->a = rig_sequence(&s->rig);
    s->b = rig_sequence(&s->rig);
    rig_run(&s->rig, s->a, 30, NULL); /* two pages, two places left */
    rig_run(&s->rig, s->b, 32, NULL); /* two pages, full */
    remember(s);
}

/* A call that would work: `tokens` of the entries in all. */
static vka_forward_params good_call(scene *s, const vka_batch_entry *entries, uint32_t count, uint32_t tokens)
{
    memset(s->out, 0xee, sizeof(s->out));
    return (vka_forward_params){.struct_size = sizeof(vka_forward_params),
                                .layer = s->rig.layer,
                                .cache = s->rig.cache,
                                .batch = {entries, count},
                                .input = {s->rows, VKA_F32, tokens, HIDDEN, 0},
                                .output = {s->out, VKA_F32, tokens, HIDDEN, 0}};
}

/* The call fails with `status` and `text`; neither the cache nor the caller's memory has changed. */
static void refuse(scene *s, const vka_forward_params *params, vka_status status, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_forward(params, &error), status);
    assert_int_equal(error.status, status);
    require(strstr(error.message, text) != NULL, "'%s' is not in: %s", text, error.message);
    assert_int_equal(vka_forward(params, NULL), status);
    check_unchanged(s);
    for (size_t i = 0; i < sizeof(s->out); i++)
        assert_int_equal(s->out[i], 0xee);
}

static void out_of_pages(void **state)
{
    static scene s;
    float expected[3 * HIDDEN], got[3 * HIDDEN];

    (void)state;
    open_scene(&s);
    /* one page is free: a alone would fit, b alone too, both together do not, in either order */
    const vka_batch_entry ab[2] = {{s.a, 3}, {s.b, 1}}, ba[2] = {{s.b, 1}, {s.a, 3}}, long_a[1] = {{s.a, 60}};
    vka_forward_params params = good_call(&s, ab, 2, 4);
    refuse(&s, &params, VKA_ERR_CACHE_FULL, "need 1 more pages of 16 tokens, 0 of 5 are free");
    params = good_call(&s, ba, 2, 4);
    refuse(&s, &params, VKA_ERR_CACHE_FULL, "0 of 5 are free");
    params = good_call(&s, long_a, 1, 60);
    refuse(&s, &params, VKA_ERR_CACHE_FULL, "need 4 more pages of 16 tokens, 1 of 5 are free");
    rig_extend(&s.rig, s.a, 3, got); /* as if nothing had been */
    layer_rig fresh;
    rig_open(&fresh, harness_context(), &setup);
    uint32_t sequence = rig_sequence(&fresh);
    rig_run(&fresh, sequence, 30, NULL);
    rig_run(&fresh, sequence, 3, expected);
    assert_memory_equal(expected, got, sizeof(got));
    rig_close(&fresh);
    rig_close(&s.rig);
}

static void bad_batches(void **state)
{
    static scene s;

    (void)state;
    open_scene(&s);
    const struct {
        vka_batch_entry entries[2];
        uint32_t count;
        const char *text;
    } bad[] = {
        {{{s.a, 1}, {s.a, 1}}, 2, "is twice in the batch"},
        {{{s.a, 1}, {99, 1}}, 2, "sequence 99 is not in the cache"},
        {{{UINT32_MAX, 1}}, 1, "sequence 4294967295 is not in the cache"},
        {{{s.a, 0}}, 1, "expected 1 to"},
        {{{s.a, UINT32_MAX}}, 1, "expected 1 to"},
        {{{s.a, 0x80000000u}}, 1, "expected 1 to"},
        {{{s.a, 1}}, 0, "the batch is empty"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        vka_forward_params params = good_call(&s, bad[i].entries, bad[i].count, 2);
        refuse(&s, &params, VKA_ERR_ARGUMENT, bad[i].text);
    }
    vka_forward_params params = good_call(&s, NULL, 1, 1);
    refuse(&s, &params, VKA_ERR_ARGUMENT, "the batch is empty");
    rig_close(&s.rig);
}

static void bad_tensors(void **state)
{
    static scene s;

    (void)state;
    open_scene(&s);
    const vka_batch_entry entry = {s.a, 2};
    vka_forward_params params = good_call(&s, &entry, 1, 2);
    params.input.rows = 3;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "input is [3, 65] with row stride 0, the batch needs [2, 65]");
    params = good_call(&s, &entry, 1, 2);
    params.output.cols = 64;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "output is [2, 64]");
    params = good_call(&s, &entry, 1, 2);
    params.input.row_stride = 64;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "input is [2, 65] with row stride 64");
    params = good_call(&s, &entry, 1, 2);
    params.output.dtype = (vka_dtype)77;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "output has dtype 77");
    params = good_call(&s, &entry, 1, 2);
    params.input.dtype = VKA_DTYPE_DEFAULT;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "input has dtype 0");
    params = good_call(&s, &entry, 1, 2);
    params.input.data = NULL;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "exactly one of input and input_buffers");
    params = good_call(&s, &entry, 1, 2);
    params.output.data = NULL;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "no output is wanted");
    params = good_call(&s, &entry, 1, 2);
    params.cache_layer = 2;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "cache_layer is 2, the cache has 2 layers");
    params = good_call(&s, &entry, 1, 2);
    vka_timing timing = {0};
    params.timing = &timing;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "timing->devices is NULL");
    params = good_call(&s, &entry, 1, 2);
    params.layer = NULL;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "layer of vka_forward_params is NULL");
    params = good_call(&s, &entry, 1, 2);
    params.cache = NULL;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "cache of vka_forward_params is NULL");
    rig_close(&s.rig);
}

/* A cache made for other heads, or for another placement of them. */
static void a_cache_that_does_not_fit(void **state)
{
    static scene s;
    layer_case other = setup;
    layer_rig rig;

    (void)state;
    open_scene(&s);
    const vka_batch_entry entry = {s.a, 2};
    other.place = "1,0";
    rig_open(&rig, harness_context(), &other);
    vka_forward_params params = good_call(&s, &entry, 1, 2);
    params.layer = rig.layer;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "holds other KV heads in the cache than in the layer");
    rig_close(&rig);
    other.place = setup.place;
    other.desc.v_head_dim = 7;
    rig_open(&rig, harness_context(), &other);
    params.layer = rig.layer;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "the cache holds heads of 8 and 8 elements, the layer has 8 and 7");
    rig_close(&rig);
    other.desc.v_head_dim = 0;
    other.reproducible = true;
    rig_open(&rig, harness_context(), &other);
    params.layer = rig.layer;
    refuse(&s, &params, VKA_ERR_ARGUMENT, "make the cache from a reproducible layer");
    rig_close(&rig);
    other.reproducible = false;
    other.desc.window = 4; /* of the same geometry: welcome */
    rig_open(&rig, harness_context(), &other);
    params.layer = rig.layer;
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
    rig_close(&rig);
    rig_close(&s.rig);
}

static int refuse_trace(void *user, const vka_trace *trace)
{
    (void)trace;
    return --*(int *)user == 0 ? 42 : 0;
}

/* The caller's own callback ends the call: pages go back, also after all the work was done. */
static void a_trace_that_refuses(void **state)
{
    static scene s;

    (void)state;
    open_scene(&s);
    const vka_batch_entry entry = {s.a, 10};
    for (int n = 1; n <= 2; n++) {
        vka_forward_params params = good_call(&s, &entry, 1, 10);
        vka_error error;
        int countdown = n;
        params.trace = refuse_trace;
        params.trace_user = &countdown;
        assert_int_equal(vka_forward(&params, &error), VKA_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "the trace callback returned 42"));
        check_unchanged(&s);
    }
    rig_extend(&s.rig, s.a, 10, NULL);
    rig_close(&s.rig);
}

static void sequences_that_are_not_there(void **state)
{
    static scene s;
    uint32_t length = 77, id = 77;

    (void)state;
    open_scene(&s);
    assert_int_equal(vka_cache_sequence_free(s.rig.cache, 2, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_sequence_truncate(s.rig.cache, 2, 0, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_sequence_length(s.rig.cache, 2, 0, &length, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_sequence_length(s.rig.cache, s.a, 2, &length, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(length, 77);
    check_unchanged(&s);
    assert_int_equal(vka_cache_sequence_free(s.rig.cache, s.a, NULL), VKA_OK);
    assert_int_equal(vka_cache_sequence_free(s.rig.cache, s.a, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_free_pages(s.rig.cache), 3);
    assert_int_equal(vka_cache_sequence_new(s.rig.cache, &id, NULL), VKA_OK);
    assert_int_equal(id, s.a); /* ids are small: a freed one is given again */
    assert_int_equal(rig_length(&s.rig, id, 0), 0);
    rig_close(&s.rig);
}

static void reading_the_cache(void **state)
{
    static scene s;
    float k[33 * 8], v[33 * 8];
    vka_cache *cache;

    (void)state;
    open_scene(&s);
    cache = s.rig.cache;
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 0, 0, 30, k, v, NULL), VKA_OK);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 1, 29, 1, k, NULL, NULL), VKA_OK);
    assert_int_equal(vka_cache_read(cache, 1, 0, s.a, 3, 30, 0, NULL, v, NULL), VKA_OK);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 2, 0, 1, k, v, NULL),
                     VKA_ERR_ARGUMENT); /* head 2 is on device 1 */
    assert_int_equal(vka_cache_read(cache, 2, 0, s.a, 2, 0, 1, k, v, NULL), VKA_ERR_ARGUMENT); /* idle */
    assert_int_equal(vka_cache_read(cache, 3, 0, s.a, 0, 0, 1, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 2, s.a, 0, 0, 1, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 1, s.a, 0, 0, 1, k, v, NULL), VKA_ERR_ARGUMENT); /* that layer is empty */
    assert_int_equal(vka_cache_read(cache, 0, 0, 9, 0, 0, 1, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 0, 0, 31, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 0, 31, 0, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 0, 2, UINT32_MAX, k, v, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_cache_read(cache, 0, 0, s.a, 0, UINT32_MAX, 2, k, v, NULL), VKA_ERR_ARGUMENT);
    rig_close(&s.rig);
}

static void bad_caches(void **state)
{
    static const struct {
        vka_cache_params params;
        const char *text;
    } bad[] = {
        {{.pages = 0}, "pages is 0"},
        {{.pages = 1, .page_size = 65537}, "page_size is 65537, expected 1 to 65536"},
        {{.pages = 1 << 20, .page_size = 65536}, "a cache holds at most 2^31 - 1 tokens"},
        {{.pages = 1, .layers = 65537}, "layers is 65537, expected 1 to 65536"},
        {{.pages = 1, .dtype = VKA_BF16}, "dtype of the KV cache is BF16, expected F32 or F16"},
        {{.pages = 1, .dtype = (vka_dtype)9}, "dtype of the KV cache is unknown"},
    };
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        vka_cache_params params = bad[i].params;
        vka_cache *cache = NULL;
        vka_error error = {0};
        params.struct_size = sizeof(params);
        assert_int_equal(vka_cache_create(&cache, rig.layer, &params, &error), VKA_ERR_ARGUMENT);
        require(strstr(error.message, bad[i].text) != NULL, "'%s' is not in: %s", bad[i].text, error.message);
        assert_null(cache);
    }
    rig_close(&rig);
}

/* Refusals of a layer: the layout's with its ways out, cp and dp, weights of other shapes, placements. */
static void bad_layers(void **state)
{
    const struct {
        vka_grid grid;
        const char *place;
        uint32_t heads; /* of the description, 0: as the weights have them */
        vka_status status;
        const char *text;
    } bad[] = {
        {{.tp = 3}, NULL, 0, VKA_ERR_LAYOUT, "3"},
        {{.tp = 16}, NULL, 0, VKA_ERR_LAYOUT, "16"},
        {{.tp = 2, .cp = 2}, NULL, 0, VKA_ERR_UNSUPPORTED, "cp = 2"},
        {{.tp = 2, .dp = 3}, NULL, 0, VKA_ERR_UNSUPPORTED, "dp = 3"},
        {{.tp = 2}, "0,7", 0, VKA_ERR_ARGUMENT, "7"},
        {{.tp = 2}, "0*3", 0, VKA_ERR_ARGUMENT, "3"},
        {{.tp = 2}, NULL, 16, VKA_ERR_FORMAT, "q"},
    };
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        vka_layer_desc desc = rig.desc;
        vka_layer *layer = NULL;
        vka_error error = {0};
        desc.heads = bad[i].heads != 0 ? bad[i].heads : desc.heads;
        const vka_layer_params params = {.struct_size = sizeof(params),
                                         .desc = &desc,
                                         .weights = &rig.weights,
                                         .grid = bad[i].grid,
                                         .place = bad[i].place};
        assert_int_equal(vka_layer_create(&layer, harness_context(), &params, &error), bad[i].status);
        require(strstr(error.message, bad[i].text) != NULL, "'%s' is not in: %s", bad[i].text, error.message);
        assert_null(layer);
    }
    rig_close(&rig);
}

int run_misuse_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_pages),         cmocka_unit_test(bad_batches),
        cmocka_unit_test(bad_tensors),          cmocka_unit_test(a_cache_that_does_not_fit),
        cmocka_unit_test(a_trace_that_refuses), cmocka_unit_test(sequences_that_are_not_there),
        cmocka_unit_test(reading_the_cache),    cmocka_unit_test(bad_caches),
        cmocka_unit_test(bad_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
