/* A caller's matrix on one device. */
#include "base/error.h"
#include "base/tensor.h"
#include "exec/limits.h"
#include "exec/projection.h"

static void fill_row(void *user, uint32_t row, matrix_row *out)
{
    const vka_tensor *weights = user;

    matrix_put(out, vka_tensor_element(weights, row, 0), weights->dtype, (uint32_t)weights->cols);
}

static uint32_t padded(const vka_tensor *weights)
{
    return ((uint32_t)weights->cols + MATRIX_OCTET - 1) / MATRIX_OCTET * MATRIX_OCTET;
}

static vka_status check(const vka_context *context, uint32_t device, const vka_tensor *weights, vka_dtype stored,
                        vka_error *error)
{
    if (device >= context->device_count) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device is %u, the context has %u", device, context->device_count);
    }
    if (weights->data == NULL || vka_dtype_size(weights->dtype) == 0 || vka_dtype_size(stored) == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "weights have %s and type %s, to be stored as %s: expected F32, F16 or "
                        "BF16 data",
                        weights->data == NULL ? "no data" : "data", vka_dtype_name(weights->dtype),
                        vka_dtype_name(stored));
    }
    if (weights->rows == 0 || weights->cols == 0 || weights->rows > INT32_MAX || weights->cols > INT32_MAX ||
        (weights->row_stride != 0 && weights->row_stride < weights->cols)) {
        return vka_fail(
            error, VKA_ERR_ARGUMENT,
            "weights are [%llu, %llu] with row stride %llu: expected 1 to 2^31 - 1 of both, and a stride of "
            "0 or at least a row",
            (unsigned long long)weights->rows, (unsigned long long)weights->cols,
            (unsigned long long)weights->row_stride);
    }
    return limits_check(gpu_device_caps(context->devices[device].gpu), device,
                        matrix_group_bytes(padded(weights), stored), "a group of eight rows of the matrix",
                        "a row cannot be cut; use another device", error);
}

vka_status exec_matrix_create(vka_matrix **out, vka_context *context, uint32_t device, const vka_tensor *weights,
                              vka_dtype stored, vka_error *error)
{
    vka_tensor source = *weights;
    vka_matrix *matrix;

    stored = stored != VKA_DTYPE_DEFAULT ? stored : weights->dtype;
    vka_status status = check(context, device, weights, stored, error);

    if (status != VKA_OK) {
        return status;
    }
    matrix = vka_alloc(&context->allocator, 1, sizeof(*matrix));
    if (matrix == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a matrix");
    }
    matrix->context = context;
    matrix->device = device;
    matrix->depth = (uint32_t)weights->cols;
    const weight_matrix shape = {.rows = (uint32_t)weights->rows, .depth = padded(weights), .dtype = stored};
    status = matrix_create(&matrix->weights, context->devices[device].gpu, &shape, "matrix panel", fill_row, &source,
                           &context->allocator, error);
    if (status != VKA_OK) {
        vka_free(&context->allocator, matrix);
        return status;
    }
    *out = matrix;
    return VKA_OK;
}

void exec_matrix_destroy(vka_matrix **matrix)
{
    if (matrix == NULL || *matrix == NULL) {
        return;
    }
    const vka_allocator *allocator = &(*matrix)->context->allocator;
    matrix_destroy(&(*matrix)->weights, allocator);
    vka_free(allocator, *matrix);
    *matrix = NULL;
}
