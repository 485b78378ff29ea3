#include "kernels/rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "support/devices.h"
#include "support/require.h"
#include "support/validation.h"

#define check(call) require((call) == VKA_OK, "%s: %s", error.where, error.message)

void rig_open(test_rig *out, const char *pretend)
{
    vka_error error;
    support_devices devices;
    vka_context_params params = {.struct_size = sizeof params};
    support_find_devices(&devices);
    gpu_device_params device = {.physical = devices.index[0], .pretend = pretend};
    support_validate(&params);
    check(gpu_instance_create(&out->instance, &params, &error));
    check(gpu_device_open(&out->device, out->instance, &device, &error));
}

void rig_close(test_rig *rig)
{
    gpu_device_close(&rig->device);
    gpu_instance_destroy(&rig->instance);
}

void rig_each_variant(test_rig *rig, vka_kernel kernel, void (*body)(test_rig *rig, const vka_variant *variant))
{
    int ran = 0;
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        char reason[160];
        if (row->kernel != kernel ||
            !vka_variant_reason(i, gpu_device_caps(rig->device), row->name, reason, sizeof reason))
            continue;
        body(rig, row);
        ran++;
    }
    assert_true(ran > 0);
}

const vka_variant *rig_variant(test_rig *rig, vka_kernel kernel, vka_dtype dtype)
{
    vka_error error;
    const vka_variant *variant = NULL;
    check(vka_variant_select(kernel, dtype, gpu_device_caps(rig->device), NULL, &variant, &error));
    return variant;
}

rig_buffer rig_buffer_new(test_rig *rig, size_t words)
{
    vka_error error;
    rig_buffer buffer = {.words = (words + 3) / 4 * 4}; /* whole texels */
    check(gpu_buffer_create(&buffer.gpu, rig->device, buffer.words * 4, GPU_MEMORY_DOWNLOAD, "test", &error));
    buffer.u = gpu_buffer_map(buffer.gpu);
    buffer.f = gpu_buffer_map(buffer.gpu);
    assert_non_null(buffer.u);
    buffer.written = new_array(buffer.words, sizeof *buffer.written);
    for (size_t i = 0; i < buffer.words; i++)
        buffer.u[i] = RIG_GUARD;
    return buffer;
}

void rig_buffer_free(rig_buffer *buffer)
{
    gpu_buffer_destroy(&buffer->gpu);
    free(buffer->written);
}

void rig_check_written(const rig_buffer *buffer, const char *what)
{
    for (size_t i = 0; i < buffer->words; i++)
        require((buffer->u[i] != RIG_GUARD) == buffer->written[i], "%s: word %zu was %s", what, i,
                buffer->written[i] ? "not written" : "written");
}

size_t rig_edge(vka_dtype dtype)
{
    return dtype == VKA_F32 ? RIG_EDGE : 2 * RIG_EDGE;
}

void rig_put(rig_buffer *buffer, vka_dtype dtype, size_t element, float value)
{
    if (dtype == VKA_F32) {
        buffer->f[element] = value;
        return;
    }
    uint16_t bits = dtype == VKA_F16 ? vka_f32_to_f16(value) : vka_f32_to_bf16(value);
    memcpy((unsigned char *)buffer->u + 2 * element, &bits, sizeof bits);
}

float rig_get(const rig_buffer *buffer, vka_dtype dtype, size_t element)
{
    uint16_t bits;
    if (dtype == VKA_F32)
        return buffer->f[element];
    memcpy(&bits, (const unsigned char *)buffer->u + 2 * element, sizeof bits);
    return dtype == VKA_F16 ? vka_f16_to_f32(bits) : vka_bf16_to_f32(bits);
}

static gpu_pipeline *pipeline_of(test_rig *rig, const rig_job *job)
{
    vka_error error;
    const vka_variant *variant = job->variant;
    gpu_pipeline *pipeline = NULL;
    gpu_pipeline_desc desc = {
        .name = variant->name,
        .spirv = variant->spirv,
        .spirv_bytes = variant->spirv_bytes,
        .local_size = variant->local_size,
        .shared_bytes = variant->shared_bytes,
        .storage_bindings = variant->storage_bindings,
        .texel_bindings = variant->texel_bindings,
        .push_bytes = variant->push_bytes,
    };
    desc.spec_count = job->spec.count;
    memcpy(desc.spec, job->spec.value, sizeof desc.spec);
    check(gpu_pipeline_get(rig->device, &desc, &pipeline, &error));
    return pipeline;
}

/* Storage buffers, then the texel views of some of them. */
static uint32_t bind(const rig_job *job, gpu_binding bindings[GPU_MAX_BINDINGS])
{
    const vka_variant *variant = job->variant;
    uint32_t count = variant->storage_bindings;
    for (uint32_t i = 0; i < count; i++)
        bindings[i] = (gpu_binding){.buffer = job->buffers[i]->gpu};
    for (uint32_t k = 0; k < variant->texel_bindings; k++) {
        bindings[count] = bindings[vka_texel_operand(variant->kernel, k)];
        bindings[count++].texel = k == 0 && variant->dtype != VKA_F32 ? GPU_TEXEL_RGBA32UI : GPU_TEXEL_RGBA32F;
    }
    return count;
}

void rig_run(test_rig *rig, const rig_job *job)
{
    vka_error error;
    gpu_binding bindings[GPU_MAX_BINDINGS];
    gpu_commands *commands = NULL;
    uint64_t ticket = 0;
    gpu_pipeline *pipeline = pipeline_of(rig, job);
    uint32_t count = bind(job, bindings);
    for (uint32_t i = 0; i < job->variant->storage_bindings; i++)
        check(gpu_buffer_flush(job->buffers[i]->gpu, 0, job->buffers[i]->words * 4, &error));
    check(gpu_commands_begin(rig->device, &commands, &error));
    gpu_cmd_barrier(commands, GPU_STAGE_HOST, GPU_STAGE_COMPUTE);
    check(gpu_cmd_dispatch(commands, pipeline, bindings, count, job->push, job->variant->push_bytes, job->groups[0],
                           job->groups[1], job->groups[2], &error));
    gpu_cmd_barrier(commands, GPU_STAGE_COMPUTE, GPU_STAGE_HOST);
    check(gpu_submit(commands, &ticket, &error));
    check(gpu_wait(rig->device, ticket, &error));
    for (uint32_t i = 0; i < job->variant->storage_bindings; i++)
        check(gpu_buffer_invalidate(job->buffers[i]->gpu, 0, job->buffers[i]->words * 4, &error));
}
