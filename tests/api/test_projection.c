/* vka_projection and vka_matrix on a real device, against float64: few and many rows, sizes that are no multiple of
 * anything, all types, host and device operands, panels, pieces, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "support/devices.h"
#include "support/require.h"
#include "support/validation.h"
#include "verify/verify.h"
#include "vkattn/model.h"
#include "vkattn/projection.h"

typedef struct shape {
    uint32_t rows, cols, depth;
    vka_dtype given, stored, x_dtype;
    bool x_on_device, y_on_device;
    uint32_t gap; /* elements between rows of x, y and the weights beyond a row, where they are in host memory */
} shape;

/* Operands of one shape. */
typedef struct operands {
    float *x; /* [rows, depth], values that x_dtype holds exactly */
    void *x_host;
    void *w_host;
    float *y; /* [rows, cols + gap] */
    size_t x_stride, w_stride, y_stride;
} operands;

static vka_context *context;

static vka_context *open_context(const char *pretend, uint32_t budget_ms)
{
    support_devices devices;
    vka_context *opened = NULL;
    vka_error error;

    support_find_devices(&devices);
    vka_context_params params = {.struct_size = sizeof(params),
                                 .devices = devices.grammar,
                                 .pretend = pretend,
                                 .submit_budget_ms = budget_ms,
                                 .no_pipeline_cache = 1};
    support_validate(&params);
    require(vka_context_create(&opened, &params, &error) == VKA_OK, "%s", error.message);
    return opened;
}

static int open_group(void **state)
{
    (void)state;
    context = open_context(NULL, 0);
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    vka_context_destroy(&context);
    return 0;
}

/* Random values that `dtype` can hold: both as floats and as that type, rows `stride` elements apart. */
static void *make_matrix(uint32_t rows, uint32_t cols, size_t stride, vka_dtype dtype, uint32_t stream, float *exact)
{
    size_t size = vka_dtype_size(dtype);
    unsigned char *host = calloc(rows * stride, size);
    float *row = malloc(cols * sizeof(float));

    assert_non_null(host);
    assert_non_null(row);
    for (uint32_t r = 0; r < rows; r++) {
        vka_random_fill(row, cols, 1, 7, stream, (uint64_t)r * cols);
        vka_convert(host + r * stride * size, dtype, row, VKA_F32, cols);
        if (exact)
            vka_convert(exact + (size_t)r * cols, VKA_F32, host + r * stride * size, dtype, cols);
    }
    free(row);
    return host;
}

static operands make_operands(const shape *s)
{
    operands o = {.x_stride = s->depth + s->gap, .w_stride = s->depth + s->gap, .y_stride = s->cols + s->gap};

    o.x = malloc((size_t)s->rows * s->depth * sizeof(float));
    o.y = calloc(s->rows * o.y_stride, sizeof(float));
    assert_non_null(o.x);
    assert_non_null(o.y);
    o.x_host = make_matrix(s->rows, s->depth, o.x_stride, s->x_dtype, 1, o.x);
    o.w_host = make_matrix(s->cols, s->depth, o.w_stride, s->given, 2, NULL);
    return o;
}

static void free_operands(operands *o)
{
    free(o->x);
    free(o->x_host);
    free(o->w_host);
    free(o->y);
}

static vka_tensor weights_view(const shape *s, const operands *o)
{
    return (vka_tensor){o->w_host, s->given, s->cols, s->depth, o->w_stride};
}

static void expect_ok(vka_status status, const vka_error *error)
{
    require(status == VKA_OK, "%s", error->message);
}

static void check(const shape *s, const operands *o)
{
    const verify_projection_params params = {.rows = s->rows,
                                             .cols = s->cols,
                                             .depth = s->depth,
                                             .x = o->x,
                                             .x_stride = s->depth,
                                             .weights = weights_view(s, o),
                                             .stored = s->stored,
                                             .y = o->y,
                                             .y_stride = o->y_stride};
    verify_result result = {0};
    vka_error error;

    expect_ok(verify_projection(&params, &result, &error), &error);
    require(verify_passed(&result), "%u x %u x %u: element %zu is %.9g, expected %.9g within %.3g", s->rows, s->cols,
            s->depth, result.index, result.got, result.want, result.bound);
    assert_int_equal(result.elements, (size_t)s->rows * s->cols);
    for (uint32_t r = 0; r < s->rows; r++) /* gaps are not touched */
        for (size_t c = s->cols; c < o->y_stride; c++)
            assert_true(o->y[r * o->y_stride + c] == 0);
}

/* Buffers begin with a few floats that belong to somebody else. */
enum { LEAD = 12 };

