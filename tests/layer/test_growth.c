/* The cost of a call grows as its work grows, counted in operations, bytes and dispatches, not in time: attention by
 * the pairs of a query and a key that it sees, reading by keys, and nothing for keys outside a window. */
#include "layer/calls_tests.h"

#include <string.h>

#include "layer/calls.h"

enum { WINDOW = 48, KV_HEADS = 2, DIM = 8, V_DIM = 16, HIDDEN = 40, MOST_EVENTS = 64 };

static layer_case layer_of(uint32_t heads, uint32_t window, vka_dtype cache)
{
    return (layer_case){.name = "growth",
                        .desc = {.hidden_size = HIDDEN,
                                 .heads = heads,
                                 .kv_heads = KV_HEADS,
                                 .head_dim = DIM,
                                 .v_head_dim = V_DIM,
                                 .window = window},
                        .place = "0",
                        .cache = cache,
                        .pages = 100};
}

/* ---- operations and bytes ---- */

typedef vka_stage_time stage_times[VKA_STAGE_COUNT];

/* What `tokens` more of a sequence cost. */
static const vka_stage_time *spend(layer_rig *rig, uint32_t sequence, uint32_t tokens)
{
    static stage_times devices[HARNESS_DEVICES];
    static vka_timing timing = {.devices = devices};
    const vka_batch_entry entry = {sequence, tokens};

    rig_forward(rig, &(rig_call){.entries = &entry, .count = 1, .unchecked = true, .timing = &timing});
    return devices[0];
}

typedef struct seen {
    double pairs;
    double keys; /* that some row sees */
} seen;

/* By definition: row r of `tokens` after `past` sees the keys up to its own, of those the last `window`. */
static seen count_seen(uint32_t past, uint32_t tokens, uint32_t window)
{
    seen all = {0, 0};

    for (uint32_t key = 0; key < past + tokens; key++) {
        uint32_t rows = 0;
        for (uint32_t position = past; position < past + tokens; position++)
            rows += key <= position && (window == 0 || position - key < window);
        all.pairs += rows;
        all.keys += rows > 0;
    }
    return all;
}

static void check_spent(const vka_stage_time *spent, const seen *all, uint32_t heads, uint32_t tokens, double cell)
{
    double columns = heads * DIM + KV_HEADS * (DIM + V_DIM), dims = DIM + V_DIM;

    assert_true(spent[VKA_STAGE_QKV].flops == 2.0 * tokens * HIDDEN * columns);
    assert_true(spent[VKA_STAGE_OUTPUT].flops == 2.0 * tokens * HIDDEN * heads * V_DIM);
    assert_true(spent[VKA_STAGE_ATTENTION].flops == 2 * all->pairs * heads * dims);
    assert_true(spent[VKA_STAGE_ATTENTION].bytes == dims * (tokens * heads * 4.0 + all->keys * KV_HEADS * cell));
}

static void work_is_what_rows_see(void **state)
{
    static const uint32_t heads[] = {2, 4, 8}, windows[] = {0, WINDOW}, steps[] = {16, 32, 1, 64, 1, 200, 3, 1};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(heads) / sizeof(heads[0]); i++) {
        const layer_case setup = layer_of(heads[i / 2], windows[i % 2], i % 2 ? VKA_F16 : VKA_F32);
        layer_rig rig;
        rig_open(&rig, harness_context(), &setup);
        uint32_t sequence = rig_sequence(&rig), past = 0;
        for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); past += steps[step++]) {
            const seen all = count_seen(past, steps[step], windows[i % 2]);
            check_spent(spend(&rig, sequence, steps[step]), &all, heads[i / 2], steps[step], i % 2 ? 2 : 4);
        }
        rig_close(&rig);
    }
}

/* Every further token costs a decoding step the bytes of one key and one value; outside a window, nothing. */
static void decoding_reads_one_key_more_each_time(void **state)
{
    static const uint32_t windows[] = {0, WINDOW};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const layer_case setup = layer_of(4, windows[i], VKA_F16);
        layer_rig rig;
        rig_open(&rig, harness_context(), &setup);
        uint32_t sequence = rig_sequence(&rig);
        rig_run(&rig, sequence, 300, NULL);
        double last = spend(&rig, sequence, 1)[VKA_STAGE_ATTENTION].bytes;
        for (int step = 0; step < 5; step++) {
            double bytes = spend(&rig, sequence, 1)[VKA_STAGE_ATTENTION].bytes;
            assert_true(bytes - last == (windows[i] > 0 ? 0 : KV_HEADS * (DIM + V_DIM) * 2));
            last = bytes;
        }
        rig_close(&rig);
    }
}

/* ---- dispatches ---- */

typedef struct dispatches {
    uint64_t groups[MOST_EVENTS][3];
    uint32_t count;
} dispatches;

static dispatches watch(layer_rig *rig, uint32_t sequence, uint32_t tokens)
{
    dispatches out = {.count = 0};
    uint32_t from = shim_event_count();

    rig_run(rig, sequence, tokens, NULL);
    while ((from = shim_find("vkCmdDispatch", 0, from)) != UINT32_MAX) {
        assert_true(out.count < MOST_EVENTS);
        memcpy(out.groups[out.count++], shim_event(from++)->value, sizeof(out.groups[0]));
    }
    return out;
}

static uint64_t count_groups(const dispatches *all)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < all->count; i++)
        count += all->groups[i][0] * all->groups[i][1] * all->groups[i][2];
    return count;
}

/* Decoding of a token and prefill of 24 after few keys and after many. */
static void watch_window(uint32_t window, dispatches few[2], dispatches many[2])
{
    const layer_case setup = layer_of(4, window, VKA_F32);
    const vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    layer_rig rig;

    rig_open(&rig, context, &setup);
    uint32_t sequence = rig_sequence(&rig);
    rig_run(&rig, sequence, WINDOW, NULL);
    few[0] = watch(&rig, sequence, 1);
    few[1] = watch(&rig, sequence, 24);
    rig_run(&rig, sequence, 1200, NULL);
    many[0] = watch(&rig, sequence, 1);
    many[1] = watch(&rig, sequence, 24);
    rig_close(&rig);
    calls_close(&context);
}

static void keys_outside_a_window_cost_no_dispatch(void **state)
{
    dispatches few[2], many[2];

    (void)state;
    watch_window(WINDOW, few, many);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(few[i].count, many[i].count);
        assert_memory_equal(few[i].groups, many[i].groups, few[i].count * sizeof(few[i].groups[0]));
    }
    watch_window(0, few, many); /* where all keys are seen, decoding is split over them */
    assert_true(count_groups(&many[0]) > count_groups(&few[0]));
}

int run_growth_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_what_rows_see),
        cmocka_unit_test(decoding_reads_one_key_more_each_time),
        cmocka_unit_test(keys_outside_a_window_cost_no_dispatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
