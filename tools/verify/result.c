/* Results: one element, merging, and the parallel loop that all checks use. */
#include "verify/internal.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/threads.h"

bool verify_passed(const verify_result *result)
{
    return result->elements > 0 && result->max_ratio <= 1;
}

static double error_over_bound(double got, double want, double bound)
{
    if (got == want)
        return 0;
    double ratio = fabs(got - want) / bound;
    return isfinite(got) && isfinite(want) && !isnan(ratio) ? ratio : INFINITY;
}

void verify_element(verify_result *result, size_t index, double got, double want, double bound)
{
    double ratio = error_over_bound(got, want, bound);
    if (!isfinite(got) && got != want)
        result->nonfinite++;
    if (result->elements++ == 0 || ratio > result->max_ratio) {
        result->max_ratio = ratio;
        result->index = index;
        result->got = got;
        result->want = want;
        result->bound = bound;
    }
}

void verify_merge(verify_result *result, const verify_result *other)
{
    size_t elements = result->elements + other->elements;
    size_t nonfinite = result->nonfinite + other->nonfinite;
    if (result->elements == 0 || (other->elements > 0 && other->max_ratio > result->max_ratio))
        *result = *other;
    result->elements = elements;
    result->nonfinite = nonfinite;
}

double verify_nmse(size_t count, const float *got, const double *want)
{
    double error = 0;
    double power = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)got[i] - want[i];
        error += difference * difference;
        power += want[i] * want[i];
    }
    return error == 0 ? 0 : error / power;
}

const char *verify_mutant_name(verify_mutant mutant)
{
    static const char *const names[] = {
        [VERIFY_CORRECT] = "none",
        [VERIFY_WRONG_SCALE] = "wrong scale",
        [VERIFY_DROPPED_KEY] = "dropped key",
        [VERIFY_MASK_OFF_BY_ONE] = "mask off by one",
        [VERIFY_WRONG_KV_HEAD] = "wrong KV head",
        [VERIFY_WRONG_ROPE_PAIRING] = "wrong RoPE pairing",
        [VERIFY_PARTIAL_TWICE] = "partial counted twice",
    };
    return (unsigned)mutant < VERIFY_MUTANT_COUNT ? names[mutant] : "unknown";
}

typedef struct item_outcome {
    verify_result results[2];
    bool done;
} item_outcome;

typedef struct item_loop {
    verify_item_fn check;
    const void *params;
    item_outcome *outcomes;
} item_loop;

static void run_items(void *user, size_t begin, size_t end)
{
    const item_loop *loop = user;
    for (size_t i = begin; i < end; i++)
        loop->outcomes[i].done = loop->check(loop->params, i, loop->outcomes[i].results);
}

vka_status verify_items(size_t items, verify_item_fn check, const void *params, verify_result *first,
                        verify_result *second, vka_error *error)
{
    item_outcome *outcomes = vka_alloc(NULL, items, sizeof *outcomes);
    if (!outcomes)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "verify: no memory for the results of %zu items", items);
    item_loop loop = {check, params, outcomes};
    vka_parallel_for(items, 1, run_items, &loop);

    vka_status status = VKA_OK;
    for (size_t i = 0; i < items; i++) {
        if (!outcomes[i].done)
            status = VKA_ERR_HOST_MEMORY;
        verify_merge(first, &outcomes[i].results[0]);
        verify_merge(second ? second : first, &outcomes[i].results[1]);
    }
    vka_free(NULL, outcomes);
    return status == VKA_OK ? VKA_OK : vka_fail(error, status, "verify: no memory for the scores of a row");
}
