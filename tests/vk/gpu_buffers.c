/* Buffers and the blocks they live in. */
#include <stdlib.h>
#include <string.h>

#include "vk/rig.h"

enum { MANY = 40 };

static void write_words(gpu_buffer *buffer, uint32_t seed)
{
    uint32_t *words = gpu_buffer_map(buffer);

    for (uint64_t i = 0; i < gpu_buffer_bytes(buffer) / 4; i++)
        words[i] = seed * 2654435761u + (uint32_t)i;
}

static void check_words(const gpu_buffer *buffer, uint32_t seed)
{
    const uint32_t *words = gpu_buffer_map(buffer);

    for (uint64_t i = 0; i < gpu_buffer_bytes(buffer) / 4; i++)
        assert_int_equal(words[i], seed * 2654435761u + (uint32_t)i);
}

static void kinds(void **state)
{
    static const gpu_memory all[] = {GPU_MEMORY_DEVICE, GPU_MEMORY_UPLOAD, GPU_MEMORY_DOWNLOAD};
    vka_memory_use use;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        gpu_buffer *buffer = NULL;

        check_ok(gpu_buffer_create(&buffer, r.device, 1000, all[i], "buffer", err));
        assert_int_equal(gpu_buffer_bytes(buffer), 1000);
        assert_true(gpu_buffer_host_cached(buffer)); /* all memory of the software devices is */
        write_words(buffer, 7);
        check_ok(gpu_buffer_flush(buffer, 0, 1000, err));
        check_ok(gpu_buffer_invalidate(buffer, 0, 1000, err));
        check_words(buffer, 7);
        gpu_device_memory(r.device, &use);
        assert_true((all[i] == GPU_MEMORY_DEVICE ? use.device_bytes : use.host_bytes) >= 1000);
        assert_true((all[i] == GPU_MEMORY_DEVICE ? use.host_bytes : use.device_bytes) == 0);
        gpu_buffer_destroy(&buffer);
        assert_null(buffer);
        gpu_buffer_destroy(&buffer);
    }
    gpu_device_memory(r.device, &use);
    assert_true(use.device_bytes == 0 && use.host_bytes == 0);
    assert_int_equal(shim_count("vkFlushMappedMemoryRanges"), 0); /* coherent */
    rig_close(&r);
}

/* Random creation and destruction; no buffer may ever see another's bytes. */
static void buffers_share_blocks(void **state)
{
    gpu_buffer *buffers[MANY] = {0};
    uint32_t seed[MANY] = {0};
    uint32_t random = 12345;
    vka_memory_use use;
    rig r;

    (void)state;
    rig_open(&r, "max_alloc=1MiB");
    for (uint32_t step = 1; step < 600; step++) {
        uint32_t i = (random = random * 1664525u + 1013904223u) >> 16;
        uint64_t bytes = (uint64_t)(i % 61 + 1) * (i % 7 == 0 ? 4096 : 52);

        i %= MANY;
        if (buffers[i]) {
            check_words(buffers[i], seed[i]);
            gpu_buffer_destroy(&buffers[i]);
        } else {
            check_ok(gpu_buffer_create(&buffers[i], r.device, bytes, GPU_MEMORY_DEVICE, "piece", err));
            write_words(buffers[i], seed[i] = step);
        }
    }
    gpu_device_memory(r.device, &use);
    assert_true(use.allocations < 40); /* hundreds of buffers, few blocks */
    assert_int_equal(use.allocations, shim_count("vkAllocateMemory"));
    for (uint32_t i = 0; i < MANY; i++) {
        if (buffers[i])
            check_words(buffers[i], seed[i]);
        gpu_buffer_destroy(&buffers[i]);
    }
    assert_int_equal(shim_count("vkFreeMemory"), shim_count("vkAllocateMemory"));
    rig_close(&r);
}

