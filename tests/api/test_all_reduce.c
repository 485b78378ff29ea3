/* vka_all_reduce over one or two real devices: in place and staged, against float64 and bit by bit against the order of
 * addition, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/require.h"
#include "support/validation.h"
#include "verify/verify.h"
#include "vkattn/exchange.h"
#include "vkattn/model.h"

enum { EXTRA = 3 }; /* values behind those that are added */

static vka_context *context;
static uint32_t devices;

static vka_context *open_context(const char *pretend)
{
    support_devices found;
    vka_context *opened = NULL;
    vka_error error;

    support_find_devices(&found);
    vka_context_params params = {
        .struct_size = sizeof(params), .devices = found.grammar, .pretend = pretend, .no_pipeline_cache = 1};
    support_validate(&params);
    require(vka_context_create(&opened, &params, &error) == VKA_OK, "%s", error.message);
    devices = vka_context_device_count(opened);
    return opened;
}

static int open_group(void **state)
{
    (void)state;
    context = open_context(NULL);
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    vka_context_destroy(&context);
    return 0;
}

typedef struct partials {
    size_t count;
    float *values[SUPPORT_MAX_DEVICES]; /* [count + EXTRA] */
    vka_buffer *buffers[SUPPORT_MAX_DEVICES];
} partials;

static partials make_partials(vka_context *on, size_t count)
{
    partials p = {.count = count};
    size_t all = count + EXTRA;
    vka_error error;

    for (uint32_t d = 0; d < devices; d++) {
        p.values[d] = malloc(all * sizeof(float));
        assert_non_null(p.values[d]);
        vka_random_fill(p.values[d], all, 1, 11, d, 0);
        require(vka_buffer_create(&p.buffers[d], on, d, all * sizeof(float), &error) == VKA_OK, "%s", error.message);
        require(vka_buffer_write(p.buffers[d], 0, p.values[d], all * sizeof(float), &error) == VKA_OK, "%s",
                error.message);
    }
    return p;
}

static void free_partials(partials *p)
{
    for (uint32_t d = 0; d < devices; d++) {
        free(p->values[d]);
        vka_buffer_destroy(&p->buffers[d]);
    }
}

/* All devices hold the sum, added in the order of devices, and what stands behind it is as it was. */
static void check(const partials *p)
{
    size_t all = p->count + EXTRA;
    float *got = malloc(all * sizeof(float));
    verify_result result = {0};
    vka_error error;

    assert_non_null(got);
    for (uint32_t d = 0; d < devices; d++) {
        const verify_sum_params params = {.partials = devices,
                                          .count = p->count,
                                          .partial = (const float *const *)p->values,
                                          .got = got,
                                          .got_dtype = VKA_F32};

        require(vka_buffer_read(p->buffers[d], 0, got, all * sizeof(float), &error) == VKA_OK, "%s", error.message);
        require(verify_sum(&params, &result, &error) == VKA_OK, "%s", error.message);
        for (size_t i = 0; i < p->count; i++) {
            float sum = p->values[0][i];
            for (uint32_t other = 1; other < devices; other++)
                sum += p->values[other][i];
            assert_memory_equal(&sum, &got[i], sizeof(sum));
        }
        assert_memory_equal(got + p->count, p->values[d] + p->count, EXTRA * sizeof(float));
    }
    assert_true(verify_passed(&result));
    assert_int_equal(result.elements, devices * p->count);
    free(got);
}

static vka_exchange_timing reduce(vka_context *on, const partials *p, uint32_t staged)
{
    vka_exchange_timing timing = {.wall_ms = -1};
    const vka_all_reduce_params params = {
        .struct_size = sizeof(params), .buffers = p->buffers, .count = p->count, .staged = staged, .timing = &timing};
    vka_error error;

    require(vka_all_reduce(on, &params, &error) == VKA_OK, "%s", error.message);
    assert_true(timing.wall_ms >= timing.download_ms + timing.add_ms + timing.upload_ms);
    return timing;
}

static void sums(void **state)
{
    static const size_t counts[] = {1, 2047, 2048, 2049, 100003};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (uint32_t staged = 0; staged < 2; staged++) {
            partials p = make_partials(context, counts[i]);
            vka_exchange_timing timing = reduce(context, &p, staged);

            assert_int_equal(timing.in_place, !staged); /* both software devices have host-cached memory only */
            if (!staged)
                assert_true(timing.download_ms == 0 && timing.upload_ms == 0);
            check(&p);
            free_partials(&p);
        }
    }
}

/* Without host-cached device memory there is nothing to add in place. */
static void not_host_cached(void **state)
{
    vka_context *pretending = open_context("no=hostcached");
    partials p = make_partials(pretending, 5001);

    (void)state;
    assert_int_equal(reduce(pretending, &p, 0).in_place, 0);
    check(&p);
    free_partials(&p);
    vka_context_destroy(&pretending);
}

static void refuse(vka_buffer *const *buffers, uint64_t count, const char *text)
{
    const vka_all_reduce_params params = {.struct_size = sizeof(params), .buffers = buffers, .count = count};
    vka_error error = {0};

    assert_int_equal(vka_all_reduce(context, &params, &error), VKA_ERR_ARGUMENT);
    require(strstr(error.message, text), "no '%s' in: %s", text, error.message);
}

static void refused(void **state)
{
    partials p = make_partials(context, 10);
    vka_buffer *missing[SUPPORT_MAX_DEVICES] = {NULL};
    const vka_all_reduce_params params = {.struct_size = sizeof(params), .buffers = p.buffers, .count = 10};
    vka_error error;

    (void)state;
    refuse(NULL, 10, "buffers is NULL");
    refuse(p.buffers, 0, "count 0");
    refuse(p.buffers, 10 + EXTRA + 1, "14 values need more");
    refuse(p.buffers, UINT64_MAX, "count 18446744073709551615");
    refuse(missing, 10, "buffers[0] is not a buffer of device 0");
    if (devices > 1) {
        vka_buffer *swapped[2] = {p.buffers[1], p.buffers[0]};
        refuse(swapped, 10, "buffers[0] is not a buffer of device 0");
    }
    assert_int_equal(vka_all_reduce(NULL, &params, &error), VKA_ERR_ARGUMENT);
    free_partials(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(not_host_cached),
                                       cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, open_group, close_group);
}
