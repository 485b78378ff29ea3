/* What a call costs: several ranks on one device no more than one, an idle device nothing, a layer that was prewarmed
 * no pipeline, and decoding in the steady state no allocation. */
#include "layer/calls_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/calls.h"
#include "layer/script.h"

static const layer_case setup = {
    .name = "cost",
    .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8},
    .tp = 1,
    .place = "0",
    .pages = 100,
};

static const layer_case latent = {
    .name = "cost of latent attention",
    .desc = {.hidden_size = 200,
             .heads = 8,
             .kv_heads = 8,
             .head_dim = 16,
             .rotary_dim = 8,
             .rotary_offset = 8,
             .kv_lora_rank = 24,
             .q_lora_rank = 32},
    .tp = 1,
    .place = "0",
    .pages = 100,
};

/* ---- ranks of one device ---- */

enum { MOST_DISPATCHES = 200 };

typedef struct account {
    uint64_t groups[MOST_DISPATCHES][3];
    uint32_t dispatches;
    uint64_t device_bytes, host_bytes, cache_bytes;
} account;

static void note_dispatches(account *out, uint32_t from)
{
    for (uint32_t i = shim_find("vkCmdDispatch", -1, from); i != UINT32_MAX;
         i = shim_find("vkCmdDispatch", -1, i + 1)) {
        assert_int_equal(shim_event(i)->device, 0);
        assert_true(out->dispatches < MOST_DISPATCHES);
        memcpy(out->groups[out->dispatches++], shim_event(i)->value, sizeof(out->groups[0]));
    }
}

static void measure(const layer_case *base, uint32_t tp, account *out)
{
    vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    vka_memory_use use;
    layer_case one = *base;
    char place[16];
    layer_rig rig;

    snprintf(place, sizeof(place), "0*%u", tp);
    one.tp = tp;
    one.place = place;
    rig_open(&rig, context, &one);
    assert_int_equal(vka_context_memory(context, 0, &use, NULL), VKA_OK);
    out->device_bytes = use.device_bytes;
    out->host_bytes = use.host_bytes;
    out->cache_bytes = vka_cache_device_bytes(rig.cache, 0);
    uint32_t a = rig_sequence(&rig);
    assert_int_equal(vka_forward_prewarm(rig.layer, rig.cache, NULL), VKA_OK);
    uint32_t from = shim_event_count();
    rig_run(&rig, a, 600, NULL);
    rig_run(&rig, a, 1, NULL);
    rig_run(&rig, a, 3, NULL);
    note_dispatches(out, from);
    rig_close(&rig);
    calls_close(&context);
}

/* 8 ranks, and each KV head for 4 of them: the same dispatches, the same bytes. */
static void check_ranks(const layer_case *base, uint32_t token)
{
    account *one = calloc(1, sizeof(*one)), *eight = calloc(1, sizeof(*eight));

    measure(base, 1, one);
    measure(base, 8, eight);
    assert_true(one->dispatches > 15);
    assert_int_equal(one->dispatches, eight->dispatches);
    assert_memory_equal(one->groups, eight->groups, sizeof(one->groups));
    assert_int_equal(one->device_bytes, eight->device_bytes);
    assert_int_equal(one->host_bytes, eight->host_bytes);
    assert_int_equal(one->cache_bytes, eight->cache_bytes);
    assert_int_equal(one->cache_bytes, 100 * 16 * token * sizeof(float));
    free(one);
    free(eight);
}

static void ranks_of_one_device_cost_nothing(void **state)
{
    (void)state;
    check_ranks(&setup, 2 * 16);
    check_ranks(&latent, 24 + 8);
}

/* Dispatches of a decoding step: three more than of other layers, or one, however many heads there are. */
static uint32_t step_dispatches(const layer_case *one)
{
    vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    account *out = calloc(1, sizeof(*out));
    layer_rig rig;

    rig_open(&rig, context, one);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, 1, NULL);
    uint32_t from = shim_event_count();
    rig_run(&rig, a, 1, NULL);
    note_dispatches(out, from);
    uint32_t dispatches = out->dispatches;
    free(out);
    rig_close(&rig);
    calls_close(&context);
    return dispatches;
}

static void latents_cost_few_dispatches(void **state)
{
    layer_case straight = latent;

    (void)state;
    straight.desc.q_lora_rank = 0;
    assert_int_equal(step_dispatches(&latent), step_dispatches(&setup) + 3);
    assert_int_equal(step_dispatches(&straight), step_dispatches(&setup) + 1);
}

/* ---- an idle device ---- */

static uint32_t count_on(int device, const char *name)
{
    uint32_t count = 0;

    for (uint32_t i = shim_find(name, device, 0); i != UINT32_MAX; i = shim_find(name, device, i + 1))
        count++;
    return count;
}

