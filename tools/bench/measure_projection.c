/* Projections: the matrix is uploaded once; x and y are device buffers, so that nothing but the kernel and one
 * submission is timed. */
#include <stdlib.h>

#include "base/error.h"
#include "bench/measure.h"
#include "bench/work.h"
#include "vkattn/projection.h"

typedef struct projection_run {
    vka_context *context;
    vka_matrix *matrix;
    vka_buffer *x, *y;
    vka_projection_params params;
    double gpu_ms, wall_ms;
    const char *variant;
} projection_run;

static vka_status sample(void *user, uint32_t repeat, double *gpu_ms, double *wall_ms, vka_error *error)
{
    projection_run *run = user;

    run->params.repeat = repeat;
    vka_status status = vka_projection(run->context, &run->params, error);
    *gpu_ms = run->gpu_ms;
    *wall_ms = run->wall_ms;
    return status;
}

static vka_status make_matrix(projection_run *run, const bench_case *of, vka_error *error)
{
    void *values = bench_random((size_t)of->cols * of->depth, of->dtype, 1);
    const vka_tensor view = {values, of->dtype, of->cols, of->depth, 0};
    vka_status status;

    if (!values)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a matrix of %u x %u", of->cols, of->depth);
    status = vka_matrix_create(&run->matrix, run->context, 0, &view, VKA_DTYPE_DEFAULT, error);
    free(values);
    return status;
}

static vka_status make_rows(projection_run *run, const bench_case *of, vka_error *error)
{
    size_t count = (size_t)of->rows * of->depth;
    float *values = bench_random(count, VKA_F32, 2);
    vka_status status;

    if (!values)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u rows of %u", of->rows, of->depth);
    status = vka_buffer_create(&run->x, run->context, 0, count * sizeof(float), error);
    if (status == VKA_OK)
        status = vka_buffer_write(run->x, 0, values, count * sizeof(float), error);
    if (status == VKA_OK)
        status = vka_buffer_create(&run->y, run->context, 0, (uint64_t)of->rows * of->cols * sizeof(float), error);
    free(values);
    return status;
}

vka_status bench_measure_projection(bench_session *session, bench_result *result, vka_error *error)
{
    const bench_work work = bench_work_of(result->of);
    projection_run run = {.context = NULL};
    vka_status status = bench_context(session, (uint32_t)result->device, &run.context, error);

    if (status == VKA_OK)
        status = make_matrix(&run, result->of, error);
    if (status == VKA_OK)
        status = make_rows(&run, result->of, error);
    run.params = (vka_projection_params){.struct_size = sizeof(run.params),
                                         .rows = result->of->rows,
                                         .weights = run.matrix,
                                         .x_buffer = run.x,
                                         .y_buffer = run.y,
                                         .gpu_ms = &run.gpu_ms,
                                         .wall_ms = &run.wall_ms,
                                         .variant = &run.variant};
    if (status == VKA_OK)
        status = bench_sample(&session->options.limits, BENCH_BATCH, sample, &run, &result->samples, error);
    vka_buffer_destroy(&run.x);
    vka_buffer_destroy(&run.y);
    vka_matrix_destroy(&run.matrix);
    if (status != VKA_OK)
        return status;
    result->flops = work.flops;
    result->bytes = work.bytes;
    result->peak = result->of->kind == BENCH_GEMM ? VKA_PEAK_FMA_F32 : VKA_PEAK_READ;
    bench_add_variant(result, run.variant);
    return VKA_OK;
}
