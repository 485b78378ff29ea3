/* Which cases there are, and which of them are asked for. */
#ifndef VKA_BENCH_CATALOGUE_H
#define VKA_BENCH_CATALOGUE_H

#include <stddef.h>

#include "bench/name.h"

/* The built-in cases by number; NULL past the last. */
const char *bench_builtin(size_t index);

enum { BENCH_MAX_CASES = 256 };

/* The cases that a comma-separated list of globs selects from the built-in ones, in the order of the list, each once;
 * NULL: all. An entry that selects none but follows the grammar of names is a case of its own; one that does neither is
 * VKA_ERR_ARGUMENT. */
vka_status bench_select(const char *filter, bench_case cases[BENCH_MAX_CASES], size_t *count, vka_error *error);

#endif
