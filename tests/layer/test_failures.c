/* Whatever fails, and whenever: a clear status, nothing left behind, nothing changed, and the same results when it is
 * tried again in the same context. Failures are injected one call at a time, at every call that the whole life of a
 * layer makes: in a new context on one device, and in one that has seen it all before on two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/calls.h"
#include "vk/api.h"

enum { HIDDEN = 40, PREFILL = 9, BATCH = 2, KEYS = 30 };

/* The life of a layer: the steps, in order. */
typedef enum life_step {
    STEP_CONTEXT,
    STEP_LAYER,
    STEP_CACHE,
    STEP_SEQUENCE,
    STEP_PREFILL,
    STEP_DECODE,
    STEP_BUFFER,
    STEP_CHAIN,
    STEP_ATTENTION,
    STEP_COUNT
} life_step;

typedef struct results {
    float prefill[PREFILL * HIDDEN], decode[HIDDEN], chain[HIDDEN], attention[BATCH * 8 * 8];
} results;

typedef struct life {
    vka_context_params params;
    bool two_devices;
    life_step step; /* the next one */
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t sequence;
    vka_buffer *buffers[2];
    results results;
    vka_error error;
} life;

static const vka_layer_desc heads = {
    .struct_size = sizeof(heads), .hidden_size = HIDDEN, .heads = 8, .kv_heads = 2, .head_dim = 8};
static const vka_layer_desc latent = {.struct_size = sizeof(latent),
                                      .hidden_size = HIDDEN,
                                      .heads = 8,
                                      .kv_heads = 8,
                                      .head_dim = 8,
                                      .rotary_dim = 4,
                                      .rotary_offset = 4,
                                      .kv_lora_rank = 16,
                                      .q_lora_rank = 16};
static const vka_layer_desc *desc = &heads; /* of the group that runs */

static vka_generated_weights *generated;
static results expected[2]; /* on one device, on two */

/* One or two devices of the first kind; the shim is reset, and no memory is poisoned, which would take long. */
static void begin(life *l, bool two_devices)
{
    static char devices[32];
    uint32_t index = harness_devices()->index[0];

    memset(l, 0, sizeof(*l));
    l->params = calls_params();
    shim_poison_memory(false);
    snprintf(devices, sizeof(devices), "%u,%u", index, index);
    l->two_devices = two_devices;
    l->params.devices = two_devices ? devices : strchr(devices, ',') + 1;
}

/* Everything but the context goes; the life may begin again with it. */
static void forget(life *l)
{
    vka_buffer_destroy(&l->buffers[0]);
    vka_buffer_destroy(&l->buffers[1]);
    vka_cache_destroy(&l->cache);
    vka_layer_destroy(&l->layer);
    memset(&l->results, 0, sizeof(l->results));
    l->step = STEP_LAYER;
}

static void end(life *l)
{
    forget(l);
    calls_close(&l->context);
}

/* ---- the steps ---- */

static vka_status make_layer(life *l)
{
    const vka_layer_params params = {.struct_size = sizeof(params),
                                     .desc = desc,
                                     .weights = vka_weights_view(generated),
                                     .grid = {.tp = 4},
                                     .place = l->two_devices ? "0,1,1,0" : "0*4"};

    return vka_layer_create(&l->layer, l->context, &params, &l->error);
}

static vka_status make_cache(life *l)
{
    const vka_cache_params params = {
        .struct_size = sizeof(params), .page_size = 7, .pages = 4, .layers = 2, .dtype = VKA_F32};

    return vka_cache_create(&l->cache, l->layer, &params, &l->error);
}

static vka_status forward(life *l, uint32_t tokens, uint32_t first, uint32_t cache_layer, float *output)
{
    float input[PREFILL * HIDDEN];
    const vka_batch_entry entry = {l->sequence, tokens};
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = l->layer,
                                 .cache = l->cache,
                                 .cache_layer = cache_layer,
                                 .batch = {&entry, 1},
                                 .input = {input, VKA_F32, tokens, HIDDEN, 0},
                                 .output = {output, VKA_F32, tokens, HIDDEN, 0}};

    vka_random_fill(input, tokens * HIDDEN, 1, 5, 0, first * HIDDEN);
    if (cache_layer == 1)
        params.output_buffers = l->buffers;
    return vka_forward(&params, &l->error);
}