static vka_buffer *make_buffer(vka_context *on, size_t floats, const float *values)
{
    vka_buffer *buffer = NULL;
    vka_error error;

    expect_ok(vka_buffer_create(&buffer, on, 0, LEAD + floats * sizeof(float), &error), &error);
    if (values)
        expect_ok(vka_buffer_write(buffer, LEAD, values, floats * sizeof(float), &error), &error);
    return buffer;
}

static void project(vka_context *on, const shape *s, operands *o, uint32_t repeat)
{
    const vka_tensor weights = weights_view(s, o);
    vka_matrix *matrix = NULL;
    vka_buffer *x_buffer = NULL, *y_buffer = NULL;
    double gpu_ms = -2, wall_ms = -2;
    const char *variant = NULL;
    vka_error error;

    expect_ok(vka_matrix_create(&matrix, on, 0, &weights, s->stored, &error), &error);
    vka_projection_params params = {.struct_size = sizeof(params),
                                    .rows = s->rows,
                                    .weights = matrix,
                                    .repeat = repeat,
                                    .gpu_ms = &gpu_ms,
                                    .wall_ms = &wall_ms,
                                    .variant = &variant};
    if (s->x_on_device)
        params.x_buffer = x_buffer = make_buffer(on, (size_t)s->rows * s->depth, o->x);
    else
        params.x = (vka_tensor){o->x_host, s->x_dtype, s->rows, s->depth, o->x_stride};
    if (s->y_on_device)
        params.y_buffer = y_buffer = make_buffer(on, (size_t)s->rows * s->cols, NULL);
    else
        params.y = (vka_tensor_out){o->y, VKA_F32, s->rows, s->cols, o->y_stride};
    params.x_offset = params.y_offset = LEAD;
    expect_ok(vka_projection(on, &params, &error), &error);
    for (uint32_t r = 0; s->y_on_device && r < s->rows; r++)
        expect_ok(vka_buffer_read(y_buffer, LEAD + (uint64_t)r * s->cols * sizeof(float), o->y + r * o->y_stride,
                                  s->cols * sizeof(float), &error),
                  &error);
    assert_true(gpu_ms == -1 || gpu_ms >= 0);
    assert_true(wall_ms > 0);
    assert_non_null(variant);
    assert_true(strncmp(variant, s->rows <= 4 ? "gemv_" : "gemm_", 5) == 0);
    vka_buffer_destroy(&x_buffer);
    vka_buffer_destroy(&y_buffer);
    vka_matrix_destroy(&matrix);
}

static void shapes_and_types(void **state)
{
    static const shape shapes[] = {
        {1, 64, 64, VKA_F32, VKA_F32, VKA_F32, false, false, 0},
        {1, 1, 1, VKA_F32, VKA_F32, VKA_F32, true, true, 0},
        {1, 513, 130, VKA_F16, VKA_F16, VKA_F16, false, true, 0},
        {3, 37, 1001, VKA_BF16, VKA_BF16, VKA_BF16, false, false, 5},
        {4, 100, 256, VKA_F32, VKA_F16, VKA_F32, true, false, 3},
        {5, 7, 9, VKA_F32, VKA_BF16, VKA_F32, false, true, 0},
        {67, 129, 333, VKA_F16, VKA_F16, VKA_F32, true, true, 1},
        {64, 64, 64, VKA_F16, VKA_F32, VKA_BF16, false, false, 0},
        {130, 65, 40, VKA_BF16, VKA_BF16, VKA_F32, false, false, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        operands o = make_operands(&shapes[i]);

        project(context, &shapes[i], &o, (uint32_t)(i % 3));
        check(&shapes[i], &o);
        free_operands(&o);
    }
}

/* The weights need three panels, and the time budget cuts the rows in pieces. */
static void panels_and_pieces(void **state)
{
    static const shape shapes[] = {
        {70, 600, 1024, VKA_F32, VKA_F32, VKA_F32, false, true, 0},
        {70, 600, 1020, VKA_F16, VKA_F32, VKA_F32, true, false, 1},
    };
    vka_context *small = open_context("max_range=1MiB", 1);

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        operands o = make_operands(&shapes[i]);

        project(small, &shapes[i], &o, 2);
        check(&shapes[i], &o);
        free_operands(&o);
    }
    vka_context_destroy(&small);
}

