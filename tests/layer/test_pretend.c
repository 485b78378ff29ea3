/* The representative layers again on lesser devices: the least that Vulkan 1.2 promises, small allocations, memory that
 * the host does not see, memory that is not coherent. */
#include <stdlib.h>
#include <string.h>

#include "exec/cache.h"
#include "layer/attention_scene.h"
#include "layer/calls.h"
#include "layer/script.h"

/* All layers on one kind of device; where two kinds compile everything, those that need few kernels. */
static void run_layers(vka_context *context)
{
    size_t count = harness_devices()->count == 1 ? SCRIPT_CASES : SCRIPT_FEW;

    for (size_t i = 0; i < count; i++)
        run_case(context, &script_cases[i]);
}

static void the_floor(void **state)
{
    vka_context_params params = calls_params();

    (void)state;
    params.pretend = "floor";
    vka_context *context = calls_context(&params);
    run_layers(context);
    assert_true(shim_count("vkCmdCopyBuffer") > 0); /* the floor has no host-cached device memory */
    calls_close(&context);
}

static void memory_that_the_host_does_not_see(void **state)
{
    vka_context_params params = calls_params();

    (void)state;
    shim_hide_host_visible_device_memory(true);
    vka_context *context = calls_context(&params);
    run_layers(context);
    assert_true(shim_count("vkCmdCopyBuffer") > 0);
    calls_close(&context);
}

static void memory_that_is_not_coherent(void **state)
{
    vka_context_params params = calls_params();

    (void)state;
    shim_hide_coherence(true);
    vka_context *context = calls_context(&params);
    run_layers(context);
    assert_true(shim_count("vkFlushMappedMemoryRanges") > 0);
    assert_true(shim_count("vkInvalidateMappedMemoryRanges") > 0);
    calls_close(&context);
}

/* ---- allocations of 1 MiB ---- */

static vka_context *open_small(void)
{
    vka_context_params params = calls_params();

    params.pretend = "floor,max_alloc=1MiB";
    return calls_context(&params);
}

static void small_allocations(void **state)
{
    vka_context *context = open_small();

    (void)state;
    run_layers(context);
    calls_close(&context);
}

/* Weights that are cut in panels: 384 rows of 4416 bytes, and 1100 of 1024. */
static void weights_in_panels(void **state)
{
    const layer_case panels = {.name = "panels",
                               .desc = {.hidden_size = 1100, .heads = 32, .kv_heads = 8, .head_dim = 8},
                               .tp = 4,
                               .place = "0*4",
                               .qkv_bias = true};
    vka_context *context = open_small();
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &panels);
    assert_int_equal(rig.layer->devices[0].qkv.panels, 2);
    assert_int_equal(rig.layer->devices[0].output.panels, 2);
    static const script_tensors plain;
    run_script(&rig, &plain);
    rig_close(&rig);
    calls_close(&context);
}

/* Heads of the products that each head has for itself are not cut: 5 of 192 KiB and 16 of 64 KiB. */
static void heads_in_panels(void **state)
{
    static const script_tensors plain;
    const layer_case panels = {.name = "heads in panels",
                               .desc = {.hidden_size = 40,
                                        .heads = 32,
                                        .kv_heads = 32,
                                        .head_dim = 196,
                                        .v_head_dim = 64,
                                        .rotary_dim = 4,
                                        .rotary_offset = 192,
                                        .kv_lora_rank = 256},
                               .tp = 4,
                               .place = "0*4"};
    vka_context *context = open_small();
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &panels);
    assert_int_equal(rig.layer->devices[0].k_up.panels, 7);
    assert_int_equal(rig.layer->devices[0].k_up.panel_rows, 5 * 256);
    assert_in_range(rig.layer->devices[0].v_up.panels, 2, 3);
    run_script(&rig, &plain);
    rig_close(&rig);
    calls_close(&context);
}

/* A cache in slabs: 128 tokens each on the device with all heads. Sequences that grow in turns lie in several. */
static void a_cache_in_slabs(void **state)
{
    const layer_case slabs = {.name = "slabs",
                              .desc = {.hidden_size = 65, .heads = 32, .kv_heads = 16, .head_dim = 64},
                              .tp = 2,
                              .place = harness_devices()->count == 1 ? "0*2" : "0,1",
                              .pages = 40,
                              .page_size = 16};
    vka_context *context = open_small();
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &slabs);
    assert_true(rig.cache->pool.slabs >= 3);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    rig_extend(&rig, a, 260, NULL);
    rig_extend(&rig, b, 100, NULL);
    rig_extend(&rig, a, 120, NULL);
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{b, 30}, {a, 1}}, .count = 2});
    rig_forward(&rig, &(rig_call){.entries = (const vka_batch_entry[]){{a, 3}, {b, 1}}, .count = 2});
    assert_int_equal(vka_cache_sequence_free(rig.cache, a, NULL), VKA_OK);
    uint32_t c = rig_sequence(&rig);
    rig_extend(&rig, c, 300, NULL);
    rig_extend(&rig, c, 1, NULL);
    rig_close(&rig);
    calls_close(&context);
}