static vka_status make_buffers(life *l)
{
    vka_status status = VKA_OK;

    for (uint32_t d = 0; status == VKA_OK && d < vka_context_device_count(l->context); d++)
        if (l->buffers[d] == NULL)
            status = vka_buffer_create(&l->buffers[d], l->context, d, HIDDEN * sizeof(float), &l->error);
    return status;
}

/* A row to the host and to the devices, and back from there. */
static vka_status run_chain(life *l)
{
    float back[HIDDEN];
    uint32_t length = 0;
    vka_status status = vka_cache_sequence_length(l->cache, l->sequence, 1, &length, &l->error);

    if (status == VKA_OK && length == 0) /* not when only reading back had failed */
        status = forward(l, 1, 77, 1, l->results.chain);
    if (status == VKA_OK)
        status = vka_buffer_read(l->buffers[0], 0, back, sizeof(back), &l->error);
    if (status == VKA_OK)
        assert_memory_equal(back, l->results.chain, sizeof(back));
    return status;
}

static vka_status run_attention(life *l)
{
    float q[BATCH * 8 * 8], k[BATCH * KEYS * 2 * 8], v[BATCH * KEYS * 2 * 8];
    const vka_attention_params params = {.struct_size = sizeof(params),
                                         .device = l->two_devices,
                                         .batch = BATCH,
                                         .heads = 8,
                                         .kv_heads = 2,
                                         .head_dim = 8,
                                         .q_len = 1,
                                         .kv_len = KEYS,
                                         .q = {.host = q},
                                         .k = {.host = k},
                                         .v = {.host = v},
                                         .o = {.host = l->results.attention}};

    vka_random_fill(q, BATCH * 8 * 8, 1, 6, 0, 0);
    vka_random_fill(k, BATCH * KEYS * 2 * 8, 1, 6, 1, 0);
    vka_random_fill(v, BATCH * KEYS * 2 * 8, 1, 6, 2, 0);
    return vka_attention(l->context, &params, &l->error);
}

static vka_status take_step(life *l)
{
    switch (l->step) {
    case STEP_CONTEXT:
        return vka_context_create(&l->context, &l->params, &l->error);
    case STEP_LAYER:
        return make_layer(l);
    case STEP_CACHE:
        return make_cache(l);
    case STEP_SEQUENCE:
        return vka_cache_sequence_new(l->cache, &l->sequence, &l->error);
    case STEP_PREFILL:
        return forward(l, PREFILL, 0, 0, l->results.prefill);
    case STEP_DECODE:
        return forward(l, 1, PREFILL, 0, l->results.decode);
    case STEP_BUFFER:
        return make_buffers(l);
    case STEP_CHAIN:
        return run_chain(l);
    default:
        return run_attention(l);
    }
}

/* A step that failed has changed nothing: outputs are not set, the sequence is as long as before. */
static void check_step_undone(const life *l)
{
    static const uint32_t lengths[STEP_COUNT][2] = {
        [STEP_DECODE] = {PREFILL},
        [STEP_BUFFER] = {PREFILL + 1},
        [STEP_CHAIN] = {PREFILL + 1},
        [STEP_ATTENTION] = {PREFILL + 1, 1},
    };
    uint32_t length = 99;

    assert_true(l->step > STEP_CONTEXT || l->context == NULL);
    assert_true(l->step > STEP_LAYER || l->layer == NULL);
    assert_true(l->step > STEP_CACHE || l->cache == NULL);
    if (l->step <= STEP_SEQUENCE)
        return;
    assert_int_equal(vka_cache_sequence_length(l->cache, l->sequence, 0, &length, NULL), VKA_OK);
    assert_int_equal(length, lengths[l->step][0]);
    assert_int_equal(vka_cache_free_pages(l->cache), 4 - (length + 6) / 7);
}

/* Goes on from l->step until something fails or `until` is reached. */
static vka_status go_on_until(life *l, life_step until)
{
    memset(&l->error, 0, sizeof(l->error));
    while (l->step < until) {
        vka_status status = take_step(l);
        if (status != VKA_OK) {
            assert_int_equal(l->error.status, status);
            assert_true(l->error.message[0] != '\0');
            check_step_undone(l);
            return status;
        }
        l->step++;
    }
    if (until == STEP_COUNT)
        assert_memory_equal(&l->results, &expected[l->two_devices], sizeof(l->results));
    return VKA_OK;
}

static vka_status go_on(life *l)
{
    return go_on_until(l, STEP_COUNT);
}

