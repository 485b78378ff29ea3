/* Adding partials: every bit against the plain loop, whatever the shape, the type and the strides. */
#include "exchange/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "support/random.h"
#include "support/require.h"

enum { MOST_PARTIALS = 5, GUARD = 0x5a };

/* One sum; partials and output have padding columns. */
typedef struct example {
    size_t rows, cols, count, partial_stride, out_stride;
    vka_dtype dtype;
    float *partials[MOST_PARTIALS];
    float *bias;
    unsigned char *out;
} example;

/* Values of very different size, so that every order of additions gives other bits. */
static float any_value(uint64_t *random)
{
    return ldexpf((float)random_below(random, 1 << 24) - 0x1p23f, (int)random_below(random, 40) - 40);
}

static float *make_partial(const example *e, uint64_t *random)
{
    float *partial = malloc(e->rows * e->partial_stride * sizeof(float));

    for (size_t i = 0; i < e->rows * e->partial_stride; i++)
        partial[i] = i % e->partial_stride < e->cols ? any_value(random) : NAN; /* padding is never read */
    return partial;
}

static void make_example(example *e, uint64_t *random)
{
    for (size_t p = 0; p < e->count; p++)
        e->partials[p] = make_partial(e, random);
    for (size_t i = 0; e->bias != NULL && i < e->cols; i++)
        e->bias[i] = any_value(random);
    e->out = malloc(e->rows * e->out_stride * vka_dtype_size(e->dtype));
    memset(e->out, GUARD, e->rows * e->out_stride * vka_dtype_size(e->dtype));
}

static void run_example(example *e)
{
    const float *partials[MOST_PARTIALS] = {0};

    for (size_t p = 0; p < e->count; p++)
        partials[p] = e->partials[p];
    const exchange_sum_job job = {.partials = partials,
                                  .count = e->count,
                                  .partial_stride = e->partial_stride,
                                  .rows = e->rows,
                                  .cols = e->cols,
                                  .bias = e->bias,
                                  .out = e->out,
                                  .out_dtype = e->dtype,
                                  .out_stride = e->out_stride};

    exchange_sum(&job);
}

/* The bytes of one element: partials in order, then the bias, rounded once. */
static void expect(const example *e, size_t row, size_t col, unsigned char *bytes)
{
    float sum = e->count > 0 ? e->partials[0][row * e->partial_stride + col] : 0.0f;

    for (size_t p = 1; p < e->count; p++)
        sum += e->partials[p][row * e->partial_stride + col];
    if (e->bias != NULL)
        sum += e->bias[col];
    vka_convert(bytes, e->dtype, &sum, VKA_F32, 1);
}

static void check_example(const example *e)
{
    size_t size = vka_dtype_size(e->dtype);

    for (size_t row = 0; row < e->rows; row++) {
        const unsigned char *got = e->out + row * e->out_stride * size;
        unsigned char want[4];
        for (size_t col = 0; col < e->cols; col++) {
            expect(e, row, col, want);
            require(memcmp(got + col * size, want, size) == 0, "row %zu of %zu, column %zu of %zu", row, e->rows, col,
                    e->cols);
        }
        for (size_t i = e->cols * size; i < e->out_stride * size; i++)
            assert_int_equal(got[i], GUARD);
    }
}

static void free_example(example *e)
{
    for (size_t p = 0; p < e->count; p++)
        free(e->partials[p]);
    free(e->bias);
    free(e->out);
}

static void every_shape(void **state)
{
    static const size_t shapes[][2] = {{1, 1},    {3, 7},    {1, 1023},  {2, 1024},
                                       {5, 1025}, {3, 5000}, {700, 200}, {300, 1}};
    uint64_t random = 11;

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (uint32_t kind = 0; kind < 36; kind++) { /* types x bias x number of partials */
            example e = {.rows = shapes[i][0],
                         .cols = shapes[i][1],
                         .count = kind / 6,
                         .dtype = (vka_dtype)(VKA_F32 + kind % 3),
                         .partial_stride = shapes[i][1] + random_below(&random, 9),
                         .out_stride = shapes[i][1] + random_below(&random, 5)};
            e.count = e.count < MOST_PARTIALS ? e.count : MOST_PARTIALS;
            e.bias = kind % 2 != 0 ? malloc(e.cols * sizeof(float)) : NULL;
            make_example(&e, &random);
            run_example(&e);
            check_example(&e);
            free_example(&e);
        }
    }
}

static void nothing_to_add(void **state)
{
    float out[4] = {1, 2, 3, 4};
    const float bias[4] = {1, -2, 0.5f, 8};
    exchange_sum_job job = {.rows = 1, .cols = 4, .out = out, .out_dtype = VKA_F32, .out_stride = 4};

    (void)state;
    exchange_sum(&job);
    assert_memory_equal(out, ((const float[4]){0, 0, 0, 0}), sizeof(out));
    job.bias = bias;
    exchange_sum(&job);
    assert_memory_equal(out, bias, sizeof(out));
    job.rows = 0;
    job.out = NULL;
    exchange_sum(&job);
}

/* What a device got wrong must not disappear. */
static void bad_values_stay(void **state)
{
    const float first[3] = {NAN, INFINITY, INFINITY}, second[3] = {1, 1, -INFINITY};
    const float *const partials[2] = {first, second};
    float out[3];
    const exchange_sum_job job = {partials, 2, 3, 1, 3, NULL, out, VKA_F32, 3};

    (void)state;
    exchange_sum(&job);
    assert_true(isnan(out[0]) && isinf(out[1]) && isnan(out[2]));
}

/* The result may be written over the first partial: the sum that goes back to the devices is handed out again. */
static void in_place(void **state)
{
    float first[2] = {1, 2};
    const float second[2] = {10, 20};
    const float *const partials[2] = {first, second};
    const exchange_sum_job job = {partials, 2, 2, 1, 2, NULL, first, VKA_F32, 2};

    (void)state;
    exchange_sum(&job);
    assert_true(first[0] == 11 && first[1] == 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(nothing_to_add),
        cmocka_unit_test(bad_values_stay),
        cmocka_unit_test(in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
