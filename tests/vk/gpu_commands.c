/* Recording, submitting, waiting; what is recorded and that nothing is allocated once warm. */
#include <string.h>

#include "vk/api.h"
#include "vk/rig.h"

typedef struct two_buffers {
    gpu_buffer *a, *b;
    gpu_pipeline *add;
} two_buffers;

static void make(two_buffers *t, gpu_device *device, uint64_t bytes)
{
    check_ok(gpu_buffer_create(&t->a, device, bytes, GPU_MEMORY_DEVICE, "a", err));
    check_ok(gpu_buffer_create(&t->b, device, bytes, GPU_MEMORY_DEVICE, "b", err));
    check_ok(gpu_pipeline_get(device, &add_kernel, &t->add, err));
}

static void drop(two_buffers *t)
{
    gpu_buffer_destroy(&t->a);
    gpu_buffer_destroy(&t->b);
}

static vka_status dispatch(gpu_commands *commands, const two_buffers *t, uint32_t groups, vka_error *error)
{
    const gpu_binding bindings[] = {{.buffer = t->a}, {.buffer = t->b}};
    const add_push push = {64 * groups, 0};

    return gpu_cmd_dispatch(commands, t->add, bindings, 2, &push, sizeof(push), groups, 1, 1, error);
}

static void finish(gpu_device *device, gpu_commands *commands)
{
    uint64_t ticket = 0;

    check_ok(gpu_submit(commands, &ticket, err));
    check_ok(gpu_wait(device, ticket, err));
}

static void specialisation(void **state)
{
    gpu_pipeline_desc desc = add_kernel;
    gpu_pipeline *three, *again, *nine;
    gpu_commands *commands = NULL;
    two_buffers t = {0};
    const float *b;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 256);
    check_ok(gpu_pipeline_get(r.device, &desc, &three, err));
    desc.spec[0] = 9;
    check_ok(gpu_pipeline_get(r.device, &desc, &nine, err));
    desc.name = "the name is no part of a kernel";
    check_ok(gpu_pipeline_get(r.device, &desc, &again, err));
    assert_ptr_equal(nine, again);
    assert_ptr_not_equal(three, nine);
    assert_int_equal(gpu_pipeline_count(r.device), 2);
    assert_int_equal(shim_count("vkCreateComputePipelines"), 2);
    assert_int_equal(shim_count("vkCreateShaderModule"), 1);
    b = gpu_buffer_map(t.b);
    ((float *)gpu_buffer_map(t.a))[5] = 10;
    ((float *)gpu_buffer_map(t.b))[5] = 0;
    check_ok(gpu_commands_begin(r.device, &commands, err));
    check_ok(dispatch(commands, &t, 1, err));
    t.add = nine;
    gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_COMPUTE);
    check_ok(dispatch(commands, &t, 1, err));
    gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_HOST);
    finish(r.device, commands);
    assert_float_equal(b[5], 10 * 3 + 10 * 9, 0);
    drop(&t);
    rig_close(&r);
}

static void texel_views(void **state)
{
    const uint32_t count = 64;
    gpu_buffer *in = NULL;
    gpu_buffer *out = NULL;
    gpu_commands *commands = NULL;
    gpu_pipeline *pipeline;
    uint32_t alignment;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    alignment = gpu_device_caps(r.device)->texel_alignment;
    check_ok(gpu_pipeline_get(r.device, &texel_kernel, &pipeline, err));
    check_ok(gpu_buffer_create(&in, r.device, 2 * alignment + count * 16, GPU_MEMORY_DEVICE, "in", err));
    check_ok(gpu_buffer_create(&out, r.device, count * 4, GPU_MEMORY_DEVICE, "out", err));
    for (uint32_t i = 0; i < gpu_buffer_bytes(in) / 4; i++)
        ((float *)gpu_buffer_map(in))[i] = (float)i;
    for (int round = 0; round < 3; round++) {
        const gpu_binding bindings[] = {
            {.buffer = out},
            {.buffer = in, .offset = alignment, .bytes = count * 16, .texel = GPU_TEXEL_RGBA32F},
            {.buffer = in, .offset = 0, .bytes = count * 16, .texel = GPU_TEXEL_RGBA32UI},
        };

        check_ok(gpu_commands_begin(r.device, &commands, err));
        check_ok(gpu_cmd_dispatch(commands, pipeline, bindings, 3, &count, sizeof(count), 1, 1, 1, err));
        gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_HOST);
        finish(r.device, commands);
    }
    for (uint32_t i = 0; i < count; i++) {
        float first = (float)(4 * i + alignment / 4);
        float expected = 4 * first + 6 + (float)rig_word((float)(4 * i + 3));

        assert_float_equal(((const float *)gpu_buffer_map(out))[i], expected, expected * 1e-6f);
    }
    assert_int_equal(shim_count("vkCreateBufferView"), 2); /* made once per view, not per dispatch */
    gpu_buffer_destroy(&in);
    gpu_buffer_destroy(&out);
    rig_close(&r);
}

