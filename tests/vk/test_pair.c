/* Two devices of two drivers in one process. */
#include <pthread.h>
#include <string.h>

#include "vk/rig.h"

typedef struct pair {
    support_devices found;
    gpu_instance *instance;
    gpu_device *device[2];
} pair;

static void pair_open(pair *p)
{
    const vka_context_params params = {.struct_size = sizeof(params), .get_instance_proc = shim_get_proc};

    shim_reset();
    *p = (pair){0};
    support_find_devices(&p->found);
    assert_int_equal(p->found.count, 2);
    check_ok(gpu_instance_create(&p->instance, &params, err));
    for (uint32_t i = 0; i < 2; i++) {
        const gpu_device_params device = {.physical = p->found.index[i], .position = i};

        check_ok(gpu_device_open(&p->device[i], p->instance, &device, err));
    }
}

static void pair_close(pair *p)
{
    gpu_device_close(&p->device[0]);
    gpu_device_close(&p->device[1]);
    gpu_instance_destroy(&p->instance);
    assert_int_equal(shim_live(), 0);
}

/* Function tables must not be shared: each device runs through its own driver. */
static void each_through_its_own_table(void **state)
{
    pair p;

    (void)state;
    pair_open(&p);
    assert_true(gpu_device_info(p.device[0])->driver_id != gpu_device_info(p.device[1])->driver_id);
    for (uint32_t i = 0; i < 6; i++)
        check_ok(rig_exercise(p.device[i % 2], 500 + i, err));
    assert_int_equal(shim_count("vkQueueSubmit"), 6);
    assert_int_equal(shim_event(shim_find("vkQueueSubmit", 0, 0))->value[0], 1); /* tickets are per device */
    assert_int_equal(shim_event(shim_find("vkQueueSubmit", 1, 0))->value[0], 1);
    pair_close(&p);
}

/* Work on all devices can be submitted before anything is waited for. */
static void submits_before_waits(void **state)
{
    gpu_buffer *buffer[2] = {0};
    uint64_t ticket[2];
    pair p;

    (void)state;
    pair_open(&p);
    for (uint32_t i = 0; i < 2; i++) {
        gpu_commands *commands = NULL;

        check_ok(gpu_buffer_create(&buffer[i], p.device[i], 4096, GPU_MEMORY_DEVICE, "partial", err));
        check_ok(gpu_commands_begin(p.device[i], &commands, err));
        gpu_cmd_fill(commands, buffer[i], 0, 4096, rig_word(1.5f + (float)i));
        gpu_cmd_barrier(commands, GPU_STAGE_TRANSFER, GPU_STAGE_HOST);
        check_ok(gpu_submit(commands, &ticket[i], err));
    }
    for (uint32_t i = 0; i < 2; i++) {
        check_ok(gpu_wait(p.device[i], ticket[i], err));
        shim_mark("add", (int)i, 4096);
        assert_float_equal(((const float *)gpu_buffer_map(buffer[i]))[1023], 1.5f + (float)i, 0);
    }
    assert_true(shim_find("vkQueueSubmit", 1, 0) < shim_find("vkWaitSemaphores", -1, 0));
    assert_true(shim_find("vkWaitSemaphores", 0, 0) < shim_find("add", 0, 0));
    assert_true(shim_find("add", 0, 0) < shim_find("vkWaitSemaphores", 1, 0));
    gpu_buffer_destroy(&buffer[0]);
    gpu_buffer_destroy(&buffer[1]);
    pair_close(&p);
}

static void one_lost_the_other_not(void **state)
{
    vka_error error = {0};
    pair p;

    (void)state;
    pair_open(&p);
    shim_fail_at("vkQueueSubmit", 1, -4); /* VK_ERROR_DEVICE_LOST */
    assert_int_equal(rig_exercise(p.device[1], 64, &error), VKA_ERR_DEVICE_LOST);
    assert_int_equal(error.device, 1);
    check_ok(rig_exercise(p.device[0], 64, err));
    assert_int_equal(rig_exercise(p.device[1], 64, &error), VKA_ERR_DEVICE_LOST);
    pair_close(&p);
}

static void listing_and_choice(void **state)
{
    vka_device_info all[8];
    uint32_t chosen[8];
    uint32_t count = 0;
    support_devices found;

    (void)state;
    support_find_devices(&found);
    check_ok(vka_device_list(NULL, all, 1, &count, err));
    assert_int_equal(count, 2); /* all were found, one was written */
    check_ok(vka_device_list(NULL, all, 8, &count, err));
    assert_int_equal(all[0].duplicate_of, -1);
    assert_int_equal(all[1].duplicate_of, -1);
    check_ok(gpu_choose(all, 2, "all", chosen, 8, &count, err));
    assert_int_equal(count, 2);
    check_ok(gpu_choose(all, 2, "name:llvmpipe,type:cpu,name:swift", chosen, 8, &count, err));
    assert_int_equal(count, 4);
    assert_int_equal(chosen[0], found.index[0]);
    assert_int_equal(chosen[3], found.index[1]);
}

/* ---- threads: different contexts are independent ---- */

typedef struct worker {
    support_devices found;
    uint32_t number;
    vka_status status;
    vka_error error;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    const vka_context_params params = {.struct_size = sizeof(params)};

    for (uint32_t round = 0; round < 3 && w->status == VKA_OK; round++) {
        const gpu_device_params device = {.physical = w->found.index[(w->number + round) % 2]};
        gpu_instance *instance = NULL;
        gpu_device *opened = NULL;

        w->status = gpu_instance_create(&instance, &params, &w->error);
        if (w->status == VKA_OK)
            w->status = gpu_device_open(&opened, instance, &device, &w->error);
        for (uint32_t i = 0; i < 5 && w->status == VKA_OK; i++)
            w->status = rig_exercise(opened, 100, &w->error);
        gpu_device_close(&opened);
        gpu_instance_destroy(&instance);
    }
    return NULL;
}

static void contexts_on_threads(void **state)
{
    enum { THREADS = 3 };
    worker workers[THREADS] = {0};
    pthread_t threads[THREADS];

    (void)state;
    for (uint32_t i = 0; i < THREADS; i++) {
        support_find_devices(&workers[i].found);
        workers[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        if (workers[i].status != VKA_OK)
            fail_msg("thread %u: %s", i, workers[i].error.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_through_its_own_table), cmocka_unit_test(submits_before_waits),
        cmocka_unit_test(one_lost_the_other_not),     cmocka_unit_test(listing_and_choice),
        cmocka_unit_test(contexts_on_threads),
    };

    return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
