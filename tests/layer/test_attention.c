/* The attention step alone: every element and log-sum-exp against float64; host tensors and device tensors give the
 * same bits. */
#include "layer/layer_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "layer/harness.h"

typedef struct attention_case {
    const char *name;
    uint32_t batch, heads, kv_heads, head_dim, v_head_dim, q_len, kv_len;
    vka_causal causal;
    uint32_t window;
    double scale;
    vka_dtype host, cache; /* default F32 */
} attention_case;

static const attention_case cases[] = {
    {"no mask", 2, 8, 2, 8, 8, 21, 33, VKA_CAUSAL_NONE, 0, 0, 0, 0},
    {"bottom right", 2, 8, 2, 8, 8, 21, 33, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0, 0, 0},
    {"top left", 2, 8, 2, 8, 8, 21, 33, VKA_CAUSAL_TOP_LEFT, 0, 0, 0, 0},
    {"more queries than keys", 2, 6, 3, 5, 7, 40, 17, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0, 0, 0},
    {"more queries than keys, top left", 1, 6, 3, 5, 7, 40, 17, VKA_CAUSAL_TOP_LEFT, 0, 0, 0, 0},
    {"window", 1, 8, 1, 8, 8, 50, 90, VKA_CAUSAL_BOTTOM_RIGHT, 13, 0, 0, 0},
    {"window that ends before the keys", 1, 2, 2, 8, 8, 60, 20, VKA_CAUSAL_TOP_LEFT, 5, 0, 0, 0},
    {"no keys", 3, 4, 2, 8, 8, 5, 0, VKA_CAUSAL_NONE, 0, 0, 0, 0},
    {"no keys, one query", 3, 4, 2, 8, 8, 1, 0, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0, 0, 0},
    {"decoding", 7, 8, 2, 8, 8, 1, 45, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0, 0, 0},
    {"decoding, split", 1, 8, 2, 8, 8, 1, 1500, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0, 0, 0},
    {"three rows, split, window", 1, 4, 4, 8, 8, 3, 1500, VKA_CAUSAL_BOTTOM_RIGHT, 700, 0, 0, 0},
    {"F16", 2, 8, 4, 8, 3, 9, 30, VKA_CAUSAL_BOTTOM_RIGHT, 0, 0.7, VKA_F16, VKA_F16},
    {"BF16", 2, 8, 4, 8, 3, 9, 30, VKA_CAUSAL_NONE, 0, 0.7, VKA_BF16, 0},
    {"F32 in, F16 kept", 2, 3, 3, 8, 8, 2, 30, VKA_CAUSAL_NONE, 0, 1.5, 0, VKA_F16},
    {"many entries", 70, 2, 1, 1, 1, 4, 5, VKA_CAUSAL_TOP_LEFT, 0, 0, 0, 0},
    {"one of everything", 1, 1, 1, 1, 1, 1, 1, VKA_CAUSAL_NONE, 0, 0, 0, 0},
};

enum { Q, K, V, O, L, TENSORS };

/* One case with its tensors: as the caller has them, and as F32. */
typedef struct scene {
    const attention_case *c;
    size_t count[TENSORS];
    unsigned char *host[TENSORS];
    float *value[TENSORS];
} scene;

static vka_dtype host_type(const attention_case *c, int tensor)
{
    return tensor == L || c->host == VKA_DTYPE_DEFAULT ? VKA_F32 : c->host;
}

static void open_scene(scene *s, const attention_case *c)
{
    size_t queries = (size_t)c->batch * c->q_len * c->heads, keys = (size_t)c->batch * c->kv_len * c->kv_heads;

    *s = (scene){c,
                 {queries * c->head_dim, keys * c->head_dim, keys * c->v_head_dim, queries * c->v_head_dim, queries},
                 {0},
                 {0}};
    for (int t = 0; t < TENSORS; t++) {
        size_t size = vka_dtype_size(host_type(c, t));
        s->host[t] = malloc(s->count[t] * size + 16);
        s->value[t] = malloc(s->count[t] * sizeof(float) + 16);
        memset(s->host[t], 0xff, s->count[t] * size + 16); /* NaN, and a guard behind the last element */
        if (t > V)
            continue;
        vka_random_fill(s->value[t], s->count[t], t == Q ? 2.0 : 1.0, 77, (uint32_t)t, 0);
        vka_convert(s->host[t], host_type(c, t), s->value[t], VKA_F32, s->count[t]);
        vka_convert(s->value[t], VKA_F32, s->host[t], host_type(c, t), s->count[t]);
    }
}

