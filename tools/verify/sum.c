/* Check of a sum of partials. */
#include "verify/internal.h"

#include <math.h>

#include "base/error.h"

enum { PIECE = 4096 };

static bool check_piece(const void *params, size_t item, verify_result results[2])
{
    const verify_sum_params *p = params;
    size_t end = item * PIECE + PIECE < p->count ? item * PIECE + PIECE : p->count;
    for (size_t i = item * PIECE; i < end; i++) {
        double want = 0;
        double magnitude = 0;
        for (size_t n = 0; n < p->partials; n++) {
            want += (double)p->partial[n][i];
            magnitude += fabs((double)p->partial[n][i]);
        }
        if (p->mutant == VERIFY_PARTIAL_TWICE)
            want += (double)p->partial[p->partials - 1][i];
        double bound = (double)(p->partials - 1) * UNIT * magnitude * (1 + 0x1p-40); /* its own rounding */
        if (p->got_dtype != VKA_F32)
            bound += verify_rounding_error(fabs(want) + bound, p->got_dtype);
        verify_element(&results[0], i, (double)p->got[i], want, bound);
    }
    return true;
}

vka_status verify_sum(const verify_sum_params *params, verify_result *result, vka_error *error)
{
    if (params->partials < 1)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: a sum of no partials");
    return verify_items((params->count + PIECE - 1) / PIECE, check_piece, params, result, NULL, error);
}
