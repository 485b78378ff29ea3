/* See projection.h. x goes to padded rows in the scratch memory for hidden states, y comes from padded rows in that for
 * partial sums, as in a layer call. Rows are cut in equal pieces, each within the time budget of a submission. */
#include "exec/projection.h"

#include "base/clock.h"
#include "base/error.h"
#include "exchange/sum.h"
#include "exec/buffer.h"
#include "exec/limits.h"
#include "exec/pipelines.h"
#include "exec/rows.h"
#include "exec/steps.h"
#include "layout/shard.h"

typedef struct projection_call {
    const vka_projection_params *params;
    vka_context *context;
    exec_device *device;
    const vka_matrix *matrix;
    const vka_variant *candidate; /* or NULL */
    uint32_t cols, y_pad, x_stride;
    uint32_t repeat;
    pipeline_set set;
    uint32_t first_row, rows; /* of the piece at hand */
    double gpu_ms, wall_ms;
} projection_call;

static vka_status check_matrix(const projection_call *call, const char *name, vka_dtype dtype, uint64_t rows,
                               uint64_t cols, uint64_t stride, uint32_t wanted_cols, vka_error *error)
{
    if (vka_dtype_size(dtype) != 0 && rows == call->params->rows && cols == wanted_cols &&
        (stride == 0 || stride >= cols)) {
        return VKA_OK;
    }
    return vka_fail(error, VKA_ERR_ARGUMENT,
                    "%s is [%llu, %llu] of type %s with row stride %llu: expected [%u, %u] of F32, F16 or BF16 and a "
                    "stride of 0 or at least a row",
                    name, (unsigned long long)rows, (unsigned long long)cols, vka_dtype_name(dtype),
                    (unsigned long long)stride, call->params->rows, wanted_cols);
}

static vka_status check_buffer(const projection_call *call, const char *name, const vka_buffer *buffer, uint64_t offset,
                               uint32_t cols, vka_error *error)
{
    uint64_t bytes = (uint64_t)call->params->rows * cols * sizeof(float);

    if (buffer->context != call->context || buffer->device != call->matrix->device) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is on device %u of its context, the matrix on device %u", name,
                        buffer->device, call->matrix->device);
    }
    uint64_t size = gpu_buffer_bytes(buffer->gpu);
    if (offset % sizeof(float) != 0 || offset > size || bytes > size - offset) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s needs %llu bytes from byte %llu (a multiple of 4), its buffer has %llu", name,
                        (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size);
    }
    return VKA_OK;
}

static vka_status check_operands(const projection_call *call, vka_error *error)
{
    const vka_projection_params *p = call->params;
    vka_status status = VKA_OK;

    if ((p->x.data != NULL) == (p->x_buffer != NULL)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "set exactly one of x and x_buffer");
    }
    if (p->y.data == NULL && p->y_buffer == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "no result is wanted: set y, y_buffer or both");
    }
    if (p->x.data != NULL) {
        status = check_matrix(call, "x", p->x.dtype, p->x.rows, p->x.cols, p->x.row_stride, call->matrix->depth, error);
    } else {
        status = check_buffer(call, "x", p->x_buffer, p->x_offset, call->matrix->depth, error);
    }
    if (status == VKA_OK && p->y.data != NULL) {
        status = check_matrix(call, "y", p->y.dtype, p->y.rows, p->y.cols, p->y.row_stride, call->cols, error);
    }
    if (status == VKA_OK && p->y_buffer != NULL) {
        status = check_buffer(call, "y", p->y_buffer, p->y_offset, call->cols, error);
    }
    return status;
}

static vka_status resolve(projection_call *call, vka_error *error)
{
    const vka_projection_params *p = call->params;

    if (p->weights == NULL || p->weights->context != call->context) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "weights %s",
                        p->weights == NULL ? "is NULL" : "belong to another context");
    }
    if (p->rows == 0 || p->rows > INT32_MAX) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "rows is %u, expected 1 to 2^31 - 1", p->rows);
    }
    call->matrix = p->weights;
    call->device = &call->context->devices[p->weights->device];
    call->cols = p->weights->weights.rows;
    call->x_stride = rows_stride(p->weights->weights.depth);
    call->y_pad = vka_pad8(call->cols);
    call->repeat = p->repeat != 0 ? p->repeat : 1;
    return check_operands(call, error);
}

