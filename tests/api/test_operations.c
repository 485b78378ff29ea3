/* The single operations (attention, projection, exchange, peaks) as Vulkan sees them: results in a caller's buffer are
 * made visible to the host, repeating changes nothing, memory that is not coherent is flushed, and when a Vulkan call
 * fails the operation fails, sets no output and leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/devices.h"
#include "support/require.h"
#include "support/shim.h"
#include "vkattn/vkattn.h"

enum { HEADS = 4, KV_HEADS = 2, DIM = 8, KEYS = 9, ROWS = 5, DEPTH = 24, COLS = 10 };
enum { HOST_STAGE = 0x4000, HOST_READ = 0x2000 }; /* VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT */

/* A context and one operand of each kind. */
typedef struct scene {
    vka_context *context;
    vka_matrix *matrix;
    vka_buffer *first, *second;
    float q[ROWS * HEADS * DIM], k[KEYS * KV_HEADS * DIM], v[KEYS * KV_HEADS * DIM];
    float x[ROWS * DEPTH], w[COLS * DEPTH];
} scene;

static scene on;

static vka_status open_scene(vka_error *error)
{
    support_devices devices;
    const vka_tensor weights = {on.w, VKA_F32, COLS, DEPTH, 0};

    support_find_devices(&devices);
    const vka_context_params params = {.struct_size = sizeof(params),
                                       .devices = devices.grammar,
                                       .pretend = "max_range=1MiB", /* small peaks */
                                       .no_pipeline_cache = 1,
                                       .get_instance_proc = shim_get_proc};
    vka_status status = vka_context_create(&on.context, &params, error);
    if (status == VKA_OK)
        status = vka_matrix_create(&on.matrix, on.context, 0, &weights, VKA_F16, error);
    if (status == VKA_OK)
        status = vka_buffer_create(&on.first, on.context, 0, 4096, error);
    if (status == VKA_OK)
        status = vka_buffer_create(&on.second, on.context, 0, 4096, error);
    return status;
}

static void close_scene(void)
{
    vka_buffer_destroy(&on.first);
    vka_buffer_destroy(&on.second);
    vka_matrix_destroy(&on.matrix);
    vka_context_destroy(&on.context);
}

static int set_up(void **state)
{
    vka_error error;

    (void)state;
    shim_reset();
    vka_random_fill(on.q, sizeof(on.q) / 4, 1, 1, 0, 0);
    vka_random_fill(on.k, sizeof(on.k) / 4, 1, 1, 1, 0);
    vka_random_fill(on.v, sizeof(on.v) / 4, 1, 1, 2, 0);
    vka_random_fill(on.x, sizeof(on.x) / 4, 1, 1, 3, 0);
    vka_random_fill(on.w, sizeof(on.w) / 4, 1, 1, 4, 0);
    require(open_scene(&error) == VKA_OK, "%s", error.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_scene();
    assert_int_equal(shim_live(), 0);
    return 0;
}

static vka_attention_params attention_params(uint32_t rows)
{
    return (vka_attention_params){.struct_size = sizeof(vka_attention_params),
                                  .batch = 1,
                                  .heads = HEADS,
                                  .kv_heads = KV_HEADS,
                                  .head_dim = DIM,
                                  .q_len = rows,
                                  .kv_len = KEYS,
                                  .causal = VKA_CAUSAL_BOTTOM_RIGHT,
                                  .q = {.host = on.q},
                                  .k = {.host = on.k},
                                  .v = {.host = on.v}};
}

static vka_projection_params projection_params(void)
{
    return (vka_projection_params){.struct_size = sizeof(vka_projection_params),
                                   .rows = ROWS,
                                   .weights = on.matrix,
                                   .x = {on.x, VKA_F32, ROWS, DEPTH, 0}};
}

/* ---- the operations, with results in on.first (and on.second) ---- */

static vka_status run_attention(vka_error *error)
{
    vka_attention_params params = attention_params(ROWS);

    params.o.buffer = on.first;
    params.lse.buffer = on.second;
    return vka_attention(on.context, &params, error);
}

static vka_status run_projection(vka_error *error)
{
    vka_projection_params params = projection_params();

    params.y_buffer = on.first;
    return vka_projection(on.context, &params, error);
}

static vka_status run_matrix(vka_error *error)
{
    const vka_tensor weights = {on.w, VKA_F32, COLS, DEPTH, 0};
    vka_matrix *matrix = NULL;
    vka_status status = vka_matrix_create(&matrix, on.context, 0, &weights, VKA_BF16, error);

    assert_true((status == VKA_OK) == (matrix != NULL));
    vka_matrix_destroy(&matrix);
    return status;
}

static vka_status run_exchange(vka_error *error)
{
    vka_exchange_timing timing = {.wall_ms = -7};
    const vka_all_reduce_params params = {
        .struct_size = sizeof(params), .buffers = &on.first, .count = 100, .staged = 1, .timing = &timing};
    vka_status status = vka_all_reduce(on.context, &params, error);

    assert_true((status == VKA_OK) == (timing.wall_ms != -7));
    return status;
}

static vka_status run_peak(vka_error *error)
{
    vka_peak peak = {.runs = 77};
    vka_status status = vka_measure_peak(on.context, 0, VKA_PEAK_COPY, &peak, error);

    assert_true((status == VKA_OK) == (peak.runs != 77));
    return status;
}

/* ---- tests ---- */

static uint32_t last_before(const char *name, uint32_t end)
{
    uint32_t last = UINT32_MAX;

    for (uint32_t i = shim_find(name, -1, 0); i < end; i = shim_find(name, -1, i + 1))
        last = i;
    return last;
}

/* After the last command of the last submission a barrier lets the host read. */
static void expect_visible(const char *last_command)
{
    uint32_t submit = last_before("vkQueueSubmit", shim_event_count());
    uint32_t command = last_before(last_command, submit), barrier = last_before("vkCmdPipelineBarrier", submit);

    assert_true(command < submit && barrier < submit);
    require(barrier > command, "no barrier between the last %s and vkQueueSubmit", last_command);
    assert_true(shim_event(barrier)->value[1] & HOST_STAGE);
    assert_true(shim_event(barrier)->value[3] & HOST_READ);
}

static void results_are_visible(void **state)
{
    vka_error error;

    (void)state;
    require(run_attention(&error) == VKA_OK, "%s", error.message);
    expect_visible("vkCmdDispatch");
    expect_visible("vkCmdCopyBuffer");
    require(run_projection(&error) == VKA_OK, "%s", error.message);
    expect_visible("vkCmdDispatch");
}

static void repeated_attention(void **state)
{
    static const uint32_t rows[] = {1, ROWS}; /* decode, prefill */

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        float once[ROWS * HEADS * DIM] = {0}, often[ROWS * HEADS * DIM] = {0};
        double gpu_ms = -7, wall_ms = -7;
        const char *variant = NULL;
        vka_attention_params params = attention_params(rows[i]);
        vka_error error;

        params.o.host = once;
        require(vka_attention(on.context, &params, &error) == VKA_OK, "%s", error.message);
        params.o.host = often;
        params.repeat = 3;
        params.gpu_ms = &gpu_ms;
        params.wall_ms = &wall_ms;
        params.variant = &variant;
        uint32_t dispatches = shim_count("vkCmdDispatch");
        require(vka_attention(on.context, &params, &error) == VKA_OK, "%s", error.message);
        assert_true(shim_count("vkCmdDispatch") >= dispatches + 3);
        assert_memory_equal(once, often, sizeof(once));
        assert_true(once[0] != 0 && (gpu_ms >= 0 || gpu_ms == -1) && wall_ms > 0);
        assert_non_null(variant);
        assert_memory_equal(variant, rows[i] == 1 ? "decode_f32" : "prefill_f32", 10);
    }
}

