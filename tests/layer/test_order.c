/* In which order the work of a call reaches the devices, and what stands between its steps. */
#include "layer/calls_tests.h"

#include <stdio.h>
#include <string.h>

#include "layer/calls.h"

static const layer_case setup = {
    .name = "order",
    .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8},
    .tp = 4,
    .place = "0,1,0,1",
    .pages = 100,
};

/* One call of the entries; the commands of device 0 and of device 1 are the same and read `expected`. */
static void check_commands(layer_rig *rig, const vka_batch_entry *entries, uint32_t count, const char *expected)
{
    uint32_t from = shim_event_count();

    rig_forward(rig, &(rig_call){.entries = entries, .count = count, .unchecked = true});
    for (int device = 0; device < 2; device++) {
        char text[256];
        calls_text(device, from, text, sizeof(text));
        assert_string_equal(text, expected);
    }
}

/* Where the host uses the devices' memory: Q, K and V of the epilogue are independent, and so are the launches of
 * attention; everything else waits for the step before it, and the host for the partial sums. */
static void barriers_in_mapped_memory(void **state)
{
    vka_context_params params = calls_params();
    vka_context *context = calls_context(&params);
    layer_rig rig;

    (void)state;
    rig_open(&rig, context, &setup);
    uint32_t a = rig_sequence(&rig), b = rig_sequence(&rig);
    rig_run(&rig, a, 700, NULL);
    check_commands(&rig, &(vka_batch_entry){b, 9}, 1, "DBDDDBDBDBS");
    check_commands(&rig, &(vka_batch_entry){b, 1}, 1, "DBDDDBDBDBS");
    check_commands(&rig, &(vka_batch_entry){a, 1}, 1, "DBDDDBDBDBDBS"); /* split over keys, and combined */
    check_commands(&rig, (const vka_batch_entry[]){{a, 1}, {b, 9}}, 2, "DBDDDBDDBDBDBS");
    rig_close(&rig);
    calls_close(&context);
}

/* Where device memory is not the host's: the parameters and the hidden states are copied in, the partial sums out. */
static void barriers_with_staging(void **state)
{
    vka_context_params params = calls_params();
    layer_rig rig;

    (void)state;
    shim_hide_host_visible_device_memory(true);
    vka_context *context = calls_context(&params);
    rig_open(&rig, context, &setup);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, 9, NULL);
    check_commands(&rig, &(vka_batch_entry){a, 9}, 1, "CCBDBDDDBDBDBCBS");
    check_commands(&rig, &(vka_batch_entry){a, 1}, 1, "CCBDBDDDBDBDBCBS");
    rig_close(&rig);
    calls_close(&context);
}

/* One partial for each rank, all independent; weights in two panels, independent too. */
static void barriers_of_panels_and_ranks(void **state)
{
    vka_context_params params = calls_params();
    layer_case two = setup;
    layer_rig rig;

    (void)state;
    params.pretend = "max_alloc=1MiB";
    two.desc.hidden_size = 3000; /* a panel holds 87 rows: device shards of 64 + 32 need two, the output one */
    two.desc.heads = 16;
    two.desc.kv_heads = 4;
    two.reproducible = true;
    vka_context *context = calls_context(&params);
    rig_open(&rig, context, &two);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, 9, NULL);
    check_commands(&rig, &(vka_batch_entry){a, 9}, 1, "DDBDDDBDBDDBS");
    rig_close(&rig);
    calls_close(&context);
}

/* ---- several chunks ---- */

enum { CHUNKS = 64 };

/* Submissions and waits of one call so far: the tickets of each device, in order. */
typedef struct progress {
    uint64_t tickets[HARNESS_DEVICES][CHUNKS];
    uint32_t submits[HARNESS_DEVICES], waits[HARNESS_DEVICES];
} progress;

static void note_submission(progress *p, const shim_record *event)
{
    assert_true(p->submits[event->device] < CHUNKS);
    p->tickets[event->device][p->submits[event->device]++] = event->value[0];
}

/* When a chunk is waited for, every device has it, and the next one too, if there is one. */
static void note_wait(progress *p, const shim_record *event, uint32_t chunks)
{
    uint32_t chunk = p->waits[event->device]++, wanted = chunk + 2 < chunks ? chunk + 2 : chunks;

    assert_int_equal(event->value[0], p->tickets[event->device][chunk]);
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++)
        require(p->submits[d] == wanted, "chunk %u is waited for on device %d when device %u has %u", chunk,
                event->device, d, p->submits[d]);
}

/* All devices are submitted before any is waited for, and the next chunk before the sums of the one before. */
static void submissions_come_first(void **state)
{
    vka_context_params params = calls_params();
    vka_stage_time times[HARNESS_DEVICES][VKA_STAGE_COUNT];
    vka_timing timing = {.devices = times};
    layer_case three = setup;
    layer_rig rig;
    progress p = {0};

    (void)state;
    params.submit_budget_ms = 1;
    three.desc.hidden_size = 1000;
    three.place = "0,1,2,1";
    vka_context *context = calls_context(&params);
    rig_open(&rig, context, &three);
    const vka_batch_entry entry = {rig_sequence(&rig), 400};
    rig_run(&rig, entry.sequence, 9, NULL);
    uint32_t from = shim_event_count();
    rig_forward(&rig, &(rig_call){.entries = &entry, .count = 1, .timing = &timing, .unchecked = true});
    assert_in_range(timing.chunks, 3, CHUNKS);
    for (uint32_t i = from; i < shim_event_count(); i++) {
        const shim_record *event = shim_event(i);
        if (strcmp(event->name, "vkQueueSubmit") == 0)
            note_submission(&p, event);
        if (strcmp(event->name, "vkWaitSemaphores") == 0)
            note_wait(&p, event, timing.chunks);
    }
    for (uint32_t d = 0; d < HARNESS_DEVICES; d++) {
        assert_int_equal(p.submits[d], timing.chunks);
        assert_int_equal(p.waits[d], timing.chunks);
    }
    rig_close(&rig);
    calls_close(&context);
}

/* A submission that may meet an earlier one on the device begins with a barrier; the first of a call does not. */
static void chunks_wait_for_each_other(void **state)
{
    vka_context_params params = calls_params();
    layer_rig rig;

    (void)state;
    params.submit_budget_ms = 1;
    vka_context *context = calls_context(&params);
    rig_open(&rig, context, &setup);
    uint32_t a = rig_sequence(&rig);
    rig_run(&rig, a, 9, NULL);
    check_commands(&rig, &(vka_batch_entry){a, 300}, 1, "DBDDDBDBDBSADBDDDBDBDBS");
    check_commands(&rig, &(vka_batch_entry){a, 9}, 1, "DBDDDBDBDBS");
    rig_close(&rig);
    calls_close(&context);
}

int run_order_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_in_mapped_memory),    cmocka_unit_test(barriers_with_staging),
        cmocka_unit_test(barriers_of_panels_and_ranks), cmocka_unit_test(submissions_come_first),
        cmocka_unit_test(chunks_wait_for_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
