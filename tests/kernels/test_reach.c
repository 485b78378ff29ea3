/* Every row of the table is what the ordinary selection gives somewhere: a row that no device would run is dead weight.
 * Rows that only measure peaks are exempt, since all of them are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "kernels/kernels.h"

static const uint32_t subgroup_sizes[] = {0, 4, 8, 16, 32, 64, 128};
enum { SUBGROUP_SIZES = sizeof(subgroup_sizes) / sizeof(subgroup_sizes[0]) };

/* A device with the capabilities `bits`; `ample`: with generous limits, else with the least there are. */
static vka_caps device_of(uint64_t bits, uint32_t subgroup_size, bool ample)
{
    uint32_t invocations = ample ? 1024 : 128;

    if (subgroup_size != 8)
        bits &= ~VKA_CAP_BIT(VKA_CAP_SUBGROUP8);
    if (subgroup_size != 4)
        bits &= ~VKA_CAP_BIT(VKA_CAP_QUADS);
    return (vka_caps){
        .bits = bits,
        .subgroup_size = subgroup_size,
        .max_invocations = invocations,
        .max_local_size = {invocations, invocations, 64},
        .max_groups = {65535, 65535, 65535},
        .shared_bytes = ample ? 65536 : 16384,
        .storage_buffers = ample ? 32 : 4,
        .push_bytes = ample ? 256 : 128,
        .texel_elements = bits & VKA_CAP_BIT(VKA_CAP_TEXEL) ? 1u << 27 : 0,
        .max_range = 1u << 27,
        .max_buffer = 1u << 30,
        .max_alloc = 1u << 30,
    };
}

static bool is_selected(uint32_t index, const vka_caps *caps)
{
    char reason[256];

    return vka_variant_reason(index, caps, NULL, reason, sizeof(reason));
}

/* Tries all subsets of the capabilities that some row needs. */
static bool is_selected_somewhere(uint32_t index, uint64_t useful)
{
    uint64_t bits = 0;

    do {
        for (int i = 0; i < 2 * SUBGROUP_SIZES; i++) {
            vka_caps caps = device_of(bits, subgroup_sizes[i / 2], i % 2);
            if (is_selected(index, &caps))
                return true;
        }
        bits = (bits - useful) & useful;
    } while (bits != 0);
    return false;
}

static bool measures_a_peak(const vka_variant *row)
{
    return row->kernel == VKA_KERNEL_PEAK_FMA || row->kernel == VKA_KERNEL_PEAK_READ ||
           row->kernel == VKA_KERNEL_PEAK_COPY;
}

static void every_row_is_selected_somewhere(void **state)
{
    uint64_t useful = 0;
    uint32_t missed = 0;

    (void)state;
    for (uint32_t i = 0; i < vka_variant_rows(); i++)
        useful |= vka_variant_row(i)->needs;
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (row->absent || measures_a_peak(row) || is_selected_somewhere(i, useful))
            continue;
        print_error("%s is selected under no set of capabilities\n", row->name);
        missed++;
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_selected_somewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