/* Whatever the size: no buffer is a power of two long, and the second byte of a view's size is not 0 (buffer.c). */
static void texel_views_look_alike(void **state)
{
    static const uint32_t sizes[] = {16, 64, 80, 768, 1024, 65536, 65536 - 256, 65536 + 16, 1 << 20};
    const uint32_t count = 0;
    gpu_commands *commands = NULL;
    gpu_pipeline *pipeline;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    check_ok(gpu_pipeline_get(r.device, &texel_kernel, &pipeline, err));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gpu_buffer *buffer = NULL;
        uint32_t begin = shim_event_count();

        check_ok(gpu_buffer_create(&buffer, r.device, sizes[i], GPU_MEMORY_DEVICE, "buffer", err));
        assert_int_equal(gpu_buffer_bytes(buffer), sizes[i]);
        const gpu_binding bindings[] = {{.buffer = buffer},
                                        {.buffer = buffer, .texel = GPU_TEXEL_RGBA32F},
                                        {.buffer = buffer, .texel = GPU_TEXEL_RGBA32UI}};
        check_ok(gpu_commands_begin(r.device, &commands, err));
        check_ok(gpu_cmd_dispatch(commands, pipeline, bindings, 3, &count, sizeof(count), 0, 1, 1, err));
        finish(r.device, commands);
        uint64_t created = shim_event(shim_find("vkCreateBuffer", -1, begin))->value[0];
        uint64_t viewed = shim_event(shim_find("vkCreateBufferView", -1, begin))->value[0];
        assert_true(created >= sizes[i] && (created & (created - 1)) != 0);
        assert_true(viewed >= sizes[i] && viewed <= created && viewed % 16 == 0);
        if (viewed / 16 < gpu_device_caps(r.device)->texel_elements - 16)
            assert_true((viewed & 0xff00) != 0);
        gpu_buffer_destroy(&buffer);
    }
    rig_close(&r);
}

static void recorded_barriers(void **state)
{
    static const struct {
        uint32_t from, to;
        uint64_t source, destination, written, seen;
    } rows[] = {
        {GPU_STAGE_COMPUTE, GPU_STAGE_COMPUTE, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT},
        {GPU_STAGE_TRANSFER, GPU_STAGE_HOST, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
         VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT},
        {GPU_STAGE_COMPUTE | GPU_STAGE_HOST, GPU_STAGE_TRANSFER | GPU_STAGE_COMPUTE,
         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT,
         VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
         VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT,
         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_READ_BIT |
             VK_ACCESS_SHADER_WRITE_BIT},
    };
    gpu_commands *commands = NULL;
    uint32_t at = 0;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    check_ok(gpu_commands_begin(r.device, &commands, err));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const shim_record *event;

        gpu_cmd_barrier(commands, rows[i].from, rows[i].to);
        at = shim_find("vkCmdPipelineBarrier", 0, at);
        event = shim_event(at++);
        assert_int_equal(event->value[0], rows[i].source);
        assert_int_equal(event->value[1], rows[i].destination);
        assert_int_equal(event->value[2], rows[i].written);
        assert_int_equal(event->value[3], rows[i].seen);
    }
    gpu_commands_abandon(commands);
    gpu_commands_abandon(NULL);
    rig_close(&r);
}

/* Calls that make something. */
static uint32_t creations(void)
{
    static const char *const names[] = {
        "vkAllocateCommandBuffers", "vkAllocateMemory",  "vkCreateBuffer",         "vkCreateBufferView",
        "vkCreateCommandPool",      "vkCreateQueryPool", "vkCreateDescriptorPool", "vkCreateComputePipelines",
    };
    uint32_t sum = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        sum += shim_count(names[i]);
    return sum;
}

/* More dispatches than one descriptor pool holds, again and again. */
static void steady_state(void **state)
{
    gpu_commands *commands = NULL;
    two_buffers t = {0};
    uint32_t warm = 0;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 256);
    for (int round = 0; round < 5; round++) {
        memset(gpu_buffer_map(t.b), 0, 256);
        ((float *)gpu_buffer_map(t.a))[1] = 1;
        check_ok(gpu_commands_begin(r.device, &commands, err));
        for (int i = 0; i < 150; i++) {
            check_ok(dispatch(commands, &t, 1, err));
            gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_COMPUTE | GPU_STAGE_HOST);
        }
        finish(r.device, commands);
        assert_float_equal(((const float *)gpu_buffer_map(t.b))[1], 450, 0);
        if (round == 0)
            warm = creations();
        assert_int_equal(creations(), warm);
    }
    assert_int_equal(shim_count("vkCreateDescriptorPool"), 3);
    assert_int_equal(shim_count("vkAllocateDescriptorSets"), 5 * 150);
    drop(&t);
    rig_close(&r);
}

