/* Hidden states that stay on the devices: the same bits as through host memory; and what callers may get wrong. */
#include "layer/layer_tests.h"

#include <stdlib.h>
#include <string.h>

#include "layer/harness.h"

enum { HIDDEN = 65, TOKENS = 14 };

static const layer_case setup = {
    .name = "device tensors",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 4, .head_dim = 8},
    .tp = 2,
    .place = "0,1",
    .cache_layers = 2,
    .o_bias = true,
};

static vka_buffer *make_buffer(vka_context *context, uint32_t device, uint64_t bytes)
{
    vka_buffer *buffer = NULL;
    vka_error error;

    require(vka_buffer_create(&buffer, context, device, bytes, &error) == VKA_OK, "%s", error.message);
    return buffer;
}

static void make_buffers(vka_context *context, vka_buffer *buffers[HARNESS_DEVICES])
{
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++)
        buffers[d] = make_buffer(context, d, TOKENS * HIDDEN * sizeof(float));
}

static void destroy_buffers(vka_buffer *buffers[HARNESS_DEVICES])
{
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) {
        vka_buffer_destroy(&buffers[d]);
        assert_null(buffers[d]);
    }
}

/* Two layers one after the other, as in a model: the second one's input is the first one's output. */
static void host_chain(layer_rig *rig, const vka_batch_entry *entry, float *result)
{
    float between[TOKENS * HIDDEN];
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = rig->layer,
                                 .cache = rig->cache,
                                 .cache_layer = 1,
                                 .batch = {entry, 1},
                                 .input = {between, VKA_F32, entry->new_tokens, HIDDEN, 0},
                                 .output = {result, VKA_F32, entry->new_tokens, HIDDEN, 0}};

    rig_forward(rig, &(rig_call){.entries = entry, .count = 1, .result = between});
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
}

/* The same without the host in between; `in` and `out` may be the same buffers. */
static void device_chain(layer_rig *rig, const vka_batch_entry *entry, vka_buffer *const *in, vka_buffer *const *out,
                         float *result)
{
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = rig->layer,
                                 .cache = rig->cache,
                                 .cache_layer = 1,
                                 .batch = {entry, 1},
                                 .input_buffers = in,
                                 .output_buffers = out};

    rig_forward(rig, &(rig_call){.entries = entry, .count = 1, .output_buffers = in});
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) { /* every device has it, the idle one too */
        float held[TOKENS * HIDDEN];
        size_t bytes = entry->new_tokens * HIDDEN * sizeof(float);
        assert_int_equal(vka_buffer_read(out[d], 0, held, bytes, NULL), VKA_OK);
        if (d == 0)
            memcpy(result, held, bytes);
        assert_memory_equal(result, held, bytes);
    }
}

static void a_chain_on_the_devices(void **state)
{
    vka_buffer *first[HARNESS_DEVICES], *second[HARNESS_DEVICES];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    make_buffers(rig.context, first);
    make_buffers(rig.context, second);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig), c = rig_sequence(&rig);
    rig.stream[b] = rig.stream[c] = rig.stream[a];
    for (uint32_t tokens = TOKENS; tokens > 0; tokens /= 14) { /* prefill, then decoding */
        float by_host[TOKENS * HIDDEN], by_device[TOKENS * HIDDEN], in_place[TOKENS * HIDDEN];
        host_chain(&rig, &(vka_batch_entry){a, tokens}, by_host);
        device_chain(&rig, &(vka_batch_entry){b, tokens}, first, second, by_device);
        device_chain(&rig, &(vka_batch_entry){c, tokens}, first, first, in_place);
        assert_memory_equal(by_host, by_device, tokens * HIDDEN * sizeof(float));
        assert_memory_equal(by_host, in_place, tokens * HIDDEN * sizeof(float));
    }
    destroy_buffers(first);
    destroy_buffers(second);
    rig_close(&rig);
}

/* Every stage of a call whose input is on the devices. */
static void input_on_the_devices_is_checked(void **state)
{
    vka_buffer *buffers[HARNESS_DEVICES];
    float hidden[TOKENS * HIDDEN];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    make_buffers(rig.context, buffers);
    for (uint32_t t = 0; t < TOKENS; t++)
        rig_hidden(&rig, 1, t, hidden + t * HIDDEN);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++)
        assert_int_equal(vka_buffer_write(buffers[d], 0, hidden, sizeof(hidden), NULL), VKA_OK);
    const vka_batch_entry entry = {rig_sequence(&rig), TOKENS};
    rig_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .input_buffers = buffers});
    destroy_buffers(buffers);
    rig_close(&rig);
}