/* After a failure: the same step again, and where anything has been computed, all that follow. */
static vka_status try_again(life *l)
{
    return go_on_until(l, l->step < STEP_PREFILL ? (life_step)(l->step + 1) : STEP_COUNT);
}

/* ---- failures of Vulkan's functions ---- */

static vka_status status_of(VkResult result)
{
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return VKA_ERR_HOST_MEMORY;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return VKA_ERR_DEVICE_MEMORY;
    case VK_ERROR_DEVICE_LOST:
        return VKA_ERR_DEVICE_LOST;
    default:
        return VKA_ERR_VULKAN;
    }
}

/* Which call fails, and how. */
typedef struct failure {
    const char *name;
    VkResult result;
    bool always; /* the call and all that follow */
} failure;

static void check_error(const life *l, const failure *f, uint32_t n, vka_status status)
{
    const char *message = l->error.message;

    require(status == status_of(f->result), "call %u of %s gives status %d: %s", n, f->name, status, message);
    assert_int_equal(l->error.vk_result, f->result);
    if (f->result == VK_ERROR_OUT_OF_DEVICE_MEMORY && strcmp(f->name, "vkAllocateMemory") == 0)
        require(strstr(message, "cannot allocate ") != NULL && strstr(message, " in use by this context, ") != NULL &&
                    strstr(message, " left") != NULL,
                "not enough is said: %s", message);
}

/* A life in which the n-th call from now fails; then it goes on. Returns whether the failure was given; *noticed:
 * whether it showed. */
static bool live_with(life *l, const failure *f, uint32_t n, bool *noticed)
{
    if (f->always)
        shim_fail_from(f->name, n, f->result);
    else
        shim_fail_at(f->name, n, f->result);
    vka_status status = go_on(l);
    bool given = shim_failed();
    *noticed = status != VKA_OK;
    require(given || status == VKA_OK, "%s: %s", f->name, l->error.message);
    shim_fail_at(f->name, 0, VK_SUCCESS);
    if (status != VKA_OK) {
        bool lost = f->result == VK_ERROR_DEVICE_LOST && l->context != NULL;
        check_error(l, f, n, status);
        status = try_again(l);
        require(status == (lost ? VKA_ERR_DEVICE_LOST : VKA_OK), "after call %u of %s: status %d: %s", n, f->name,
                status, l->error.message);
    }
    return given;
}

/* Every call of one function in turn, each in a new context. */
static void fail_every(const failure *f)
{
    bool given = true, noticed;
    uint32_t seen = 0;

    for (uint32_t n = 1; given; n++) {
        life l;
        begin(&l, false);
        given = live_with(&l, f, n, &noticed);
        seen += noticed;
        end(&l);
    }
    require(seen > 0, "no call of %s fails", f->name);
}

/* The same in one context, which has everything already that calls share. */
static void fail_every_warm(const failure *f)
{
    bool given = true, noticed;
    uint32_t seen = 0;
    life l;

    begin(&l, true);
    assert_int_equal(go_on(&l), VKA_OK);
    forget(&l);
    uint32_t live = shim_live();
    for (uint32_t n = 1; given; n++) {
        given = live_with(&l, f, n, &noticed);
        seen += noticed;
        forget(&l);
        require(shim_live() <= live, "%u objects stay behind call %u of %s", shim_live() - live, n, f->name);
    }
    require(seen > 0, "no call of %s fails", f->name);
    end(&l);
}