static void close_scene(scene *s)
{
    for (int t = 0; t < TENSORS; t++) {
        free(s->host[t]);
        free(s->value[t]);
    }
}

static vka_attention_params make_params(const scene *s, uint32_t device)
{
    const attention_case *c = s->c;
    vka_attention_params params = {.struct_size = sizeof(params),
                                   .device = device,
                                   .batch = c->batch,
                                   .heads = c->heads,
                                   .kv_heads = c->kv_heads,
                                   .head_dim = c->head_dim,
                                   .v_head_dim = c->v_head_dim,
                                   .q_len = c->q_len,
                                   .kv_len = c->kv_len,
                                   .scale = c->scale,
                                   .causal = c->causal,
                                   .window = c->window,
                                   .cache_dtype = c->cache};
    vka_attention_tensor *tensors[TENSORS] = {&params.q, &params.k, &params.v, &params.o, &params.lse};

    for (int t = 0; t < TENSORS; t++)
        *tensors[t] = (vka_attention_tensor){.host = s->host[t], .dtype = host_type(c, t)};
    return params;
}

/* What the kernel reads: rounded to the type that it is kept in. */
static float *as_kept(const scene *s, int tensor)
{
    float *kept = malloc(s->count[tensor] * sizeof(float) + 4);

    for (size_t i = 0; i < s->count[tensor]; i++)
        kept[i] = s->c->cache == VKA_F16 ? vka_f16_to_f32(vka_f32_to_f16(s->value[tensor][i])) : s->value[tensor][i];
    return kept;
}

static int64_t first_position(const attention_case *c)
{
    return c->causal == VKA_CAUSAL_BOTTOM_RIGHT ? (int64_t)c->kv_len - c->q_len : 0;
}

/* Checks value[O] and value[L]; `mutant` plants a bug in the reference. */
static void judge(const scene *s, verify_mutant mutant, verify_result *output, verify_result *lse)
{
    const attention_case *c = s->c;
    float *k = as_kept(s, K), *v = as_kept(s, V);

    for (uint32_t b = 0; b < c->batch; b++) {
        for (uint32_t h = 0; h < c->heads; h++) {
            size_t query = (size_t)b * c->q_len * c->heads + h, key = (size_t)b * c->kv_len * c->kv_heads;
            const verify_attention_params params = {.rows = c->q_len,
                                                    .keys = c->kv_len,
                                                    .qk_dim = c->head_dim,
                                                    .v_dim = c->v_head_dim,
                                                    .q = s->value[Q] + query * c->head_dim,
                                                    .q_stride = (size_t)c->heads * c->head_dim,
                                                    .k = k + key * c->head_dim,
                                                    .v = v + key * c->v_head_dim,
                                                    .k_key_stride = (size_t)c->kv_heads * c->head_dim,
                                                    .k_head_stride = c->head_dim,
                                                    .v_key_stride = (size_t)c->kv_heads * c->v_head_dim,
                                                    .v_head_stride = c->v_head_dim,
                                                    .kv_head = h / (c->heads / c->kv_heads),
                                                    .kv_heads = c->kv_heads,
                                                    .scale = c->scale != 0 ? c->scale : 1 / sqrt(c->head_dim),
                                                    .position = first_position(c),
                                                    .causal = c->causal != VKA_CAUSAL_NONE,
                                                    .window = c->window,
                                                    .got = s->value[O] + query * c->v_head_dim,
                                                    .got_stride = (size_t)c->heads * c->v_head_dim,
                                                    .lse = s->value[L] + query,
                                                    .lse_stride = c->heads,
                                                    .mutant = mutant};
            assert_int_equal(verify_attention(&params, output, lse, NULL), VKA_OK);
        }
    }
    free(k);
    free(v);
}

static void run_on_host(scene *s, uint32_t device)
{
    vka_attention_params params = make_params(s, device);
    double gpu_ms = -7;
    vka_error error;

    params.gpu_ms = &gpu_ms;
    require(vka_attention(harness_context(), &params, &error) == VKA_OK, "%s: %s", s->c->name, error.message);
    assert_true(gpu_ms == -1 || gpu_ms >= 0);
    for (int t = O; t < TENSORS; t++) {
        size_t size = vka_dtype_size(host_type(s->c, t));
        for (int i = 0; i < 16; i++)
            assert_int_equal(s->host[t][s->count[t] * size + (size_t)i], 0xff);
        vka_convert(s->value[t], VKA_F32, s->host[t], host_type(s->c, t), s->count[t]);
    }
}