static void refuse(layer_rig *rig, const vka_forward_params *params, const char *text)
{
    vka_error error = {0};

    assert_int_equal(vka_forward(params, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, text) != NULL, "'%s' is not in: %s", text, error.message);
    assert_int_equal(rig_length(rig, params->batch.entries->sequence, 0), 0);
}

static void buffers_that_do_not_fit(void **state)
{
    vka_buffer *buffers[HARNESS_DEVICES];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    make_buffers(rig.context, buffers);
    vka_buffer *const swapped[HARNESS_DEVICES] = {buffers[1], buffers[0], buffers[2]};
    vka_buffer *const missing[HARNESS_DEVICES] = {buffers[0], buffers[1], NULL};
    const vka_batch_entry fits = {rig_sequence(&rig), TOKENS}, too_many = {fits.sequence, TOKENS + 1};
    vka_forward_params params = {.struct_size = sizeof(params),
                                 .layer = rig.layer,
                                 .cache = rig.cache,
                                 .batch = {&fits, 1},
                                 .input_buffers = swapped,
                                 .output_buffers = buffers};
    refuse(&rig, &params, "input_buffers[0] is not a buffer of device 0 of this context");
    params.input_buffers = missing;
    refuse(&rig, &params, "input_buffers[2] is not a buffer of device 2");
    params.input_buffers = buffers;
    params.output_buffers = swapped;
    refuse(&rig, &params, "output_buffers[0] is not a buffer of device 0");
    params.output_buffers = buffers;
    params.batch.entries = &too_many;
    refuse(&rig, &params, "input_buffers[0] holds 3640 bytes, 15 rows of 65 need 3900");
    params.batch.entries = &fits;
    const float host[1] = {0};
    params.input.data = host;
    refuse(&rig, &params, "exactly one of input and input_buffers");
    destroy_buffers(buffers);
    rig_close(&rig);
}

static void reading_and_writing(void **state)
{
    vka_context *context = harness_context();
    const uint32_t words[4] = {1, 2, 3, 4};
    uint32_t back[4] = {0};
    vka_buffer *buffer = make_buffer(context, 1, 32), *none = NULL;
    static const struct {
        uint64_t offset, bytes;
    } bad[] = {{1, 4}, {4, 3}, {32, 4}, {36, 0}, {UINT64_MAX - 3, 4}, {4, UINT64_MAX - 3}, {28, 8}};

    (void)state;
    assert_int_equal(vka_buffer_write(buffer, 16, words, 16, NULL), VKA_OK);
    assert_int_equal(vka_buffer_read(buffer, 20, back, 12, NULL), VKA_OK);
    assert_memory_equal(back, words + 1, 12);
    assert_int_equal(vka_buffer_read(buffer, 32, back, 0, NULL), VKA_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(vka_buffer_write(buffer, bad[i].offset, words, bad[i].bytes, NULL), VKA_ERR_ARGUMENT);
        assert_int_equal(vka_buffer_read(buffer, bad[i].offset, back, bad[i].bytes, NULL), VKA_ERR_ARGUMENT);
    }
    assert_int_equal(vka_buffer_write(NULL, 0, words, 4, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_buffer_read(buffer, 0, NULL, 4, NULL), VKA_ERR_ARGUMENT);
    vka_buffer_destroy(&buffer);
    vka_buffer_destroy(&buffer);
    vka_buffer_destroy(NULL);
    assert_int_equal(vka_buffer_create(&none, context, HARNESS_DEVICES, 4, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_buffer_create(&none, context, 0, 0, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_buffer_create(&none, context, 0, 1ull << 50, NULL), VKA_ERR_LIMIT);
    assert_int_equal(vka_buffer_create(&none, context, 0, UINT64_MAX, NULL), VKA_ERR_LIMIT);
    assert_int_equal(vka_buffer_create(NULL, context, 0, 4, NULL), VKA_ERR_ARGUMENT);
    assert_null(none);
}

int run_buffers_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_on_the_devices),
        cmocka_unit_test(input_on_the_devices_is_checked),
        cmocka_unit_test(buffers_that_do_not_fit),
        cmocka_unit_test(reading_and_writing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
