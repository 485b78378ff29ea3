/* GEMM and GEMV against the float64 reference. Everything between and around the rows is NaN. */
#include "kernels/gpu_projection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/gpu_tests.h"
#include "support/require.h"
#include "verify/verify.h"

enum { GAP = 8 }; /* NaN between rows of x and w, guards between rows of y */

typedef struct projection {
    rig_buffer x, w, y;
    unsigned char *w_rows; /* the stored weights once more, row after row */
    gemm_push push;
    vka_dtype dtype;
} projection;

/* Rows of noise, `stride` floats apart. */
static void put_rows(rig_buffer *buffer, size_t stride, size_t rows, size_t count)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < count; i++)
            rig_put(buffer, VKA_F32, RIG_EDGE + r * stride + i, noise(1, r * 10000 + i));
}

/* Where gemm_push says that w[j, k] lies. */
static size_t weight_element(const gemm_push *push, size_t j, size_t k)
{
    return ((j / 8 * push->w_stride + push->w_offset + k) / 8 * 8 + j % 8) * 8 + k % 8;
}

static void put_weights(projection *p)
{
    size_t cols = p->push.cols, depth = p->push.depth, size = vka_dtype_size(p->dtype);
    p->w_rows = malloc(cols * depth * size);
    assert_non_null(p->w_rows);
    for (size_t j = 0; j < cols; j++)
        for (size_t k = 0; k < depth; k++) {
            size_t element = weight_element(&p->push, j, k);
            rig_put(&p->w, p->dtype, element, noise(2, j * 10000 + k));
            memcpy(p->w_rows + (j * depth + k) * size, (const unsigned char *)p->w.u + element * size, size);
        }
}

static void projection_make(projection *p, test_rig *rig, vka_dtype dtype, projection_shape shape)
{
    uint32_t y_stride = (shape.cols + GAP + 3) / 4 * 4;
    p->dtype = dtype;
    p->push = (gemm_push){.rows = shape.rows,
                          .cols = shape.cols,
                          .depth = shape.depth,
                          .x_offset = RIG_EDGE,
                          .x_stride = shape.depth + GAP / 2,
                          .w_offset = (uint32_t)rig_edge(dtype) / 8,
                          .w_stride = shape.depth + GAP,
                          .y_offset = RIG_EDGE,
                          .y_stride = y_stride};
    p->x = rig_buffer_new(rig, 2 * RIG_EDGE + (size_t)shape.rows * p->push.x_stride);
    size_t groups = (shape.cols + 7) / 8;
    p->w = rig_buffer_new(rig, 2 * RIG_EDGE + groups * 8 * p->push.w_stride * vka_dtype_size(dtype) / 4);
    p->y = rig_buffer_new(rig, 2 * RIG_EDGE + (size_t)shape.rows * y_stride);
    put_rows(&p->x, p->push.x_stride, shape.rows, shape.depth);
    put_weights(p);
    for (size_t r = 0; r < shape.rows; r++)
        for (size_t c = 0; c < shape.cols; c++)
            p->y.written[RIG_EDGE + r * y_stride + c] = true;
}

static void projection_free(projection *p)
{
    rig_buffer_free(&p->x);
    rig_buffer_free(&p->w);
    rig_buffer_free(&p->y);
    free(p->w_rows);
}

static void projections_run(projection *p, test_rig *rig, const vka_variant *variant, uint32_t products)
{
    rig_job job = {.variant = variant, .buffers = {&p->x, &p->w, &p->y}, .push = &p->push};
    vka_groups_gemm(variant, &p->push, job.groups);
    job.groups[2] = products;
    rig_run(rig, &job);
    rig_check_written(&p->y, variant->name);
}

static void projection_run(projection *p, test_rig *rig, const vka_variant *variant)
{
    projections_run(p, rig, variant, 1);
}

void check_projection(test_rig *rig, const vka_variant *variant, projection_shape shape)
{
    projection p;
    vka_error error;
    verify_result result = {0};
    projection_make(&p, rig, variant->dtype, shape);
    projection_run(&p, rig, variant);
    verify_projection_params params = {
        .rows = shape.rows,
        .cols = shape.cols,
        .depth = shape.depth,
        .x = p.x.f + p.push.x_offset,
        .x_stride = p.push.x_stride,
        .weights = {.data = p.w_rows, .dtype = variant->dtype, .rows = shape.cols, .cols = shape.depth},
        .stored = variant->dtype,
        .y = p.y.f + p.push.y_offset,
        .y_stride = p.push.y_stride,
    };
    require(verify_projection(&params, &result, &error) == VKA_OK, "%s", error.message);
    require(verify_passed(&result), "%s [%u, %u, %u]: error/bound %g at %zu, got %g, want %g", variant->name,
            shape.rows, shape.cols, shape.depth, result.max_ratio, result.index, result.got, result.want);
    projection_free(&p);
}

