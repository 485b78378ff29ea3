#include "vk/rig.h"

#include <stdio.h>
#include <string.h>

static const uint32_t add_spirv[] =
#include "add.inc"
    ;
static const uint32_t texel_spirv[] =
#include "texel.inc"
    ;

const gpu_pipeline_desc add_kernel = {
    .name = "add",
    .spirv = add_spirv,
    .spirv_bytes = sizeof(add_spirv),
    .spec_count = 1,
    .spec = {3},
    .local_size = 64,
    .storage_bindings = 2,
    .push_bytes = sizeof(add_push),
};

const gpu_pipeline_desc texel_kernel = {
    .name = "texel",
    .spirv = texel_spirv,
    .spirv_bytes = sizeof(texel_spirv),
    .local_size = 64,
    .storage_bindings = 1,
    .texel_bindings = 2,
    .push_bytes = sizeof(uint32_t),
};

static void on_log(void *user, int level, const char *message)
{
    rig *r = user;

    if (level > 0)
        return;
    r->messages++;
    snprintf(r->last_message, sizeof(r->last_message), "%s", message);
}

void rig_open_with(rig *r, const gpu_device_params *params, bool validation)
{
    gpu_device_params own = *params;
    support_devices found;

    memset(r, 0, sizeof(*r));
    support_find_devices(&found);
    own.physical = found.index[0];
    r->params = (vka_context_params){
        .struct_size = sizeof(r->params),
        .validation = validation,
        .get_instance_proc = shim_get_proc,
        .log = on_log,
        .log_user = r,
    };
    check_ok(gpu_instance_create(&r->instance, &r->params, err));
    check_ok(gpu_device_open(&r->device, r->instance, &own, err));
}

void rig_open(rig *r, const char *pretend)
{
    rig_open_with(r, &(gpu_device_params){.pretend = pretend}, false);
}

void rig_close(rig *r)
{
    gpu_device_close(&r->device);
    gpu_instance_destroy(&r->instance);
    assert_null(r->device);
    assert_null(r->instance);
    assert_int_equal(shim_live(), 0);
    if (r->messages)
        fail_msg("%u messages, the last: %s", r->messages, r->last_message);
}

uint32_t rig_word(float value)
{
    uint32_t word;

    memcpy(&word, &value, sizeof(word));
    return word;
}

typedef struct exercise {
    gpu_buffer *a, *b, *host;
    gpu_pipeline *add;
    gpu_commands *commands;
    uint32_t count;
} exercise;

static vka_status record(exercise *e, vka_error *error)
{
    const gpu_binding bindings[] = {{.buffer = e->a}, {.buffer = e->b}};
    const add_push push = {e->count, 0.5f};
    uint64_t bytes = e->count * sizeof(float);
    vka_status status;

    gpu_cmd_timestamp(e->commands, 0);
    gpu_cmd_fill(e->commands, e->a, 0, bytes, rig_word(1.0f));
    gpu_cmd_fill(e->commands, e->b, 0, bytes, rig_word(2.0f));
    gpu_cmd_barrier(e->commands, GPU_STAGE_TRANSFER, GPU_STAGE_COMPUTE);
    status = gpu_cmd_dispatch(e->commands, e->add, bindings, 2, &push, sizeof(push), (e->count + 63) / 64, 1, 1, error);
    gpu_cmd_barrier(e->commands, GPU_STAGE_COMPUTE, GPU_STAGE_TRANSFER);
    gpu_cmd_copy(e->commands, e->b, 0, e->host, 0, bytes);
    gpu_cmd_barrier(e->commands, GPU_STAGE_TRANSFER, GPU_STAGE_HOST);
    gpu_cmd_timestamp(e->commands, 1);
    return status;
}

static vka_status run(exercise *e, gpu_device *device, vka_error *error)
{
    uint64_t bytes = e->count * sizeof(float);
    uint64_t ticket = 0;
    vka_status status = gpu_buffer_create(&e->a, device, bytes, GPU_MEMORY_DEVICE, "a", error);

    if (status == VKA_OK)
        status = gpu_buffer_create(&e->b, device, bytes, GPU_MEMORY_DEVICE, "b", error);
    if (status == VKA_OK)
        status = gpu_buffer_create(&e->host, device, bytes, GPU_MEMORY_DOWNLOAD, "host", error);
    if (status == VKA_OK)
        status = gpu_pipeline_get(device, &add_kernel, &e->add, error);
    if (status == VKA_OK)
        status = gpu_commands_begin(device, &e->commands, error);
    if (status == VKA_OK)
        status = record(e, error);
    if (status != VKA_OK)
        return status;
    status = gpu_submit(e->commands, &ticket, error);
    e->commands = NULL;
    if (status == VKA_OK)
        status = gpu_wait(device, ticket, error);
    if (status == VKA_OK)
        status = gpu_buffer_invalidate(e->host, 0, bytes, error);
    return status;
}

vka_status rig_exercise(gpu_device *device, uint32_t count, vka_error *error)
{
    exercise e = {.count = count};
    vka_status status = run(&e, device, error);

    for (uint32_t i = 0; i < count && status == VKA_OK; i++)
        assert_float_equal(((const float *)gpu_buffer_map(e.host))[i], 5.5f, 0);
    gpu_commands_abandon(e.commands);
    gpu_buffer_destroy(&e.a);
    gpu_buffer_destroy(&e.b);
    gpu_buffer_destroy(&e.host);
    return status;
}
