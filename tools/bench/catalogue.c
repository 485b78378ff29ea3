/* The built-in cases, and the filter. Sizes are those of Llama 3.1 8B: its attention and its QKV projection. */
#include "bench/catalogue.h"

#include <string.h>

#include "base/error.h"
#include "base/near.h"

static const char *const builtin[] = {
    "peak.fma.f32",
    "peak.read",
    "peak.copy",
    "memcpy.16MiB",
    "exchange.sum.2dev.16MiB",
    "gemv.m1.k4096.n6144.f32",
    "gemv.m1.k4096.n6144.f16",
    "gemv.m1.k4096.n6144.bf16",
    "gemm.m512.k4096.n6144.f32",
    "gemm.m512.k4096.n6144.f16",
    "gemm.m512.k4096.n6144.bf16",
    "attention.decode.h32.kv8.d128.q1.k4096.f16",
    "attention.decode.h32.kv8.d128.q1.k16384.f16",
    "attention.prefill.h32.kv8.d128.q512.k512.causal.f16",
    "attention.prefill.h32.kv8.d128.q1024.k1024.causal.f16",
    "layer.decode.llama3.1-8b.tp1",
    "layer.decode.llama3.1-8b.tp8",
    "layer.prefill.llama3.1-8b.tp1.m128",
    "layer.first.llama3.1-8b.tp1",
};

enum { BUILTIN = sizeof(builtin) / sizeof(builtin[0]) };

const char *bench_builtin(size_t index)
{
    return index < BUILTIN ? builtin[index] : NULL;
}

typedef struct selection {
    bench_case *cases;
    size_t count;
} selection;

static vka_status add(selection *to, const char *name, vka_error *error)
{
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->cases[i].name, name) == 0)
            return VKA_OK;
    if (to->count == BENCH_MAX_CASES)
        return vka_fail(error, VKA_ERR_ARGUMENT, "--filter selects more than %d cases", (int)BENCH_MAX_CASES);
    if (!bench_case_parse(name, &to->cases[to->count]))
        return vka_fail(error, VKA_ERR_ARGUMENT, "'%s' is no name of a case; 'vkattn bench --list' shows some", name);
    to->count++;
    return VKA_OK;
}

static vka_status fail_unknown(const char *glob, vka_error *error)
{
    for (size_t i = 0; i < BUILTIN; i++)
        if (vka_near(glob, builtin[i]))
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "--filter '%s' selects no case and is no name of one. Did you mean %s?", glob, builtin[i]);
    return vka_fail(
        error, VKA_ERR_ARGUMENT,
        "--filter '%s' selects no case and is no name of one; 'vkattn bench --list' shows the built-in ones", glob);
}

static vka_status add_matches(selection *to, const char *glob, vka_error *error)
{
    bench_case parsed;
    bool found = false;
    vka_status status = VKA_OK;

    for (size_t i = 0; status == VKA_OK && i < BUILTIN; i++) {
        if (!bench_glob(glob, builtin[i]))
            continue;
        found = true;
        status = add(to, builtin[i], error);
    }
    if (status != VKA_OK || found)
        return status;
    return bench_case_parse(glob, &parsed) ? add(to, glob, error) : fail_unknown(glob, error);
}

vka_status bench_select(const char *filter, bench_case cases[BENCH_MAX_CASES], size_t *count, vka_error *error)
{
    selection chosen = {cases, 0};
    vka_status status = VKA_OK;
    char glob[BENCH_NAME];

    if (!filter)
        filter = "*";
    do {
        size_t length = strcspn(filter, ",");

        if (length == 0 || length >= sizeof(glob))
            return vka_fail(error, VKA_ERR_ARGUMENT, "--filter has an entry of %zu characters; expected 1 to %zu",
                            length, sizeof(glob) - 1);
        memcpy(glob, filter, length);
        glob[length] = '\0';
        status = add_matches(&chosen, glob, error);
        filter += length;
    } while (status == VKA_OK && *filter++ == ',');
    if (status == VKA_OK)
        *count = chosen.count;
    return status;
}