static void an_idle_device_does_nothing(void **state)
{
    vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &setup);
    assert_int_equal(vka_forward_prewarm(rig.layer, rig.cache, NULL), VKA_OK);
    rig_extend(&rig, rig_sequence(&rig), 9, NULL);
    assert_true(count_on(0, "vkQueueSubmit") > 0);
    for (int device = 1; device < HARNESS_DEVICES; device++) {
        assert_int_equal(count_on(device, "vkQueueSubmit"), 0);
        assert_int_equal(count_on(device, "vkCreateComputePipelines"), 0);
        assert_int_equal(count_on(device, "vkCreateBuffer"), 0);
    }
    assert_int_equal(vka_cache_device_bytes(rig.cache, 1), 0);
    rig_close(&rig);
    calls_close(&context);
}

/* ---- prewarming ---- */

/* No call makes a pipeline or a module after it: of few rows and many, decoding and prefill, on memory of the host and
 * of the devices. */
static void prewarm(vka_context *context, const layer_case *one)
{
    static const script_tensors plain;
    vka_buffer *input[HARNESS_DEVICES] = {NULL}, *output[HARNESS_DEVICES] = {NULL};
    layer_rig rig;
    vka_error error;

    rig_open(&rig, context, one);
    require(vka_forward_prewarm(rig.layer, rig.cache, &error) == VKA_OK, "%s", error.message);
    uint32_t pipelines = shim_count("vkCreateComputePipelines"), modules = shim_count("vkCreateShaderModule");
    assert_true(pipelines > 0 && modules > 0);
    run_script(&rig, &plain);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) {
        size_t bytes = 4 * rig.desc.hidden_size * sizeof(float);
        require(vka_buffer_create(&input[d], context, d, bytes, &error) == VKA_OK, "%s", error.message);
        require(vka_buffer_create(&output[d], context, d, bytes, &error) == VKA_OK, "%s", error.message);
    }
    const vka_batch_entry entry = {0, 4};
    rig_forward(
        &rig, &(rig_call){
                  .entries = &entry, .count = 1, .input_buffers = input, .output_buffers = output, .unchecked = true});
    assert_int_equal(shim_count("vkCreateComputePipelines"), pipelines);
    assert_int_equal(shim_count("vkCreateShaderModule"), modules);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) {
        vka_buffer_destroy(&input[d]);
        vka_buffer_destroy(&output[d]);
    }
    rig_close(&rig);
}

static void prewarming_makes_all_pipelines(void **state)
{
    static const int layers[] = {SCRIPT_BALANCED, SCRIPT_REPRODUCIBLE, SCRIPT_QK_NORM};

    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        const vka_context_params params = calls_params();
        vka_context *context = calls_context(&params);
        prewarm(context, &script_cases[layers[i]]);
        calls_close(&context);
    }
}

/* ---- the steady state ---- */

/* Calls that make or allocate something, since the last reset. */
static uint32_t count_made(void)
{
    static const char *const names[] = {"vkAllocateMemory",         "vkCreateBuffer",       "vkCreateBufferView",
                                        "vkCreateCommandPool",      "vkCreateQueryPool",    "vkCreateDescriptorPool",
                                        "vkCreateComputePipelines", "vkCreateShaderModule", "vkAllocateCommandBuffers",
                                        "vkCreateSemaphore",        "vkMapMemory"};
    uint32_t made = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        made += shim_count(names[i]);
    return made;
}

/* The second step makes nothing, on the devices or on the host; hundreds more make next to nothing. */
static void decode_many(const layer_case *one, bool staged)
{
    support_heap heap = {0};
    vka_context_params params = calls_params();
    layer_case two = *one;
    layer_rig rig;

    params.realloc = support_heap_realloc;
    params.realloc_user = &heap;
    shim_hide_host_visible_device_memory(staged);
    two.tp = 2;
    two.place = "0,1";
    vka_context *context = calls_context(&params);
    rig_open(&rig, context, &two);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    const vka_batch_entry both[2] = {{a, 1}, {b, 1}};
    const rig_call step = {.entries = both, .count = 2, .unchecked = true};
    rig_forward(&rig, &step);
    rig_forward(&rig, &step);
    uint32_t made = count_made(), requests = heap.requests;
    rig_forward(&rig, &step);
    assert_int_equal(count_made(), made);
    assert_int_equal(heap.requests, requests);
    while (rig_length(&rig, a, 0) < 600) /* crosses 74 page borders, and splits become worth while */
        rig_forward(&rig, &step);
    assert_in_range(count_made() - made, 0, 6);
    assert_in_range(heap.requests - requests, 0, 30);
    rig_close(&rig);
    calls_close(&context);
    assert_int_equal(heap.live, 0);
}

static void decoding_allocates_nothing(void **state)
{
    (void)state;
    decode_many(&setup, false);
    decode_many(&latent, false);
}

static void decoding_with_staging_allocates_nothing(void **state)
{
    (void)state;
    decode_many(&setup, true);
}

int run_cost_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_device_cost_nothing), cmocka_unit_test(latents_cost_few_dispatches),
        cmocka_unit_test(an_idle_device_does_nothing),      cmocka_unit_test(prewarming_makes_all_pipelines),
        cmocka_unit_test(decoding_allocates_nothing),       cmocka_unit_test(decoding_with_staging_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
