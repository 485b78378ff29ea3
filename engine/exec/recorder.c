/* See recorder.h. */
#include "exec/recorder.h"

#include <string.h>

static void declare(recorder *rec, uint32_t stage, const step_buffer *buffers, uint32_t count)
{
    hazard_access accesses[GPU_MAX_BINDINGS];

    for (uint32_t i = 0; i < count; i++) {
        accesses[i] = (hazard_access){buffers[i].buffer, buffers[i].part, buffers[i].write};
    }
    uint32_t from = hazard_step(&rec->hazards, stage, accesses, count);
    if (from != 0) {
        gpu_cmd_barrier(rec->commands, from, GPU_STAGE_COMPUTE | GPU_STAGE_TRANSFER | GPU_STAGE_HOST);
    }
}

vka_status recorder_begin(recorder *rec, gpu_device *device, vka_error *error)
{
    memset(rec, 0, sizeof(*rec));
    return gpu_commands_begin(device, &rec->commands, error);
}

void recorder_follow(recorder *rec)
{
    gpu_cmd_barrier(rec->commands, GPU_STAGE_COMPUTE | GPU_STAGE_TRANSFER,
                    GPU_STAGE_COMPUTE | GPU_STAGE_TRANSFER | GPU_STAGE_HOST);
}

vka_status recorder_dispatch(recorder *rec, gpu_pipeline *pipeline, const step_buffer *buffers, uint32_t count,
                             const void *push, uint32_t push_bytes, const uint32_t groups[3], vka_error *error)
{
    gpu_binding bindings[GPU_MAX_BINDINGS] = {{0}};

    for (uint32_t i = 0; i < count; i++) {
        bindings[i].buffer = buffers[i].buffer;
        bindings[i].texel = buffers[i].texel;
    }
    declare(rec, GPU_STAGE_COMPUTE, buffers, count);
    return gpu_cmd_dispatch(rec->commands, pipeline, bindings, count, push, push_bytes, groups[0], groups[1], groups[2],
                            error);
}

void recorder_copy(recorder *rec, gpu_buffer *from, uint64_t from_offset, gpu_buffer *to, uint64_t to_offset,
                   uint64_t bytes)
{
    const step_buffer buffers[2] = {reads(from), writes(to, HAZARD_WHOLE)};

    declare(rec, GPU_STAGE_TRANSFER, buffers, 2);
    gpu_cmd_copy(rec->commands, from, from_offset, to, to_offset, bytes);
}

void recorder_host_read(recorder *rec, gpu_buffer *buffer)
{
    const step_buffer read = reads(buffer);

    declare(rec, GPU_STAGE_HOST, &read, 1);
}

vka_status recorder_submit(recorder *rec, uint64_t *ticket, vka_error *error)
{
    gpu_commands *commands = rec->commands;

    rec->commands = NULL;
    return gpu_submit(commands, ticket, error);
}

void recorder_abandon(recorder *rec)
{
    gpu_commands_abandon(rec->commands);
    rec->commands = NULL;
}