/* Keys of the attention step in several slabs too, and rows in several chunks. */
static void attention_in_slabs(void **state)
{
    static const attention_case cases[] = {
        {"slabs", {2, 16, 16, 8, 8, 20, 2500}, .causal = VKA_CAUSAL_BOTTOM_RIGHT},
        {"slabs, decoding", {1, 16, 16, 8, 8, 2, 2500}, .causal = VKA_CAUSAL_NONE},
        {"slabs, window",
         {1, 16, 16, 8, 8, 9, 2500},
         .causal = VKA_CAUSAL_TOP_LEFT,
         .window = 4,
         .host = VKA_F16,
         .cache = VKA_F16},
    };
    vka_context *context = open_small();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        attention_scene s;
        attention_open(&s, context, &cases[i]);
        attention_check(&s, 0);
        attention_close(&s);
    }
    calls_close(&context);
}

/* ---- what cannot be cut ---- */

typedef struct refused {
    layer_case setup;
    const char *text;
} refused;

static void tensors_that_cannot_be_cut(void **state)
{
    static const refused cases[] = {
        {{.desc = {.hidden_size = 300000, .heads = 1, .kv_heads = 1, .head_dim = 2}},
         "a group of eight rows of the QKV weights needs 9600000 bytes in one piece, device 0 allows 1048576"},
        {{.desc = {.hidden_size = 300000, .heads = 1, .kv_heads = 1, .head_dim = 2}, .weights = VKA_F16},
         "a group of eight rows of the QKV weights needs 4800000 bytes"},
        {{.desc = {.hidden_size = 1,
                   .heads = 4096,
                   .kv_heads = 1,
                   .head_dim = 1,
                   .v_head_dim = 72,
                   .rope_type = VKA_ROPE_NONE}},
         "a group of eight rows of the output projection weights needs 9437184 bytes"},
        {{.desc = {.hidden_size = 1, .heads = 4096, .kv_heads = 1, .head_dim = 64, .v_head_dim = 1}},
         "the biases and norm weights needs 1049632 bytes"},
        {{.desc = {.hidden_size = 10000, .heads = 32, .kv_heads = 1, .head_dim = 2},
          .tp = 32,
          .place = "0*32",
          .reproducible = true},
         "a row of the partial sums needs 1280000 bytes"},
        {{.desc = {.hidden_size = 8, .heads = 8, .kv_heads = 8, .head_dim = 8}, .page_size = 4096, .pages = 1},
         "a page of the KV cache needs 2097152 bytes"},
    };
    vka_context *context = open_small();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        layer_case setup = cases[i].setup;
        layer_rig rig;
        vka_error error = {0};
        setup.place = setup.place != NULL ? setup.place : "0";
        assert_int_equal(rig_try_open(&rig, context, &setup, &error), VKA_ERR_LIMIT);
        require(strstr(error.message, cases[i].text) != NULL, "'%s' is not in: %s", cases[i].text, error.message);
        assert_int_equal(error.device, 0);
    }
    calls_close(&context);
}

/* A page table over the limit is found before anything runs, and nothing has changed. */
static void a_page_table_that_cannot_be_cut(void **state)
{
    const layer_case long_table = {.name = "page table",
                                   .desc = {.hidden_size = 8, .heads = 1, .kv_heads = 1, .head_dim = 8},
                                   .place = "0",
                                   .page_size = 1,
                                   .pages = 300000};
    vka_context *context = open_small();
    layer_rig rig;
    vka_error error;

    (void)state;
    rig_open(&rig, context, &long_table);
    uint32_t a = rig_sequence(&rig);
    rig_extend(&rig, a, 9, NULL);
    const vka_batch_entry entry = {a, 290000};
    assert_int_equal(rig_try_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .unchecked = true}, &error),
                     VKA_ERR_LIMIT);
    assert_non_null(strstr(error.message, "the page table or the split attention of one row passes a buffer limit"));
    assert_int_equal(rig_length(&rig, a, 0), 9);
    assert_int_equal(vka_cache_free_pages(rig.cache), 300000 - 9);
    rig_extend(&rig, a, 9, NULL);
    rig_close(&rig);
    calls_close(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floor),
        cmocka_unit_test(memory_that_the_host_does_not_see),
        cmocka_unit_test(memory_that_is_not_coherent),
        cmocka_unit_test(small_allocations),
        cmocka_unit_test(weights_in_panels),
        cmocka_unit_test(heads_in_panels),
        cmocka_unit_test(a_cache_in_slabs),
        cmocka_unit_test(attention_in_slabs),
        cmocka_unit_test(tensors_that_cannot_be_cut),
        cmocka_unit_test(a_page_table_that_cannot_be_cut),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    harness_close();
    return failed;
}