static void check_shapes(test_rig *rig, const vka_variant *variant)
{
    static const projection_shape shapes[] = {
        {1, 1, 8},    {1, 7, 16},    {1, 65, 72},  {1, 130, 1096}, {2, 8, 8},       {3, 33, 136}, {4, 130, 264},
        {5, 1, 1096}, {7, 8, 56},    {8, 65, 64},  {9, 7, 8},      {16, 130, 24},   {33, 64, 40}, {63, 65, 136},
        {64, 8, 512}, {65, 130, 88}, {70, 1, 104}, {70, 65, 8},    {70, 129, 1096},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_projection(rig, variant, shapes[i]);
}

void projections_are_right(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_GEMM, check_shapes);
    rig_each_variant(*state, VKA_KERNEL_GEMV, check_shapes);
}

/* The last rows and columns of a large product, computed as a small one, must have the same bits. */
static void check_place(test_rig *rig, const vka_variant *variant)
{
    projection large;
    projection_make(&large, rig, variant->dtype, (projection_shape){70, 130, 1096});
    projection_run(&large, rig, variant);
    for (uint32_t rows = 1; rows <= 9; rows += 2) {
        uint32_t row = 70 - rows;
        uint32_t col = 128 - rows / 2 * 8; /* the first of a group */
        uint32_t cols = 130 - col;
        projection part = large;
        part.push.rows = rows;
        part.push.cols = cols;
        part.push.x_offset += row * part.push.x_stride;
        part.push.w_offset += col / 8 * part.push.w_stride;
        part.y = rig_buffer_new(rig, large.y.words);
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < cols; c++)
                part.y.written[RIG_EDGE + r * part.push.y_stride + c] = true;
        projection_run(&part, rig, variant);
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < cols; c++)
                assert_int_equal(part.y.u[RIG_EDGE + r * part.push.y_stride + c],
                                 large.y.u[RIG_EDGE + (row + r) * part.push.y_stride + col + c]);
        rig_buffer_free(&part.y);
    }
    projection_free(&large);
}

void projections_do_not_depend_on_place(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_GEMM, check_place);
    rig_each_variant(*state, VKA_KERNEL_GEMV, check_place);
}

/* Three products of one dispatch, each of weights and columns of its own, must have the bits of three dispatches. */
static void check_blocks_of(test_rig *rig, const vka_variant *variant, uint32_t rows)
{
    enum { BLOCKS = 3, BLOCK = 72, DEPTH = 40 };
    projection all;
    projection_make(&all, rig, variant->dtype, (projection_shape){rows, BLOCKS * BLOCK, BLOCKS * DEPTH});
    all.push.cols = BLOCK;
    all.push.depth = DEPTH;
    projection one = all;
    one.y = rig_buffer_new(rig, all.y.words);
    all.push.x_step = DEPTH;
    all.push.w_step = BLOCK / 8 * all.push.w_stride;
    all.push.y_step = BLOCK;
    projections_run(&all, rig, variant, BLOCKS);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        for (uint32_t i = 0; i < rows * BLOCK; i++)
            one.y.written[one.push.y_offset + i / BLOCK * one.push.y_stride + i % BLOCK] = true;
        projection_run(&one, rig, variant);
        one.push.x_offset += all.push.x_step;
        one.push.w_offset += all.push.w_step;
        one.push.y_offset += all.push.y_step;
    }
    assert_memory_equal(one.y.u, all.y.u, all.y.words * sizeof(uint32_t));
    rig_buffer_free(&one.y);
    projection_free(&all);
}

static void check_blocks(test_rig *rig, const vka_variant *variant)
{
    for (uint32_t rows = 1; rows <= 13; rows += 4)
        check_blocks_of(rig, variant, rows);
}

void projections_of_blocks_are_those_of_each(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_GEMM, check_blocks);
    rig_each_variant(*state, VKA_KERNEL_GEMV, check_blocks);
}

/* Column j has one weight that is not zero: of bits j, in place j % 8. Rows of ones, so column j of y is its value. */
static void check_halves(test_rig *rig, const vka_variant *variant)
{
    enum { HALVES = 65536 };
    if (variant->dtype != VKA_F16)
        return;
    projection p;
    projection_make(&p, rig, VKA_F16, (projection_shape){.rows = 3, .cols = HALVES, .depth = 8});
    for (uint32_t j = 0; j < HALVES; j++)
        for (uint32_t k = 0; k < 8; k++)
            ((uint16_t *)p.w.u)[weight_element(&p.push, j, k)] = k == j % 8 ? (uint16_t)j : 0;
    for (uint32_t r = 0; r < p.push.rows; r++)
        for (uint32_t k = 0; k < 8; k++)
            p.x.f[p.push.x_offset + r * p.push.x_stride + k] = 1.0f;
    projection_run(&p, rig, variant);
    for (uint32_t r = 0; r < p.push.rows; r++)
        for (uint32_t j = 0; j < HALVES; j++) {
            float got = p.y.f[p.push.y_offset + r * p.push.y_stride + j], want = vka_f16_to_f32((uint16_t)j);
            require(got == want || (isnan(got) && isnan(want)), "%s: half %04x is %g, got %g", variant->name, j,
                    (double)want, (double)got);
        }
    projection_free(&p);
}

void every_half_is_exact(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_GEMM, check_halves);
    rig_each_variant(*state, VKA_KERNEL_GEMV, check_halves);
}
