/* Calls that are cut in chunks, by the time budget of a submission. */
#include "layer/calls_tests.h"

#include <stdlib.h>
#include <string.h>

#include "layer/attention_scene.h"
#include "layer/calls.h"

enum { HIDDEN = 1000, PREFILL = 200, ROWS = PREFILL + 1 + 80 };

static const layer_case setup = {
    .name = "chunks",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 2, .head_dim = 8},
    .tp = 4,
    .place = "0,1,0,1",
    .qkv_bias = true,
    .o_bias = true,
    .cache_layers = 2,
};

/* Chunks of a few dozen rows. `staged`: device memory is not the host's. */
static vka_context *open_context(bool staged)
{
    vka_context_params params = calls_params();

    params.submit_budget_ms = 1;
    shim_hide_host_visible_device_memory(staged);
    return calls_context(&params);
}

/* A prefill, then one row beside a prefill: `rows` gets all results. The chunks of the second call hold rows of both
 * sequences. */
static void run_calls(layer_rig *rig, bool unchecked, float *rows)
{
    vka_stage_time times[HARNESS_DEVICES][VKA_STAGE_COUNT];
    vka_timing timing = {.devices = times};
    uint32_t a = rig_sequence(rig), b = rig_sequence(rig);
    const vka_batch_entry prefill = {a, PREFILL}, both[2] = {{a, 1}, {b, 80}};

    rig->stream[a] = 1;
    rig->stream[b] = 2;
    rig_forward(
        rig, &(rig_call){.entries = &prefill, .count = 1, .unchecked = unchecked, .timing = &timing, .result = rows});
    assert_true(timing.chunks > 3);
    rig_forward(
        rig,
        &(rig_call){
            .entries = both, .count = 2, .unchecked = unchecked, .timing = &timing, .result = rows + PREFILL * HIDDEN});
    assert_true(timing.chunks > 1);
}

/* With a trace, chunks run one after the other; without, two at a time: the same bits, and all are checked. */
static void overlapped_chunks(bool staged)
{
    float *checked = malloc(ROWS * HIDDEN * sizeof(float)), *overlapped = malloc(ROWS * HIDDEN * sizeof(float));
    vka_context *context = open_context(staged);
    layer_rig rig;

    rig_open(&rig, context, &setup);
    run_calls(&rig, false, checked);
    run_calls(&rig, true, overlapped);
    assert_memory_equal(checked, overlapped, ROWS * HIDDEN * sizeof(float));
    rig_close(&rig);
    calls_close(&context);
    free(checked);
    free(overlapped);
}

enum { LAYERS = 3, CROSS_KEYS = 300, KV_COLUMNS = 2 * 8 };

/* K as handed out against what the cache holds. */
static void check_keys(layer_rig *rig, uint32_t sequence, uint32_t tokens, const float *k)
{
    float kept[CROSS_KEYS * 8];

    for (uint32_t head = 0; head < 2; head++) {
        uint32_t device = 0;
        while (vka_cache_read(rig->cache, device, 0, sequence, head, 0, tokens, kept, NULL, NULL) != VKA_OK)
            assert_true(++device < HARNESS_DEVICES);
        for (uint32_t t = 0; t < tokens; t++)
            assert_memory_equal(k + t * KV_COLUMNS + head * 8, kept + t * 8, 8 * sizeof(float));
    }
}

/* Full and cross attention cut in chunks: all keys of the call come before any row attends. And a layer whose chunks
 * wait for the norms of all heads. */
static void chunks_of_other_layers(bool staged)
{
    static const uint32_t keys[1] = {CROSS_KEYS};
    static float k[2][CROSS_KEYS * KV_COLUMNS];
    layer_case layers[LAYERS] = {setup, setup, setup};
    float *rows[2] = {malloc(PREFILL * HIDDEN * sizeof(float)), malloc(PREFILL * HIDDEN * sizeof(float))};

    layers[0].desc.attend = VKA_ATTEND_FULL;
    layers[1].desc.attend = VKA_ATTEND_CROSS;
    layers[1].desc.rope_type = VKA_ROPE_NONE;
    layers[1].desc.kv_hidden_size = 500;
    layers[2].desc.qk_norm = VKA_QK_NORM_FULL_WIDTH; /* two submissions a chunk */
    layers[2].desc.gate = VKA_GATE_SIGMOID;
    for (int i = 0; i < LAYERS; i++) {
        vka_stage_time times[HARNESS_DEVICES][VKA_STAGE_COUNT];
        vka_timing timing = {.devices = times};
        vka_context *context = open_context(staged);
        layer_rig rig;
        rig_open(&rig, context, &layers[i]);
        for (int unchecked = 0; unchecked < 2; unchecked++) {
            const vka_batch_entry entry = {rig_sequence(&rig), PREFILL};
            rig.stream[entry.sequence] = 1;
            rig_forward(&rig,
                        &(rig_call){.entries = &entry,
                                    .count = 1,
                                    .kv_tokens = i == 1 ? keys : NULL,
                                    .unchecked = unchecked != 0,
                                    .timing = &timing,
                                    .k_output = {k[unchecked], VKA_F32, i == 1 ? CROSS_KEYS : PREFILL, KV_COLUMNS, 0},
                                    .result = rows[unchecked]});
            check_keys(&rig, entry.sequence, i == 1 ? CROSS_KEYS : PREFILL, k[unchecked]);
            assert_true(timing.chunks > 3);
        }
        assert_memory_equal(rows[0], rows[1], PREFILL * HIDDEN * sizeof(float));
        rig_close(&rig);
        calls_close(&context);
    }
    free(rows[0]);
    free(rows[1]);
}