/* Freed neighbours become one range again: after all, a buffer of a whole block fits without a new block. */
static void freed_ranges_join(void **state)
{
    gpu_buffer *parts[4] = {0};
    gpu_buffer *keeper = NULL;
    gpu_buffer *whole = NULL;
    rig r;

    (void)state;
    rig_open(&r, "max_alloc=1MiB");
    for (int i = 0; i < 4; i++)
        check_ok(gpu_buffer_create(&parts[i], r.device, 196608, GPU_MEMORY_DEVICE, "part", err));
    check_ok(gpu_buffer_create(&keeper, r.device, 196608, GPU_MEMORY_DEVICE, "keeper", err));
    assert_int_equal(shim_count("vkAllocateMemory"), 1);
    gpu_buffer_destroy(&parts[2]);
    gpu_buffer_destroy(&parts[0]);
    gpu_buffer_destroy(&parts[3]);
    gpu_buffer_destroy(&parts[1]);
    check_ok(gpu_buffer_create(&whole, r.device, 4 * 196608, GPU_MEMORY_DEVICE, "whole", err));
    assert_int_equal(shim_count("vkAllocateMemory"), 1);
    gpu_buffer_destroy(&whole);
    gpu_buffer_destroy(&keeper);
    assert_int_equal(shim_count("vkFreeMemory"), 1);
    rig_close(&r);
}

/* A block of the usual size is refused by the driver, one that just fits is not. */
static void smaller_block_after_refusal(void **state)
{
    gpu_buffer *buffer = NULL;
    const shim_record *usual, *exact;
    rig r;

    (void)state;
    rig_open(&r, NULL);
    shim_fail_at("vkAllocateMemory", 1, -2); /* VK_ERROR_OUT_OF_DEVICE_MEMORY */
    check_ok(gpu_buffer_create(&buffer, r.device, 1 << 20, GPU_MEMORY_DEVICE, "weights", err));
    assert_true(shim_failed());
    assert_int_equal(shim_count("vkAllocateMemory"), 2);
    usual = shim_event(shim_find("vkAllocateMemory", 0, 0));
    exact = shim_event(shim_find("vkAllocateMemory", 0, shim_find("vkAllocateMemory", 0, 0) + 1));
    assert_true(usual->value[0] > 2 << 20);
    assert_in_range(exact->value[0], 1 << 20, (1 << 20) + 4096);
    gpu_buffer_destroy(&buffer);
    rig_close(&r);
}

static void out_of_memory(void **state)
{
    gpu_buffer *buffer = NULL;
    vka_error error = {0};
    rig r;

    (void)state;
    rig_open_with(&r, &(gpu_device_params){.position = 5}, false);
    shim_fail_at("vkAllocateMemory", 1, -2);
    assert_int_equal(gpu_buffer_create(&buffer, r.device, 100 << 20, GPU_MEMORY_DEVICE, "qkv weights panel", &error),
                     VKA_ERR_DEVICE_MEMORY);
    assert_null(buffer);
    assert_int_equal(error.device, 5);
    assert_int_equal(error.vk_result, -2);
    assert_non_null(strstr(error.message, "qkv weights panel"));
    assert_non_null(strstr(error.message, " 1048578"));
    assert_non_null(strstr(error.message, " left"));
    check_ok(rig_exercise(r.device, 64, err)); /* the device is still good */
    rig_close(&r);
}

static void limits(void **state)
{
    static const struct {
        const char *pretend, *limit;
        uint64_t bytes;
        gpu_memory memory;
        bool fits;
    } rows[] = {
        {"max_alloc=1MiB", "maxMemoryAllocationSize", (1 << 20) + 1, GPU_MEMORY_UPLOAD, false},
        {"max_alloc=1MiB", "", 1 << 20, GPU_MEMORY_UPLOAD, true},
        {"max_buffer=1MiB", "maxBufferSize", (1 << 20) + 1, GPU_MEMORY_DOWNLOAD, false},
        {"max_buffer=1MiB", "", 1 << 20, GPU_MEMORY_DEVICE, true},
        {"max_range=1MiB", "maxStorageBufferRange", (1 << 20) + 1, GPU_MEMORY_DEVICE, false},
        {"max_range=1MiB", "", 2 << 20, GPU_MEMORY_UPLOAD, true}, /* not bound to shaders */
        {NULL, "max", 1ull << 40, GPU_MEMORY_DEVICE, false},      /* some drivers would let that pass */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        gpu_buffer *buffer = NULL;
        vka_error error = {0};
        vka_status status;
        rig r;

        shim_reset();
        rig_open(&r, rows[i].pretend);
        status = gpu_buffer_create(&buffer, r.device, rows[i].bytes, rows[i].memory, "big", &error);
        assert_int_equal(status, rows[i].fits ? VKA_OK : VKA_ERR_LIMIT);
        if (!rows[i].fits) {
            assert_non_null(strstr(error.message, rows[i].limit));
            assert_int_equal(shim_count("vkCreateBuffer"), 0);
            assert_int_equal(shim_count("vkAllocateMemory"), 0);
        }
        gpu_buffer_destroy(&buffer);
        assert_int_equal(gpu_buffer_create(&buffer, r.device, 0, GPU_MEMORY_DEVICE, "none", &error), VKA_ERR_ARGUMENT);
        rig_close(&r);
    }
}

