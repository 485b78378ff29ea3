/* Ranks to devices: balanced blocks, or the "DEVICE*COUNT,..." grammar, read once to check it and once to apply it. */
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "vkattn/layout.h"

/* One "DEVICE*COUNT" of a specification, already checked for syntax and size. */
typedef struct place_term {
    uint32_t device;
    uint32_t count;
} place_term;

/* Reads digits at *at and moves past them; false where there are none or the number exceeds 32 bits. */
static bool read_number(const char **at, uint32_t *number)
{
    uint64_t value = 0;
    const char *start = *at;

    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++)
        value = value * 10 + (uint64_t)(**at - '0');
    *number = (uint32_t)value;
    return *at != start && value <= UINT32_MAX;
}

/* Reads one term and the comma behind it, if any. */
static bool read_term(const char **at, place_term *term)
{
    term->count = 1;
    if (!read_number(at, &term->device))
        return false;
    if (**at == '*') {
        (*at)++;
        if (!read_number(at, &term->count))
            return false;
    }
    if (**at == '\0')
        return true;
    return *(*at)++ == ',' && **at != '\0';
}

static vka_status check_spec(const char *spec, uint32_t rank_count, uint32_t device_count, vka_error *error)
{
    const char *at = spec;
    uint64_t total = 0;

    do {
        size_t offset = (size_t)(at - spec);
        place_term term;

        if (!read_term(&at, &term))
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "placement \"%s\" cannot be read at character %zu (\"%.16s\"); expected "
                            "DEVICE*COUNT,DEVICE*COUNT,... such as 0*3,1*1",
                            spec, offset + 1, spec + offset);
        if (term.device >= device_count)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "placement \"%s\" names device %u; there are %u devices, so expected 0 .. %u", spec,
                            term.device, device_count, device_count - 1);
        if (term.count == 0)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "placement \"%s\" gives device %u no ranks at character %zu; leave the device out", spec,
                            term.device, offset + 1);
        total += term.count; /* one term takes a byte of text at least: no overflow */
    } while (*at != '\0');
    if (total != rank_count)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "placement \"%s\" places %llu ranks; the grid has %u, and the counts must add up to it", spec,
                        (unsigned long long)total, rank_count);
    return VKA_OK;
}

static void apply_spec(vka_rank *ranks, const char *spec)
{
    const char *at = spec;
    uint32_t next = 0;

    do {
        place_term term;

        read_term(&at, &term);
        for (uint32_t i = 0; i < term.count; i++)
            ranks[next++].device = term.device;
    } while (*at != '\0');
}

static void place_balanced(vka_rank *ranks, uint32_t rank_count, uint32_t device_count)
{
    uint32_t least = rank_count / device_count;
    uint32_t larger = rank_count % device_count; /* devices with one rank more */
    uint32_t next = 0;

    for (uint32_t device = 0; next < rank_count; device++)
        for (uint32_t i = 0; i < least + (device < larger); i++)
            ranks[next++].device = device;
}

vka_status vka_place(vka_rank *ranks, uint32_t rank_count, uint32_t device_count, const char *spec, vka_error *error)
{
    vka_status status;

    if (!ranks || rank_count == 0 || device_count == 0)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%u ranks%s over %u devices; expected at least one of each",
                        rank_count, ranks ? "" : " (NULL)", device_count);
    if (!spec) {
        place_balanced(ranks, rank_count, device_count);
        return VKA_OK;
    }
    status = check_spec(spec, rank_count, device_count, error);
    if (status == VKA_OK)
        apply_spec(ranks, spec);
    return status;
}