static void in_mapped_memory(void **state)
{
    (void)state;
    overlapped_chunks(false);
    chunks_of_other_layers(false);
}

static void with_staging(void **state)
{
    (void)state;
    overlapped_chunks(true);
    chunks_of_other_layers(true);
}

/* One layer after the other with hidden states that stay on the devices, in place, chunk by chunk. */
static void a_chain_in_place(bool staged)
{
    size_t bytes = PREFILL * HIDDEN * sizeof(float);
    float *between = malloc(bytes), *expected = malloc(bytes), *got = malloc(bytes);
    vka_context *context = open_context(staged);
    vka_buffer *buffers[HARNESS_DEVICES] = {0};
    layer_rig rig;

    rig_open(&rig, context, &setup);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    const vka_batch_entry on_host = {a, PREFILL}, on_devices = {b, PREFILL};
    rig.stream[b] = rig.stream[a];
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = rig.layer,
                                 .cache = rig.cache,
                                 .cache_layer = 1,
                                 .batch = {&on_host, 1},
                                 .input = {between, VKA_F32, PREFILL, HIDDEN, 0},
                                 .output = {expected, VKA_F32, PREFILL, HIDDEN, 0}};
    rig_forward(&rig, &(rig_call){.entries = &on_host, .count = 1, .result = between, .unchecked = true});
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++)
        assert_int_equal(vka_buffer_create(&buffers[d], context, d, bytes, NULL), VKA_OK);
    rig_forward(&rig, &(rig_call){.entries = &on_devices, .count = 1, .output_buffers = buffers, .unchecked = true});
    params.batch.entries = &on_devices;
    params.input = (vka_tensor){0};
    params.output = (vka_tensor_out){0};
    params.input_buffers = params.output_buffers = buffers;
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) {
        assert_int_equal(vka_buffer_read(buffers[d], 0, got, bytes, NULL), VKA_OK);
        assert_memory_equal(expected, got, bytes);
        vka_buffer_destroy(&buffers[d]);
    }
    rig_close(&rig);
    calls_close(&context);
    free(between);
    free(expected);
    free(got);
}

static void a_chain_in_mapped_memory(void **state)
{
    (void)state;
    a_chain_in_place(false);
}

static void a_chain_with_staging(void **state)
{
    (void)state;
    a_chain_in_place(true);
}

/* The caller ends the call after some chunks: all of it is undone. */
static int end_at(void *user, const vka_trace *trace)
{
    (void)user;
    return trace->first_row >= 64;
}

static void a_call_that_ends_between_chunks(void **state)
{
    float *rows = calloc(PREFILL * HIDDEN, sizeof(float));
    vka_context *context = open_context(false);
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &setup);
    const vka_batch_entry entry = {rig_sequence(&rig), PREFILL};
    const vka_forward_params params = {.struct_size = sizeof(params),
                                       .layer = rig.layer,
                                       .cache = rig.cache,
                                       .batch = {&entry, 1},
                                       .input = {rows, VKA_F32, PREFILL, HIDDEN, 0},
                                       .output = {rows, VKA_F32, PREFILL, HIDDEN, 0},
                                       .trace = end_at};
    uint32_t pages = vka_cache_free_pages(rig.cache);
    rig_run(&rig, entry.sequence, 20, NULL);
    assert_int_equal(vka_forward(&params, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(rig_length(&rig, entry.sequence, 0), 20);
    assert_int_equal(vka_cache_free_pages(rig.cache), pages - 2);
    rig_extend(&rig, entry.sequence, 9, NULL);
    rig_close(&rig);
    calls_close(&context);
    free(rows);
}

/* The attention step, cut by rows too, between host and device tensors. */
static void attention_in_chunks(bool staged)
{
    static const attention_case long_rows = {"chunks",
                                             {3, 8, 2, 8, 8, 70, 1500},
                                             .causal = VKA_CAUSAL_BOTTOM_RIGHT,
                                             .mask_rank = 4,
                                             .mask_shape = {3, 1, 70, 1}};
    const unsigned all = (1u << TENSORS) - 1;
    vka_context *context = open_context(staged);
    attention_scene s;

    attention_open(&s, context, &long_rows);
    attention_check(&s, 0);
    float *o = calloc(s.count[TENSOR_O], sizeof(float)), *lse = calloc(s.count[TENSOR_LSE], sizeof(float));
    uint32_t before = shim_count("vkQueueSubmit");
    attention_run_on_device(&s, 0, all, o, lse);
    assert_true(shim_count("vkQueueSubmit") - before > 5);
    assert_memory_equal(o, s.value[TENSOR_O], s.count[TENSOR_O] * sizeof(float));
    assert_memory_equal(lse, s.value[TENSOR_LSE], s.count[TENSOR_LSE] * sizeof(float));
    attention_close(&s);
    calls_close(&context);
    free(o);
    free(lse);
}

static void attention_in_mapped_memory(void **state)
{
    (void)state;
    attention_in_chunks(false);
}

static void attention_with_staging(void **state)
{
    (void)state;
    attention_in_chunks(true);
}

int run_chunks_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_mapped_memory),
        cmocka_unit_test(with_staging),
        cmocka_unit_test(a_chain_in_mapped_memory),
        cmocka_unit_test(a_chain_with_staging),
        cmocka_unit_test(a_call_that_ends_between_chunks),
        cmocka_unit_test(attention_in_mapped_memory),
        cmocka_unit_test(attention_with_staging),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