/* As on a discrete GPU: device memory cannot be mapped, and results are staged. */
static void device_memory_out_of_reach(void **state)
{
    gpu_buffer *buffer = NULL;
    rig r;

    (void)state;
    shim_hide_host_visible_device_memory(true);
    rig_open(&r, NULL);
    assert_false(gpu_device_caps(r.device)->bits & VKA_CAP_BIT(VKA_CAP_HOST_CACHED));
    check_ok(gpu_buffer_create(&buffer, r.device, 4096, GPU_MEMORY_DEVICE, "device", err));
    assert_null(gpu_buffer_map(buffer));
    assert_false(gpu_buffer_host_cached(buffer));
    gpu_buffer_destroy(&buffer);
    check_ok(gpu_buffer_create(&buffer, r.device, 4096, GPU_MEMORY_DOWNLOAD, "download", err));
    assert_non_null(gpu_buffer_map(buffer));
    assert_true(gpu_buffer_host_cached(buffer));
    gpu_buffer_destroy(&buffer);
    check_ok(rig_exercise(r.device, 1000, err));
    rig_close(&r);
}

/* The same through `pretend`, without the shim's help. */
static void pretended_out_of_reach(void **state)
{
    gpu_buffer *buffer = NULL;
    rig r;

    (void)state;
    rig_open(&r, "no=hostcached");
    check_ok(gpu_buffer_create(&buffer, r.device, 4096, GPU_MEMORY_DEVICE, "device", err));
    assert_null(gpu_buffer_map(buffer));
    assert_false(gpu_buffer_host_cached(buffer));
    gpu_buffer_destroy(&buffer);
    check_ok(rig_exercise(r.device, 1000, err));
    rig_close(&r);
}

static void check_range(const char *name, uint64_t atom, uint64_t offset, uint64_t bytes)
{
    const shim_record *event = shim_event(shim_find(name, 0, 0));

    assert_int_equal(event->value[0] % atom, offset / atom * atom);
    assert_int_equal(event->value[1], (offset + bytes + atom - 1) / atom * atom - offset / atom * atom);
}

/* Ranges are widened to whole atoms, and buffers never share one. */
static void memory_that_is_not_coherent(void **state)
{
    const uint64_t atom = 256; /* of SwiftShader; a multiple of lavapipe's 64 */
    gpu_buffer *first = NULL;
    gpu_buffer *second = NULL;
    rig r;

    (void)state;
    shim_hide_coherence(true);
    rig_open(&r, NULL);
    check_ok(gpu_buffer_create(&first, r.device, 1000, GPU_MEMORY_UPLOAD, "first", err));
    check_ok(gpu_buffer_create(&second, r.device, 1000, GPU_MEMORY_DOWNLOAD, "second", err));
    check_ok(gpu_buffer_flush(first, 0, 0, err));
    assert_int_equal(shim_count("vkFlushMappedMemoryRanges"), 0);
    check_ok(gpu_buffer_flush(first, 0, 1000, err));
    check_range("vkFlushMappedMemoryRanges", atom, 0, 1000);
    check_ok(gpu_buffer_invalidate(second, 0, 1, err));
    assert_int_equal(shim_count("vkInvalidateMappedMemoryRanges"), 1);
    assert_true(shim_event(shim_find("vkInvalidateMappedMemoryRanges", 0, 0))->value[0] >= 1000);
    check_ok(gpu_buffer_flush(second, 999, 1, err)); /* the last byte: the range stays inside the segment */
    gpu_buffer_destroy(&first);
    gpu_buffer_destroy(&second);
    check_ok(rig_exercise(r.device, 1000, err));
    rig_close(&r);
}

const struct CMUnitTest buffer_tests[] = {
    cmocka_unit_test(kinds),
    cmocka_unit_test(buffers_share_blocks),
    cmocka_unit_test(freed_ranges_join),
    cmocka_unit_test(smaller_block_after_refusal),
    cmocka_unit_test(out_of_memory),
    cmocka_unit_test(limits),
    cmocka_unit_test(device_memory_out_of_reach),
    cmocka_unit_test(pretended_out_of_reach),
    cmocka_unit_test(memory_that_is_not_coherent),
};
const size_t buffer_test_count = sizeof(buffer_tests) / sizeof(buffer_tests[0]);
