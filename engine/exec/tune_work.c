/* See tune_work.h. Activations of every kind are taken from one buffer of generated floats; what they are does not
 * matter for time, as long as they are neither zeros nor denormals. */
#include "exec/tune_work.h"

#include "exec/limits.h"
#include "layout/shard.h"
#include "vkattn/model.h"

#define SEED 1u

enum { STREAM_SOURCE, STREAM_WEIGHTS };

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void fill_weights(void *user, uint32_t row, matrix_row *out)
{
    const uint32_t *depth = user;
    float values[256];

    for (uint32_t done = 0; done < *depth; done += 256) {
        uint32_t left = *depth - done, count = left < 256 ? left : 256;
        vka_random_fill(values, count, 1, SEED, STREAM_WEIGHTS, (uint64_t)row * *depth + done);
        matrix_put(out, values, VKA_F32, count);
    }
}

static vka_status make_matrix(tune_work *work, uint32_t cols, uint32_t depth, vka_error *error)
{
    vka_context *context = work->context;
    gpu_device *gpu = context->devices[work->params.device].gpu;
    vka_dtype dtype = work->params.weight_dtype;
    uint32_t padded = vka_pad8(depth);
    vka_matrix *matrix = &work->matrices[work->matrix_count];
    vka_status status =
        limits_check(gpu_device_caps(gpu), work->params.device, matrix_group_bytes(padded, dtype),
                     "a group of eight rows of the weights", "a row cannot be cut; tune for a smaller shape", error);

    if (status != VKA_OK) {
        return status;
    }
    *matrix = (vka_matrix){.context = context, .device = work->params.device, .depth = depth};
    const weight_matrix shape = {.rows = cols, .depth = padded, .dtype = dtype};
    status = matrix_create(&matrix->weights, gpu, &shape, "weights for tuning", fill_weights, &padded,
                           &context->allocator, error);
    work->matrix_count += status == VKA_OK;
    return status;
}

static void fill_source(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    (void)user;
    vka_random_fill(target, (size_t)(bytes / sizeof(float)), 1, SEED, STREAM_SOURCE, offset / sizeof(float));
}

static vka_status make_buffers(tune_work *work, uint64_t source_floats, uint64_t target_floats, vka_error *error)
{
    gpu_device *gpu = work->context->devices[work->params.device].gpu;
    uint64_t source_bytes = source_floats * sizeof(float);
    vka_status status =
        gpu_buffer_create(&work->source.gpu, gpu, source_bytes, GPU_MEMORY_DEVICE, "activations for tuning", error);

    if (status == VKA_OK) {
        status = gpu_buffer_create(&work->target.gpu, gpu, target_floats * sizeof(float), GPU_MEMORY_DEVICE,
                                   "results of tuning", error);
    }
    return status == VKA_OK
               ? staged_upload(gpu, work->source.gpu, 0, source_bytes, sizeof(float), fill_source, NULL, error)
               : status;
}

void tune_work_init(tune_work *work, vka_context *context, const vka_tune_params *params)
{
    *work = (tune_work){.params = *params, .context = context};
    work->source.context = work->target.context = context;
    work->source.device = work->target.device = params->device;
}

static vka_status open_work(tune_work *work, vka_error *error)
{
    const vka_tune_params *params = &work->params;
    const uint64_t rows = params->rows, keys = largest(params->keys, rows);
    const uint32_t qk_pad = vka_pad8(params->head_dim), v_pad = vka_pad8(params->v_head_dim);
    const uint32_t head_max = params->head_dim > params->v_head_dim ? params->head_dim : params->v_head_dim;
    const uint32_t qkv = params->heads * qk_pad + params->kv_heads * (qk_pad + v_pad);
    uint64_t source = largest(rows * params->heads * params->head_dim, keys * params->kv_heads * head_max);
    uint64_t target = rows * params->heads * params->v_head_dim;
    vka_status status = VKA_OK;

    if (params->hidden_size > 0) {
        source = largest(source, rows * largest(params->hidden_size, params->heads * v_pad));
        target = largest(target, rows * largest(params->hidden_size, qkv));
        status = make_matrix(work, qkv, params->hidden_size, error);
        if (status == VKA_OK) {
            status = make_matrix(work, params->hidden_size, params->heads * v_pad, error);
        }
    }
    if (status == VKA_OK) {
        status = make_buffers(work, source, target, error);
    }
    work->opened = status == VKA_OK;
    return status;
}

static void end_attention(tune_work *work)
{
    if (work->attends) {
        attention_call_end(&work->attention);
    }
    work->attends = false;
}

void tune_work_close(tune_work *work)
{
    end_attention(work);
    for (uint32_t i = 0; i < work->matrix_count; i++) {
        matrix_destroy(&work->matrices[i].weights, &work->context->allocator);
    }
    gpu_buffer_destroy(&work->source.gpu);
    gpu_buffer_destroy(&work->target.gpu);
}

vka_status tune_work_begin(tune_work *work, const tune_shape *shape, vka_error *error)
{
    const vka_tune_params *p = &work->params;
    vka_status status = work->opened ? VKA_OK : open_work(work, error);

    end_attention(work);
    if (status != VKA_OK || shape->keys == 0) {
        return status;
    }
    const vka_attention_params attention = {.device = p->device,
                                            .batch = 1,
                                            .heads = p->heads,
                                            .kv_heads = p->kv_heads,
                                            .head_dim = p->head_dim,
                                            .v_head_dim = p->v_head_dim,
                                            .q_len = shape->rows,
                                            .kv_len = shape->keys,
                                            .causal = VKA_CAUSAL_BOTTOM_RIGHT,
                                            .cache_dtype = p->cache_dtype,
                                            .q = {.buffer = &work->source},
                                            .k = {.buffer = &work->source},
                                            .v = {.buffer = &work->source},
                                            .o = {.buffer = &work->target}};
    work->attends = true;
    return attention_call_begin(&work->attention, work->context, &attention, error);
}

/* One projection of each kind, as a layer has them. */
static vka_status run_projections(tune_work *work, uint32_t rows, const vka_variant *variant, uint32_t repeat,
                                  tune_time *out, vka_error *error)
{
    double gpu_sum = 0, wall_sum = 0;
    bool gpu_clock = true;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < work->matrix_count; i++) {
        double gpu_ms = -1, wall_ms = 0;
        const vka_projection_params params = {.rows = rows,
                                              .weights = &work->matrices[i],
                                              .x_buffer = &work->source,
                                              .y_buffer = &work->target,
                                              .repeat = repeat,
                                              .gpu_ms = &gpu_ms,
                                              .wall_ms = &wall_ms};
        status = exec_projection(work->context, &params, variant, error);
        gpu_clock = gpu_clock && gpu_ms >= 0;
        gpu_sum += gpu_ms;
        wall_sum += wall_ms;
    }
    *out = (tune_time){gpu_clock ? gpu_sum : wall_sum, gpu_clock};
    return status;
}

vka_status tune_work_run(tune_work *work, const tune_shape *shape, const vka_variant *variant, uint32_t repeat,
                         tune_time *out, vka_error *error)
{
    attention_call *attention = &work->attention;

    if (!work->attends) {
        return run_projections(work, shape->rows, variant, repeat, out, error);
    }
    attention->params.repeat = repeat;
    vka_status status = attention_call_run(attention, variant, error);
    bool gpu_clock = attention->gpu_ms >= 0;
    *out = (tune_time){gpu_clock ? attention->gpu_ms : attention->wall_ms, gpu_clock};
    return status;
}
