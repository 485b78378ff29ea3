/* Limits hold at pipelines and dispatches, the device's own and pretended ones. */
#include <string.h>

#include "vk/rig.h"

static void expect_no_pipeline(gpu_device *device, const gpu_pipeline_desc *desc, vka_status expected,
                               const char *words)
{
    gpu_pipeline *pipeline = NULL;
    vka_error error = {0};

    assert_int_equal(gpu_pipeline_get(device, desc, &pipeline, &error), expected);
    assert_null(pipeline);
    if (!strstr(error.message, words))
        fail_msg("'%s' does not say '%s'", error.message, words);
}

static void floor_pipelines(void **state)
{
    gpu_pipeline_desc desc;
    rig r;

    (void)state;
    rig_open(&r, "floor");
    check_ok(rig_exercise(r.device, 1000, err)); /* nothing optional is needed */
    desc = add_kernel;
    desc.local_size = 129;
    expect_no_pipeline(r.device, &desc, VKA_ERR_LIMIT, "129 invocations per workgroup");
    desc = add_kernel;
    desc.shared_bytes = 16385;
    expect_no_pipeline(r.device, &desc, VKA_ERR_LIMIT, "16385 bytes of shared memory");
    desc = add_kernel;
    desc.storage_bindings = 5;
    expect_no_pipeline(r.device, &desc, VKA_ERR_LIMIT, "5 storage buffers");
    desc = add_kernel;
    desc.push_bytes = 132;
    expect_no_pipeline(r.device, &desc, VKA_ERR_LIMIT, "132 bytes of push constants");
    expect_no_pipeline(r.device, &texel_kernel, VKA_ERR_UNSUPPORTED, "texel buffers");
    assert_int_equal(gpu_pipeline_count(r.device), 1);
    rig_close(&r);
}

static void no_feature_is_enabled_under_the_floor(void **state)
{
    rig r;

    (void)state;
    rig_open(&r, "floor");
    assert_int_equal(gpu_device_caps(r.device)->bits, 0);
    assert_int_equal(shim_event(shim_find("vkCreateDevice", -1, 0))->value[0], 0); /* extensions */
    rig_close(&r);
}

typedef struct bench {
    rig r;
    gpu_buffer *a, *b;
    gpu_pipeline *add, *texel;
    gpu_commands *commands;
} bench;

static void bench_open(bench *t, const char *pretend)
{
    memset(t, 0, sizeof(*t));
    rig_open(&t->r, pretend);
    check_ok(gpu_buffer_create(&t->a, t->r.device, 65536, GPU_MEMORY_DEVICE, "a", err));
    check_ok(gpu_buffer_create(&t->b, t->r.device, 65536, GPU_MEMORY_DEVICE, "b", err));
    check_ok(gpu_pipeline_get(t->r.device, &add_kernel, &t->add, err));
    check_ok(gpu_pipeline_get(t->r.device, &texel_kernel, &t->texel, err));
    check_ok(gpu_commands_begin(t->r.device, &t->commands, err));
}

static void bench_close(bench *t)
{
    gpu_commands_abandon(t->commands);
    gpu_buffer_destroy(&t->a);
    gpu_buffer_destroy(&t->b);
    rig_close(&t->r);
}

static void expect_no_dispatch(bench *t, const gpu_binding *bindings, uint32_t count, uint32_t groups_y,
                               vka_status expected, const char *words)
{
    const add_push push = {0};
    const gpu_pipeline *texel = count == 3 ? t->texel : NULL;
    vka_error error = {0};
    vka_status status = gpu_cmd_dispatch(t->commands, texel ? t->texel : t->add, bindings, count, &push,
                                         texel ? sizeof(uint32_t) : sizeof(push), 1, groups_y, 1, &error);

    if (status != expected || !strstr(error.message, words))
        fail_msg("expected '%s', got %d '%s'", words, status, error.message);
    assert_int_equal(shim_count("vkCmdDispatch"), 0);
}