/* A result in 16 bits is the F32 result, rounded once. */
static void rounded_results(void **state)
{
    static const shape s = {6, 33, 50, VKA_F32, VKA_F32, VKA_F32, false, false, 0};
    static const vka_dtype types[] = {VKA_F16, VKA_BF16};
    operands o = make_operands(&s);
    const vka_tensor weights = weights_view(&s, &o);
    vka_matrix *matrix = NULL;
    uint16_t got[6 * 33], want[6 * 33];
    vka_error error;

    (void)state;
    project(context, &s, &o, 1);
    expect_ok(vka_matrix_create(&matrix, context, 0, &weights, VKA_DTYPE_DEFAULT, &error), &error);
    for (size_t i = 0; i < 2; i++) {
        vka_projection_params params = {.struct_size = sizeof(params),
                                        .rows = s.rows,
                                        .weights = matrix,
                                        .x = {o.x, VKA_F32, s.rows, s.depth, 0},
                                        .y = {got, types[i], s.rows, s.cols, 0}};
        expect_ok(vka_projection(context, &params, &error), &error);
        vka_convert(want, types[i], o.y, VKA_F32, (size_t)s.rows * s.cols);
        assert_memory_equal(got, want, sizeof(got));
    }
    vka_matrix_destroy(&matrix);
    free_operands(&o);
}

static void refuse_matrix(vka_tensor weights, uint32_t device, vka_dtype stored, const char *text)
{
    vka_matrix *matrix = NULL;
    vka_error error = {0};

    assert_int_equal(vka_matrix_create(&matrix, context, device, &weights, stored, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
    assert_null(matrix);
}

static void refused_matrices(void **state)
{
    static const float data[64];
    vka_error error;

    (void)state;
    refuse_matrix((vka_tensor){data, VKA_F32, 8, 8, 0}, 1, VKA_F32, "device is 1, the context has 1");
    refuse_matrix((vka_tensor){NULL, VKA_F32, 8, 8, 0}, 0, VKA_F32, "no data");
    refuse_matrix((vka_tensor){data, VKA_F32, 0, 8, 0}, 0, VKA_F32, "[0, 8]");
    refuse_matrix((vka_tensor){data, VKA_F32, 8, 8, 7}, 0, VKA_F32, "row stride 7");
    refuse_matrix((vka_tensor){data, VKA_F32, 8, 8, 0}, 0, (vka_dtype)9, "unknown");
    assert_int_equal(vka_matrix_create(NULL, context, 0, NULL, VKA_F32, &error), VKA_ERR_ARGUMENT);
    vka_matrix_destroy(NULL);
}

static void refuse(vka_projection_params params, const char *text)
{
    vka_error error = {0};

    params.struct_size = sizeof(params);
    assert_int_equal(vka_projection(context, &params, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
}

static void refused_calls(void **state)
{
    static const float data[64] = {1};
    float out[64];
    const vka_tensor view = {data, VKA_F32, 8, 8, 0};
    const vka_tensor x = {data, VKA_F32, 2, 8, 0};
    const vka_tensor_out y = {out, VKA_F32, 2, 8, 0};
    vka_buffer *buffer = make_buffer(context, 15, NULL); /* one value short of [2, 8] */
    vka_context *other = open_context(NULL, 0);
    vka_matrix *matrix = NULL;
    vka_error error;

    (void)state;
    expect_ok(vka_matrix_create(&matrix, context, 0, &view, VKA_F32, &error), &error);
    refuse((vka_projection_params){.rows = 2, .x = x, .y = y}, "weights is NULL");
    refuse((vka_projection_params){.weights = matrix, .x = x, .y = y}, "rows is 0");
    refuse((vka_projection_params){.rows = 2, .weights = matrix, .y = y}, "exactly one of x and x_buffer");
    refuse((vka_projection_params){.rows = 2, .weights = matrix, .x = x}, "no result is wanted");
    refuse((vka_projection_params){.rows = 3, .weights = matrix, .x = x, .y = y}, "x is [2, 8]");
    refuse((vka_projection_params){.rows = 2, .weights = matrix, .x = x, .y = {out, VKA_F32, 2, 7, 0}}, "y is [2, 7]");
    refuse((vka_projection_params){.rows = 2, .weights = matrix, .x = x, .y_buffer = buffer, .y_offset = 12},
           "y needs 64 bytes from byte 12");
    refuse((vka_projection_params){.rows = 1, .weights = matrix, .x_buffer = buffer, .x_offset = 2, .y = y},
           "a multiple of 4");
    vka_projection_params params = {.struct_size = sizeof(params), .rows = 2, .weights = matrix, .x = x, .y = y};
    assert_int_equal(vka_projection(other, &params, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "another context"));
    assert_int_equal(vka_projection(NULL, &params, &error), VKA_ERR_ARGUMENT);
    vka_matrix_destroy(&matrix);
    assert_null(matrix);
    vka_buffer_destroy(&buffer);
    vka_context_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_types), cmocka_unit_test(panels_and_pieces), cmocka_unit_test(rounded_results),
        cmocka_unit_test(refused_matrices), cmocka_unit_test(refused_calls),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