/* More submissions than recordings, none waited for until the end. */
static void many_in_flight(void **state)
{
    uint64_t ticket = 0;
    uint32_t warm = 0;
    two_buffers t = {0};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 256);
    memset(gpu_buffer_map(t.b), 0, 256);
    ((float *)gpu_buffer_map(t.a))[0] = 1;
    for (uint32_t i = 1; i <= 30; i++) {
        gpu_commands *commands = NULL;

        check_ok(gpu_commands_begin(r.device, &commands, err));
        gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_COMPUTE);
        check_ok(dispatch(commands, &t, 1, err));
        gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_HOST);
        check_ok(gpu_submit(commands, &ticket, err));
        assert_int_equal(ticket, i);
        warm = creations();
    }
    check_ok(gpu_wait(r.device, 1, err));
    check_ok(gpu_wait(r.device, ticket, err));
    assert_float_equal(((const float *)gpu_buffer_map(t.b))[0], 90, 0);
    assert_true(shim_count("vkAllocateCommandBuffers") <= 4);
    assert_int_equal(creations(), warm);
    drop(&t);
    rig_close(&r);
}

static void timestamps(void **state)
{
    gpu_commands *commands = NULL;
    two_buffers t = {0};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 4096);
    assert_true(gpu_elapsed_ms(r.device, 0, 1) == -1); /* nothing submitted yet */
    check_ok(gpu_commands_begin(r.device, &commands, err));
    gpu_cmd_timestamp(commands, 3);
    check_ok(dispatch(commands, &t, 16, err));
    gpu_cmd_timestamp(commands, 63);
    finish(r.device, commands);
    assert_true(gpu_elapsed_ms(r.device, 3, 63) >= 0);
    assert_true(gpu_elapsed_ms(r.device, 3, 63) < 60e3);
    assert_true(gpu_elapsed_ms(r.device, 3, 3) == 0);
    assert_true(gpu_elapsed_ms(r.device, 3, 4) == -1); /* not written */
    assert_true(gpu_elapsed_ms(r.device, 3, 64) == -1);
    check_ok(gpu_commands_begin(r.device, &commands, err));
    assert_true(gpu_elapsed_ms(r.device, 3, 63) >= 0); /* still those of the last finished one */
    finish(r.device, commands);
    assert_true(gpu_elapsed_ms(r.device, 3, 63) == -1);
    drop(&t);
    rig_close(&r);
}

static void no_timestamps(void **state)
{
    rig r;

    (void)state;
    rig_open(&r, "no=timestamps");
    check_ok(rig_exercise(r.device, 64, err));
    assert_true(gpu_elapsed_ms(r.device, 0, 1) == -1);
    assert_int_equal(shim_count("vkCreateQueryPool"), 0);
    assert_int_equal(shim_count("vkCmdWriteTimestamp"), 0);
    rig_close(&r);
}

static void empty_dispatch(void **state)
{
    gpu_commands *commands = NULL;
    two_buffers t = {0};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 256);
    memset(gpu_buffer_map(t.b), 0, 256);
    check_ok(gpu_commands_begin(r.device, &commands, err));
    check_ok(dispatch(commands, &t, 0, err));
    gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_HOST);
    finish(r.device, commands);
    assert_float_equal(((const float *)gpu_buffer_map(t.b))[0], 0, 0);
    drop(&t);
    rig_close(&r);
}

/* A dropped recording leaves no trace, and its place is used again. */
static void abandoned(void **state)
{
    gpu_commands *commands = NULL;
    two_buffers t = {0};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    make(&t, r.device, 256);
    for (int i = 0; i < 10; i++) {
        check_ok(gpu_commands_begin(r.device, &commands, err));
        check_ok(dispatch(commands, &t, 1, err));
        gpu_commands_abandon(commands);
    }
    check_ok(rig_exercise(r.device, 64, err));
    assert_int_equal(shim_count("vkAllocateCommandBuffers"), 1);
    assert_int_equal(shim_count("vkQueueSubmit"), 1);
    drop(&t);
    rig_close(&r);
}

static void future_ticket(void **state)
{
    vka_error error = {0};
    rig r;

    (void)state;
    rig_open(&r, NULL);
    assert_int_equal(gpu_wait(r.device, 1, &error), VKA_ERR_ARGUMENT); /* would wait for ever */
    check_ok(gpu_wait(r.device, 0, err));
    rig_close(&r);
}

const struct CMUnitTest command_tests[] = {
    cmocka_unit_test(specialisation),    cmocka_unit_test(texel_views),   cmocka_unit_test(texel_views_look_alike),
    cmocka_unit_test(recorded_barriers), cmocka_unit_test(steady_state),  cmocka_unit_test(many_in_flight),
    cmocka_unit_test(timestamps),        cmocka_unit_test(no_timestamps), cmocka_unit_test(empty_dispatch),
    cmocka_unit_test(abandoned),         cmocka_unit_test(future_ticket),
};
const size_t command_test_count = sizeof(command_tests) / sizeof(command_tests[0]);