/* What is made once. */
static void making_a_context_fails(void **state)
{
    static const char *const names[] = {
        "vkCreateInstance",
        "vkEnumeratePhysicalDevices",
        "vkCreateDevice",
        "vkCreateSemaphore",
        "vkMapMemory",
        "vkCreateShaderModule",
        "vkCreateComputePipelines",
        "vkCreateCommandPool",
        "vkCreatePipelineLayout",
        "vkCreateDescriptorSetLayout",
        "vkAllocateCommandBuffers",
        "vkCreateDescriptorPool",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fail_every(&(failure){names[i], VK_ERROR_OUT_OF_HOST_MEMORY, false});
}

/* What is done again and again. */
static void running_fails(void **state)
{
    static const char *const names[] = {
        "vkCreateBuffer",     "vkBindBufferMemory",   "vkAllocateDescriptorSets",
        "vkResetCommandPool", "vkBeginCommandBuffer", "vkEndCommandBuffer",
        "vkQueueSubmit",      "vkWaitSemaphores",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fail_every_warm(&(failure){names[i], VK_ERROR_OUT_OF_HOST_MEMORY, false});
}

/* After a failed wait the device may still be at work: it is idle before anything that it uses is touched. */
static void a_failed_wait_is_made_up_for(void **state)
{
    life l;
    bool noticed;

    (void)state;
    begin(&l, true);
    assert_int_equal(go_on(&l), VKA_OK);
    forget(&l);
    uint32_t from = shim_event_count();
    assert_true(live_with(&l, &(failure){"vkWaitSemaphores", VK_ERROR_OUT_OF_HOST_MEMORY, false}, 1, &noticed));
    assert_true(noticed);
    uint32_t wait = shim_find("vkWaitSemaphores", -1, from);
    assert_string_equal(shim_event(wait + 1)->name, "vkDeviceWaitIdle");
    assert_int_equal(shim_event(wait + 1)->device, shim_event(wait)->device);
    end(&l);
}

static void devices_are_lost(void **state)
{
    (void)state;
    fail_every(&(failure){"vkQueueSubmit", VK_ERROR_DEVICE_LOST, false});
    fail_every(&(failure){"vkWaitSemaphores", VK_ERROR_DEVICE_LOST, false});
}

/* From some allocation on there is no device memory; smaller blocks are tried before that is an error. */
static void device_memory_runs_out(void **state)
{
    (void)state;
    fail_every(&(failure){"vkAllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY, true});
    fail_every_warm(&(failure){"vkCreateBuffer", VK_ERROR_OUT_OF_DEVICE_MEMORY, true});
}

/* ---- failures of the host's allocator ---- */

static void check_host(life *l, uint32_t n, vka_status status)
{
    require(status == VKA_OK || status == VKA_ERR_HOST_MEMORY, "request %u gives status %d: %s", n, status,
            l->error.message);
    if (status != VKA_OK)
        require(try_again(l) == VKA_OK, "after request %u: %s", n, l->error.message);
}

static void host_memory_runs_out(void **state)
{
    uint32_t n = 1;
    bool given = true;

    (void)state;
    for (; given; n++) {
        support_heap heap = {.fail_at = n};
        life l;
        begin(&l, false);
        l.params.realloc = support_heap_realloc;
        l.params.realloc_user = &heap;
        check_host(&l, n, go_on(&l));
        given = heap.requests >= n;
        end(&l);
        assert_int_equal(heap.live, 0);
    }
    assert_true(n > 50);
}

static void host_memory_runs_out_later(void **state)
{
    support_heap heap = {0};
    life l;
    bool given = true;

    (void)state;
    begin(&l, true);
    l.params.realloc = support_heap_realloc;
    l.params.realloc_user = &heap;
    assert_int_equal(go_on(&l), VKA_OK);
    forget(&l);
    uint32_t live = heap.live;
    for (uint32_t n = 1; given; n++) {
        heap.requests = 0;
        heap.fail_at = n;
        check_host(&l, n, go_on(&l));
        given = heap.requests >= n;
        forget(&l);
        assert_in_range(heap.live, 0, live);
    }
    end(&l);
    assert_int_equal(heap.live, 0);
}

/* ---- set-up ---- */

static int open_group(void **state)
{
    (void)state;
    if (vka_weights_generate(&generated, desc, NULL, NULL) != VKA_OK)
        return 1;
    for (int two = 0; two < 2; two++) {
        life l;
        begin(&l, two != 0);
        while (l.step < STEP_COUNT && take_step(&l) == VKA_OK)
            l.step++;
        if (l.step != STEP_COUNT)
            return 1;
        expected[two] = l.results;
        end(&l);
    }
    return 0;
}

static int open_latent(void **state)
{
    desc = &latent;
    return open_group(state);
}

static int close_group(void **state)
{
    (void)state;
    vka_weights_free(&generated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_a_context_fails),       cmocka_unit_test(running_fails),
        cmocka_unit_test(a_failed_wait_is_made_up_for), cmocka_unit_test(devices_are_lost),
        cmocka_unit_test(device_memory_runs_out),       cmocka_unit_test(host_memory_runs_out),
        cmocka_unit_test(host_memory_runs_out_later),
    };

    const struct CMUnitTest latent_tests[] = {
        cmocka_unit_test(device_memory_runs_out),
        cmocka_unit_test(host_memory_runs_out),
        cmocka_unit_test(host_memory_runs_out_later),
    };

    int failed = cmocka_run_group_tests(tests, open_group, close_group);
    return failed + cmocka_run_group_tests(latent_tests, open_latent, close_group);
}
