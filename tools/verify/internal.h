/* What the checks share. */
#ifndef VKA_VERIFY_INTERNAL_H
#define VKA_VERIFY_INTERNAL_H

#include "verify/verify.h"

#define UNIT 0x1p-24 /* unit roundoff of F32 */

/* Checks one item of a stage into results[0]; the second result is for a second output. false: out of memory. */
typedef bool (*verify_item_fn)(const void *params, size_t item, verify_result results[2]);

/* Runs all items in parallel and merges their results in order, so that the outcome does not depend on threads.
 * `second` may be NULL: then both kinds of results go to `first`. */
vka_status verify_items(size_t items, verify_item_fn check, const void *params, verify_result *first,
                        verify_result *second, vka_error *error);

/* Rounding to nearest even in the number system of `dtype`; overflow gives infinity. */
double verify_round(double value, vka_dtype dtype);
/* Error that storing `value` as `dtype` may add: half a unit in the last place, subnormals included. */
double verify_rounding_error(double value, vka_dtype dtype);
/* `count` stored elements from byte address `data` as doubles. */
void verify_load(double *out, const void *data, vka_dtype dtype, size_t count);

#endif
