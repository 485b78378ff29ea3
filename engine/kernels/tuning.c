/* See tuning.h. The text of a file is in tuning_file.c. */
#include "kernels/tuning.h"

#include <string.h>

#include "base/text.h"

enum {
    TUNING_GEMV = 1u << VKA_KERNEL_GEMV,
    TUNING_GEMM = 1u << VKA_KERNEL_GEMM,
    TUNING_ATTENTION = 1u << VKA_KERNEL_PREFILL | 1u << VKA_KERNEL_DECODE,
};

static const struct {
    const char *text;
    uint32_t least, most;
    uint32_t kernels;
} classes[TUNING_CLASSES] = {
#define TUNING_CLASS_ROW(name, text, least, most, kernels) [name] = {text, least, most, kernels},
    TUNING_CLASS_LIST(TUNING_CLASS_ROW)
#undef TUNING_CLASS_ROW
};

const char *tuning_class_text(tuning_class shape)
{
    return classes[shape].text;
}

uint32_t tuning_class_least(tuning_class shape)
{
    return classes[shape].least;
}

uint32_t tuning_class_most(tuning_class shape)
{
    return classes[shape].most;
}

bool tuning_has_class(vka_kernel kernel, tuning_class shape)
{
    return (classes[shape].kernels >> kernel & 1u) != 0;
}

/* The class at or after `first` that holds `size`; the last of its kind has no end. */
static tuning_class find_class(tuning_class first, uint32_t size)
{
    tuning_class found = first;

    while (size > classes[found].most)
        found++;
    return found;
}

tuning_class tuning_rows_class(uint32_t rows)
{
    return find_class(TUNING_ROWS_1, rows);
}

tuning_class tuning_head_class(uint32_t qk_pad, uint32_t v_pad)
{
    return find_class(TUNING_HEAD_64, qk_pad > v_pad ? qk_pad : v_pad);
}

const vka_variant *tuning_choice(const tuning_table *table, vka_kernel kernel, vka_dtype dtype, tuning_class shape)
{
    return table->choice[kernel][dtype][shape];
}

void tuning_add(tuning_table *table, const tuning_table *other)
{
    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++)
        for (int dtype = 0; dtype < TUNING_DTYPES; dtype++)
            for (int shape = 0; shape < TUNING_CLASSES; shape++)
                if (other->choice[kernel][dtype][shape])
                    table->choice[kernel][dtype][shape] = other->choice[kernel][dtype][shape];
}

uint32_t tuning_decide(const double *median_ms, uint32_t count, uint32_t standard)
{
    uint32_t best = standard;

    for (uint32_t i = 0; i < count; i++)
        if (median_ms[i] < median_ms[best])
            best = i;
    return median_ms[best] <= TUNING_GAIN * median_ms[standard] ? best : standard;
}

/* What runs (kernel, dtype) of a row for each class of its shapes, and without tuning. */
typedef struct class_choices {
    const vka_variant *chosen[TUNING_CLASSES]; /* NULL: no class of this kernel */
    const vka_variant *standard;
    uint32_t count; /* of classes that the kernel has */
} class_choices;

/* False when nothing can be selected at all. */
static bool choose(const vka_variant *row, const vka_caps *caps, const char *forced, const tuning_table *table,
                   class_choices *out)
{
    memset(out, 0, sizeof(*out));
    if (vka_variant_select(row->kernel, row->dtype, caps, forced, &out->standard, NULL) != VKA_OK)
        return false;
    for (int i = 0; i < TUNING_CLASSES; i++) {
        tuning_class shape = (tuning_class)i;
        if (!tuning_has_class(row->kernel, shape))
            continue;
        out->count++;
        vka_variant_select_tuned(row->kernel, row->dtype, caps, forced,
                                 tuning_choice(table, row->kernel, row->dtype, shape), &out->chosen[shape], NULL);
    }
    return true;
}

static uint32_t count_chosen(const class_choices *choices, const vka_variant *row)
{
    uint32_t count = 0;

    for (int i = 0; i < TUNING_CLASSES; i++)
        count += choices->chosen[i] == row;
    return count;
}

/* " for rows=5-32, rows=33-128": the classes that run `row`. */
static void append_classes(vka_text *out, const class_choices *choices, const vka_variant *row)
{
    const char *lead = " for ";

    for (int i = 0; i < TUNING_CLASSES; i++) {
        if (choices->chosen[i] != row)
            continue;
        vka_append(out, "%s%s", lead, classes[i].text);
        lead = ", ";
    }
}

bool tuning_reason(uint32_t index, const vka_caps *caps, const char *forced, const tuning_table *table, char *reason,
                   size_t size)
{
    const vka_variant *row = vka_variant_row(index);
    bool selected = vka_variant_reason(index, caps, forced, reason, size);
    vka_text out = {reason, size, 0};
    class_choices choices;

    if (!row || !choose(row, caps, forced, table, &choices) || choices.count == 0)
        return selected;
    uint32_t runs = count_chosen(&choices, row);
    if (row != choices.standard) {
        if (runs > 0) {
            vka_append(&out, "tuned: faster than %s on this device", choices.standard->name);
            append_classes(&out, &choices, row);
        }
        return runs > 0;
    }
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *other = vka_variant_row(i);
        if (other == row || count_chosen(&choices, other) == 0)
            continue;
        vka_append(&out, "%s%s was faster on this device", out.used ? "; " : "tuned: ", other->name);
        append_classes(&out, &choices, other);
    }
    return runs > 0;
}
