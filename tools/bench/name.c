/* The grammar is a table of patterns; in a pattern # is a number, @ an element type, $ a size in bytes and * a preset,
 * whose name may contain dots. */
#include "bench/name.h"

#include <stddef.h>
#include <string.h>

enum { MAX_FIELDS = 5, MAX_DECODE_ROWS = 3 };

#define FIELD(member) offsetof(bench_case, member)

typedef struct name_pattern {
    bench_kind kind;
    const char *text;
    size_t fields[MAX_FIELDS]; /* what the #s of the text set, in their order */
} name_pattern;

#define ATTENTION                                                                                                      \
    {                                                                                                                  \
        FIELD(heads), FIELD(kv_heads), FIELD(head_dim), FIELD(rows), FIELD(keys)                                       \
    }
#define PROJECTION                                                                                                     \
    {                                                                                                                  \
        FIELD(rows), FIELD(depth), FIELD(cols)                                                                         \
    }

static const name_pattern patterns[] = {
    {BENCH_ATTENTION_PREFILL, "attention.prefill.h#.kv#.d#.q#.k#.@", ATTENTION},
    {BENCH_ATTENTION_PREFILL, "attention.prefill.h#.kv#.d#.q#.k#.causal.@", ATTENTION},
    {BENCH_ATTENTION_DECODE, "attention.decode.h#.kv#.d#.q#.k#.@", ATTENTION},
    {BENCH_GEMM, "gemm.m#.k#.n#.@", PROJECTION},
    {BENCH_GEMV, "gemv.m#.k#.n#.@", PROJECTION},
    {BENCH_LAYER_DECODE, "layer.decode.*.tp#.k#", {FIELD(tp), FIELD(keys)}},
    {BENCH_LAYER_DECODE, "layer.decode.*.tp#", {FIELD(tp)}},
    {BENCH_LAYER_PREFILL, "layer.prefill.*.tp#.m#", {FIELD(tp), FIELD(rows)}},
    {BENCH_LAYER_FIRST, "layer.first.*.tp#", {FIELD(tp)}},
    {BENCH_EXCHANGE, "exchange.sum.#dev.$", {FIELD(devices)}},
    {BENCH_MEMCPY, "memcpy.$", {0}},
};

/* Decimal, 1 .. 2^31 - 1, no leading zero; returns what follows, or NULL. */
static const char *read_number(const char *text, uint32_t *number)
{
    uint64_t value = 0;

    if (*text == '0')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > INT32_MAX)
            return NULL;
    }
    *number = (uint32_t)value;
    return value > 0 ? text : NULL;
}

static const char *read_dtype(const char *text, vka_dtype *dtype)
{
    static const struct {
        const char *name;
        vka_dtype dtype;
    } names[] = {{"f32", VKA_F32}, {"f16", VKA_F16}, {"bf16", VKA_BF16}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *dtype = names[i].dtype;
            return text + strlen(text);
        }
    }
    return NULL;
}

static const char *read_size(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    uint32_t number = 0;

    text = read_number(text, &number);
    for (size_t i = 0; text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) == 0) {
            *bytes = (uint64_t)number << units[i].shift;
            return text + strlen(text);
        }
    }
    return NULL;
}

static bool match(const char *text, const char *name, const size_t *fields, bench_case *out);

/* Tries every name that ends before a dot. */
static bool match_preset(const char *text, const char *name, const size_t *fields, bench_case *out)
{
    for (size_t length = 1; length < sizeof(out->preset) && name[length - 1] != '\0'; length++) {
        if (name[length] != '.' || !match(text, name + length, fields, out))
            continue;
        memcpy(out->preset, name, length);
        out->preset[length] = '\0';
        return true;
    }
    return false;
}

static bool match(const char *text, const char *name, const size_t *fields, bench_case *out)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '#':
            name = read_number(name, (uint32_t *)(void *)((char *)out + *fields++));
            break;
        case '@':
            name = read_dtype(name, &out->dtype);
            break;
        case '$':
            name = read_size(name, &out->bytes);
            break;
        case '*':
            return match_preset(text + 1, name, fields, out);
        default:
            name = *name == *text ? name + 1 : NULL;
        }
        if (!name)
            return false;
    }
    return *name == '\0';
}

static bool parse_peak(const char *name, bench_case *out)
{
    out->kind = BENCH_PEAK;
    if (strncmp(name, "peak.", 5) != 0)
        return false;
    for (int kind = 0; kind < VKA_PEAK_COUNT; kind++) {
        out->peak = (vka_peak_kind)kind;
        if (strcmp(name + 5, vka_peak_name(out->peak)) == 0)
            return true;
    }
    return false;
}

/* Fills in what the name leaves open, and refuses numbers that no device could make sense of. */
static bool settle(bench_case *out)
{
    switch (out->kind) {
    case BENCH_ATTENTION_PREFILL:
        return out->heads % out->kv_heads == 0 && out->dtype != VKA_BF16;
    case BENCH_ATTENTION_DECODE:
        return out->heads % out->kv_heads == 0 && out->dtype != VKA_BF16 && out->rows <= MAX_DECODE_ROWS;
    case BENCH_LAYER_DECODE:
        out->rows = 1;
        out->keys = out->keys ? out->keys : BENCH_DEFAULT_KEYS;
        return true;
    case BENCH_LAYER_FIRST:
        out->rows = 1;
        return true;
    default:
        return true;
    }
}

bool bench_case_parse(const char *name, bench_case *out)
{
    size_t length = strlen(name);

    if (length >= sizeof(out->name))
        return false;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        *out = (bench_case){.kind = patterns[i].kind};
        if (!match(patterns[i].text, name, patterns[i].fields, out))
            continue;
        memcpy(out->name, name, length + 1);
        out->causal = strstr(patterns[i].text, ".causal.") != NULL;
        return settle(out);
    }
    *out = (bench_case){.name = ""};
    memcpy(out->name, name, length + 1);
    return parse_peak(name, out);
}

bool bench_glob(const char *pattern, const char *name)
{
    const char *star = NULL, *resume = NULL;

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