static void dispatches(void **state)
{
    bench t;

    (void)state;
    bench_open(&t, NULL);
    {
        const gpu_binding good[] = {{.buffer = t.a}, {.buffer = t.b}};
        const gpu_binding beyond[] = {{.buffer = t.a, .offset = 65536}, {.buffer = t.b}};
        const gpu_binding longer[] = {{.buffer = t.a, .offset = 256, .bytes = 65536}, {.buffer = t.b}};
        const gpu_binding crooked[] = {{.buffer = t.a, .offset = 4}, {.buffer = t.b}};
        const gpu_binding view[] = {{.buffer = t.a, .texel = GPU_TEXEL_RGBA32F}, {.buffer = t.b}};

        expect_no_dispatch(&t, good, 1, 1, VKA_ERR_ARGUMENT, "takes 2 bindings");
        expect_no_dispatch(&t, good, 2, gpu_device_caps(t.r.device)->max_groups[1] + 1, VKA_ERR_LIMIT, "along y");
        expect_no_dispatch(&t, beyond, 2, 1, VKA_ERR_ARGUMENT, "65536");
        expect_no_dispatch(&t, longer, 2, 1, VKA_ERR_ARGUMENT, "65536");
        expect_no_dispatch(&t, crooked, 2, 1, VKA_ERR_ARGUMENT, "no multiple");
        expect_no_dispatch(&t, view, 2, 1, VKA_ERR_ARGUMENT, "texel format");
    }
    bench_close(&t);
}

static void texel_bindings(void **state)
{
    uint32_t alignment;
    bench t;

    (void)state;
    bench_open(&t, NULL);
    alignment = gpu_device_caps(t.r.device)->texel_alignment;
    for (int i = 0; i < 3; i++) {
        const gpu_binding bindings[] = {
            {.buffer = t.b},
            {.buffer = t.a,
             .offset = i == 0 ? alignment / 2 : 0,
             .bytes = i == 1 ? 20 : 32,
             .texel = i == 2 ? GPU_TEXEL_NONE : GPU_TEXEL_RGBA32F},
            {.buffer = t.a, .bytes = 32, .texel = GPU_TEXEL_RGBA32UI},
        };

        expect_no_dispatch(&t, bindings, 3, 1, VKA_ERR_ARGUMENT, i == 2 ? "texel format" : "multiple of");
    }
    bench_close(&t);
}

/* SwiftShader would accept a longer view than it says. */
static void long_texel_view(void **state)
{
    uint64_t bytes;
    gpu_buffer *large = NULL;
    bench t;

    (void)state;
    bench_open(&t, NULL);
    bytes = 16ull * gpu_device_caps(t.r.device)->texel_elements + 16;
    if (bytes <= vka_caps_max_tensor(gpu_device_caps(t.r.device))) {
        check_ok(gpu_buffer_create(&large, t.r.device, bytes, GPU_MEMORY_DEVICE, "large", err));
        {
            const gpu_binding bindings[] = {{.buffer = t.b},
                                            {.buffer = large, .texel = GPU_TEXEL_RGBA32F},
                                            {.buffer = t.a, .texel = GPU_TEXEL_RGBA32UI}};

            expect_no_dispatch(&t, bindings, 3, 1, VKA_ERR_LIMIT, "maxTexelBufferElements");
        }
        gpu_buffer_destroy(&large);
    } else {
        /* no buffer of this device is long enough to go over */
        assert_true(16ull * gpu_device_caps(t.r.device)->texel_elements >= gpu_device_caps(t.r.device)->max_range);
    }
    bench_close(&t);
}

static void pretended_range(void **state)
{
    gpu_buffer *upload = NULL;
    bench t;

    (void)state;
    bench_open(&t, "max_range=64KiB");
    check_ok(gpu_buffer_create(&upload, t.r.device, 131072, GPU_MEMORY_UPLOAD, "upload", err));
    {
        const gpu_binding whole[] = {{.buffer = upload}, {.buffer = t.b}};

        expect_no_dispatch(&t, whole, 2, 1, VKA_ERR_LIMIT, "131072 bytes of 'upload'");
    }
    {
        const gpu_binding half[] = {{.buffer = upload, .offset = 65536, .bytes = 65536}, {.buffer = t.b}};
        const add_push push = {0};

        check_ok(gpu_cmd_dispatch(t.commands, t.add, half, 2, &push, sizeof(push), 0, 1, 1, err));
    }
    gpu_commands_abandon(t.commands);
    t.commands = NULL;
    gpu_buffer_destroy(&upload);
    bench_close(&t);
}

const struct CMUnitTest limit_tests[] = {
    cmocka_unit_test(floor_pipelines), cmocka_unit_test(no_feature_is_enabled_under_the_floor),
    cmocka_unit_test(dispatches),      cmocka_unit_test(texel_bindings),
    cmocka_unit_test(long_texel_view), cmocka_unit_test(pretended_range),
};
const size_t limit_test_count = sizeof(limit_tests) / sizeof(limit_tests[0]);