static void incoherent_memory(void **state)
{
    const vka_all_reduce_params params = {.struct_size = sizeof(params), .buffers = &on.first, .count = 100};
    vka_error error;

    (void)state;
    close_scene();
    shim_reset();
    shim_hide_coherence(true);
    require(open_scene(&error) == VKA_OK, "%s", error.message);
    uint32_t flushed = shim_count("vkFlushMappedMemoryRanges");
    uint32_t invalidated = shim_count("vkInvalidateMappedMemoryRanges");
    require(vka_all_reduce(on.context, &params, &error) == VKA_OK, "%s", error.message);
    assert_int_equal(shim_count("vkInvalidateMappedMemoryRanges"), invalidated + 1);
    assert_int_equal(shim_count("vkFlushMappedMemoryRanges"), flushed + 1);
}

typedef struct operation {
    const char *name;
    vka_status (*run)(vka_error *error);
} operation;

/* Fails the n-th call of `function`, for every n that the operation comes to; each time in a context of its own. */
static void fail_every_call(const operation *op, const char *function, int32_t vk_result, vka_status expected)
{
    enum { MOST = 12 };
    vka_error error;

    for (uint32_t n = 1; n <= MOST; n++) {
        close_scene();
        assert_int_equal(shim_live(), 0);
        shim_reset();
        require(open_scene(&error) == VKA_OK, "%s", error.message);
        shim_fail_at(function, n, vk_result);
        vka_status status = op->run(&error);
        if (!shim_failed()) {
            require(status == VKA_OK, "%s: %s", op->name, error.message);
            shim_fail_at(function, 0, 0);
            return;
        }
        require(status == expected, "%s with a failing %s: %s", op->name, function, vka_status_text(status));
        assert_int_equal(error.status, expected);
        assert_int_equal(error.vk_result, vk_result);
    }
}

static void failing_calls(void **state)
{
    static const operation operations[] = {{"attention", run_attention},
                                           {"projection", run_projection},
                                           {"matrix", run_matrix},
                                           {"exchange", run_exchange},
                                           {"peak", run_peak}};
    enum { OUT_OF_DEVICE_MEMORY = -2, LOST = -4 };

    (void)state;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        fail_every_call(&operations[i], "vkCreateBuffer", OUT_OF_DEVICE_MEMORY, VKA_ERR_DEVICE_MEMORY);
        fail_every_call(&operations[i], "vkAllocateMemory", OUT_OF_DEVICE_MEMORY, VKA_ERR_DEVICE_MEMORY);
        fail_every_call(&operations[i], "vkQueueSubmit", LOST, VKA_ERR_DEVICE_LOST);
        fail_every_call(&operations[i], "vkWaitSemaphores", LOST, VKA_ERR_DEVICE_LOST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_are_visible, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repeated_attention, set_up, tear_down),
        cmocka_unit_test_setup_teardown(incoherent_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failing_calls, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