/* A 16-bit result is rounded once more than the reference's bound allows for: take it from an F32 run. */
static void widen_result(scene *s, uint32_t device)
{
    vka_attention_params params = make_params(s, device);
    float *o = malloc(s->count[O] * sizeof(float) + 4), *rounded = malloc(s->count[O] * sizeof(float) + 4);

    params.o = (vka_attention_tensor){.host = o};
    assert_int_equal(vka_attention(harness_context(), &params, NULL), VKA_OK);
    unsigned char *bits = malloc(s->count[O] * 4 + 4);
    vka_convert(bits, host_type(s->c, O), o, VKA_F32, s->count[O]);
    vka_convert(rounded, VKA_F32, bits, host_type(s->c, O), s->count[O]);
    assert_memory_equal(rounded, s->value[O], s->count[O] * sizeof(float));
    memcpy(s->value[O], o, s->count[O] * sizeof(float));
    free(bits);
    free(rounded);
    free(o);
}

static void check_scene(scene *s, uint32_t device)
{
    verify_result output = {0}, lse = {0};

    run_on_host(s, device);
    if (host_type(s->c, O) != VKA_F32)
        widen_result(s, device);
    judge(s, VERIFY_CORRECT, &output, &lse);
    require(verify_passed(&output), "%s: output %zu is %g times its bound: %g, want %g", s->c->name, output.index,
            output.max_ratio, output.got, output.want);
    require(verify_passed(&lse), "%s: log-sum-exp %zu is %g times its bound: %g, want %g", s->c->name, lse.index,
            lse.max_ratio, lse.got, lse.want);
    assert_int_equal(output.elements, s->count[O]);
    assert_int_equal(lse.elements, s->count[L]);
}

static void every_case(void **state)
{
    (void)state;
    for (uint32_t device = 0; device < 2; device++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            scene s;
            open_scene(&s, &cases[i]);
            check_scene(&s, device);
            close_scene(&s);
        }
    }
}

static void planted_bugs_are_found(void **state)
{
    static const verify_mutant mutants[] = {VERIFY_WRONG_SCALE, VERIFY_DROPPED_KEY, VERIFY_MASK_OFF_BY_ONE,
                                            VERIFY_WRONG_KV_HEAD};
    scene s;

    (void)state;
    open_scene(&s, &cases[1]);
    run_on_host(&s, 0);
    for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
        verify_result output = {0}, lse = {0};
        judge(&s, mutants[i], &output, &lse);
        require(!verify_passed(&output), "%s passed", verify_mutant_name(mutants[i]));
    }
    close_scene(&s);
}

/* ---- device tensors ---- */

enum { OFFSET = 12 };

/* F32 tensors in buffers, at an offset that is no multiple of 16; `on_device` says which, the rest stay on the host. */
static void run_on_device(const scene *s, uint32_t device, unsigned on_device, float *o, float *lse)
{
    vka_attention_params params = make_params(s, device);
    vka_attention_tensor *tensors[TENSORS] = {&params.q, &params.k, &params.v, &params.o, &params.lse};
    vka_buffer *buffers[TENSORS] = {0};
    float *out[TENSORS] = {[O] = o, [L] = lse};
    vka_error error;

    params.o.host = o;
    params.lse.host = lse;
    for (int t = 0; t < TENSORS; t++) {
        uint64_t bytes = s->count[t] * sizeof(float);
        if ((on_device >> t & 1u) == 0)
            continue;
        assert_int_equal(vka_buffer_create(&buffers[t], harness_context(), device, OFFSET + bytes + 4, NULL), VKA_OK);
        *tensors[t] = (vka_attention_tensor){.buffer = buffers[t], .offset = OFFSET};
        if (t <= V && bytes > 0)
            assert_int_equal(vka_buffer_write(buffers[t], OFFSET, s->value[t], bytes, NULL), VKA_OK);
    }
    require(vka_attention(harness_context(), &params, &error) == VKA_OK, "%s: %s", s->c->name, error.message);
    for (int t = 0; t < TENSORS; t++) {
        if (t >= O && buffers[t] != NULL)
            assert_int_equal(vka_buffer_read(buffers[t], OFFSET, out[t], s->count[t] * sizeof(float), NULL), VKA_OK);
        vka_buffer_destroy(&buffers[t]);
    }
}