static vka_status prepare(projection_call *call, vka_error *error)
{
    const pipeline_shape shape = {.kernels = 1u << VKA_KERNEL_GEMM | 1u << VKA_KERNEL_GEMV | 1u << VKA_KERNEL_PACK,
                                  .weight_dtype = call->matrix->weights.dtype,
                                  .pack_dtype = VKA_F32,
                                  .candidate = call->candidate};
    const vka_caps *caps = gpu_device_caps(call->device->gpu);
    uint64_t row_bytes = (call->x_stride > call->y_pad ? call->x_stride : call->y_pad) * sizeof(float);
    vka_status status = limits_check(caps, call->matrix->device, row_bytes, "a row of x or y",
                                     "a row cannot be cut; use another device", error);

    if (status == VKA_OK) {
        status = pipelines_get(call->context, call->device, &shape, &call->set, error);
    }
    if (status == VKA_OK) {
        status = exec_wait_all(call->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    double most = exec_submit_flops(call->context, call->device) / (2.0 * call->cols * call->matrix->weights.depth);
    uint64_t fit = vka_caps_max_tensor(caps) / row_bytes;
    most = most < (double)fit ? most : (double)fit;
    uint32_t limit = most < 1 ? 1 : most > INT32_MAX ? INT32_MAX : (uint32_t)most;
    uint32_t pieces = (call->params->rows - 1) / limit + 1;
    call->rows = (call->params->rows - 1) / pieces + 1;
    status = exec_scratch_reserve(call->device, EXEC_SCRATCH_HIDDEN, 0,
                                  (uint64_t)call->rows * call->x_stride * sizeof(float), error);
    return status == VKA_OK ? exec_scratch_reserve(call->device, EXEC_SCRATCH_PARTIAL, 0,
                                                   (uint64_t)call->rows * call->y_pad * sizeof(float), error)
                            : status;
}

static vka_status record_load(projection_call *call, recorder *rec, vka_error *error)
{
    const vka_projection_params *p = call->params;
    staged_tensor *x = &call->device->scratch[EXEC_SCRATCH_HIDDEN][0];
    uint32_t depth = call->matrix->depth;

    if (p->x.data != NULL) {
        return rows_upload(x, rec, &p->x, (row_range){call->first_row, call->rows, call->x_stride}, error);
    }
    pack_push push = rows_pack(call->rows, depth, depth, call->matrix->weights.depth, call->x_stride);
    push.src_offset = (uint32_t)(p->x_offset / sizeof(float)) + call->first_row * depth;
    return step_pack(rec, &call->set, &push, p->x_buffer->gpu, x->buffer, HAZARD_WHOLE, error);
}

static vka_status record_runs(projection_call *call, recorder *rec, vka_error *error)
{
    const projection_step step = {.x = call->device->scratch[EXEC_SCRATCH_HIDDEN][0].buffer,
                                  .x_stride = call->x_stride,
                                  .weights = &call->matrix->weights,
                                  .depth = call->matrix->weights.depth,
                                  .y = call->device->scratch[EXEC_SCRATCH_PARTIAL][0].buffer,
                                  .y_stride = call->y_pad,
                                  .y_part = 1,
                                  .rows = call->rows};
    vka_status status = VKA_OK;

    gpu_cmd_timestamp(rec->commands, 0);
    for (uint32_t i = 0; status == VKA_OK && i < call->repeat; i++) {
        status = step_projection(rec, &call->set, &step, error);
    }
    gpu_cmd_timestamp(rec->commands, 1);
    return status;
}

static vka_status record_store(projection_call *call, recorder *rec, vka_error *error)
{
    const vka_projection_params *p = call->params;
    staged_tensor *y = &call->device->scratch[EXEC_SCRATCH_PARTIAL][0];
    vka_status status = VKA_OK;

    if (p->y_buffer != NULL) {
        pack_push push = rows_pack(call->rows, call->cols, call->y_pad, call->cols, call->cols);
        push.dst_offset = (uint32_t)(p->y_offset / sizeof(float)) + call->first_row * call->cols;
        status = step_pack(rec, &call->set, &push, y->buffer, p->y_buffer->gpu, HAZARD_WHOLE, error);
        recorder_host_read(rec, p->y_buffer->gpu);
    }
    if (p->y.data != NULL) {
        staged_pull(y, rec, (uint64_t)call->rows * call->y_pad * sizeof(float));
    }
    return status;
}

static vka_status submit(projection_call *call, vka_error *error)
{
    recorder rec;
    vka_status status = recorder_begin(&rec, call->device->gpu, error);

    if (status != VKA_OK) {
        return status;
    }
    status = record_load(call, &rec, error);
    if (status == VKA_OK) {
        status = record_runs(call, &rec, error);
    }
    if (status == VKA_OK) {
        status = record_store(call, &rec, error);
    }
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    status = recorder_submit(&rec, &call->device->pending, error);
    return status == VKA_OK ? exec_wait_all(call->context, error) : status;
}

static vka_status store_to_host(projection_call *call, vka_error *error)
{
    const vka_tensor_out *y = &call->params->y;
    staged_tensor *from = &call->device->scratch[EXEC_SCRATCH_PARTIAL][0];
    const float *rows[1] = {staged_host(from)};
    size_t stride = (size_t)(y->row_stride != 0 ? y->row_stride : y->cols);
    vka_status status = staged_finish(from, (uint64_t)call->rows * call->y_pad * sizeof(float), error);

    if (status != VKA_OK) {
        return status;
    }
    const exchange_sum_job job = {.partials = rows,
                                  .count = 1,
                                  .partial_stride = call->y_pad,
                                  .rows = call->rows,
                                  .cols = call->cols,
                                  .out = (unsigned char *)y->data + call->first_row * stride * vka_dtype_size(y->dtype),
                                  .out_dtype = y->dtype,
                                  .out_stride = stride};
    exchange_sum(&job);
    return VKA_OK;
}

static vka_status run_piece(projection_call *call, vka_error *error)
{
    double since = vka_clock_ms();
    vka_status status = submit(call, error);

    if (status != VKA_OK) {
        return status;
    }
    call->wall_ms += (vka_clock_ms() - since) / call->repeat;
    double ms = gpu_elapsed_ms(call->device->gpu, 0, 1);
    call->gpu_ms = ms < 0 ? -1 : call->gpu_ms + ms / call->repeat;
    return call->params->y.data != NULL ? store_to_host(call, error) : VKA_OK;
}

vka_status exec_projection(vka_context *context, const vka_projection_params *params, const vka_variant *candidate,
                           vka_error *error)
{
    projection_call call = {.params = params, .context = context, .candidate = candidate};
    vka_status status = resolve(&call, error);

    if (status == VKA_OK) {
        status = prepare(&call, error);
    }
    const uint32_t piece = call.rows;
    for (; status == VKA_OK && call.first_row < params->rows; call.first_row += call.rows) {
        uint32_t left = params->rows - call.first_row;
        call.rows = left < piece ? left : piece;
        status = run_piece(&call, error);
    }
    if (status == VKA_OK && params->gpu_ms != NULL) {
        *params->gpu_ms = call.gpu_ms;
    }
    if (status == VKA_OK && params->wall_ms != NULL) {
        *params->wall_ms = call.wall_ms;
    }
    if (status == VKA_OK && params->variant != NULL) {
        *params->variant =
            step_projection_kernel(&call.set, params->rows < piece ? params->rows : piece)->variant->name;
    }
    return status;
}