static void device_tensors_give_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].host != VKA_DTYPE_DEFAULT)
            continue;
        scene s;
        open_scene(&s, &cases[i]);
        run_on_host(&s, 0);
        for (unsigned on_device = 1; on_device < 1u << TENSORS; on_device += 6) { /* 1, 7, 13, 19, 25, 31 */
            float *o = calloc(s.count[O] + 1, sizeof(float)), *lse = calloc(s.count[L] + 1, sizeof(float));
            run_on_device(&s, 0, on_device, o, lse);
            assert_memory_equal(o, s.value[O], s.count[O] * sizeof(float));
            assert_memory_equal(lse, s.value[L], s.count[L] * sizeof(float));
            free(o);
            free(lse);
        }
        close_scene(&s);
    }
}

/* ---- misuse ---- */

static void refuse(const vka_attention_params *params, vka_status status, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_attention(harness_context(), params, &error), status);
    assert_int_equal(error.status, status);
    require(strstr(error.message, text) != NULL, "'%s' is not in: %s", text, error.message);
}

static void bad_parameters(void **state)
{
    scene s;

    (void)state;
    open_scene(&s, &cases[1]);
    const vka_attention_params good = make_params(&s, 0);
    vka_buffer *buffer = NULL;
    assert_int_equal(vka_buffer_create(&buffer, harness_context(), 1, 64, NULL), VKA_OK);
#define REFUSE(field, value, status, text)                                                                             \
    do {                                                                                                               \
        vka_attention_params bad = good;                                                                               \
        bad.field = (value);                                                                                           \
        refuse(&bad, status, text);                                                                                    \
    } while (0)
    REFUSE(device, 3, VKA_ERR_ARGUMENT, "device is 3, the context has 3");
    REFUSE(batch, 0, VKA_ERR_ARGUMENT, "batch 0");
    REFUSE(q_len, 0, VKA_ERR_ARGUMENT, "q_len 0");
    REFUSE(heads, 7, VKA_ERR_ARGUMENT, "heads a multiple of kv_heads");
    REFUSE(kv_heads, 0, VKA_ERR_ARGUMENT, "kv_heads 0");
    REFUSE(head_dim, 577, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(head_dim, 0, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(v_head_dim, 577, VKA_ERR_ARGUMENT, "expected 1 to 576");
    REFUSE(kv_len, UINT32_MAX, VKA_ERR_ARGUMENT, "limited to 2^31 - 1");
    REFUSE(batch, UINT32_MAX, VKA_ERR_ARGUMENT, "limited to 2^31 - 1");
    REFUSE(scale, (double)NAN, VKA_ERR_ARGUMENT, "expected a finite number");
    REFUSE(causal, (vka_causal)3, VKA_ERR_ARGUMENT, "causal is 3");
    REFUSE(cache_dtype, VKA_BF16, VKA_ERR_ARGUMENT, "cache_dtype is BF16");
    REFUSE(q.host, NULL, VKA_ERR_ARGUMENT, "q has neither host memory nor a buffer");
    REFUSE(o.host, NULL, VKA_ERR_ARGUMENT, "o has neither");
    REFUSE(k.host, NULL, VKA_ERR_ARGUMENT, "k has neither");
    REFUSE(v.buffer, buffer, VKA_ERR_ARGUMENT, "v has both");
    REFUSE(v.dtype, (vka_dtype)12, VKA_ERR_ARGUMENT, "v has dtype unknown");
    vka_attention_params bad = good;
    bad.window = 3;
    bad.causal = VKA_CAUSAL_NONE;
    refuse(&bad, VKA_ERR_ARGUMENT, "a window needs a causal alignment");
    bad = good;
    bad.q = (vka_attention_tensor){.buffer = buffer};
    refuse(&bad, VKA_ERR_ARGUMENT, "q is on device 1");
    bad.device = 1;
    refuse(&bad, VKA_ERR_ARGUMENT, "q needs 2688 F32 values from byte 0");
    bad.q.offset = UINT64_MAX - 3;
    refuse(&bad, VKA_ERR_ARGUMENT, "from byte 18446744073709551612");
    bad.q.offset = 2;
    refuse(&bad, VKA_ERR_ARGUMENT, "a multiple of 4");
    vka_buffer_destroy(&buffer);
    assert_int_equal(vka_attention(NULL, &good, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_attention(harness_context(), NULL, NULL), VKA_ERR_ARGUMENT);
    close_scene(&s);
}

int run_attention_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(planted_bugs_are_found),
        cmocka_unit_test(device_tensors_give_the_same_bits),
        cmocka_unit_test(bad_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
