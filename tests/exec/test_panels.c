/* How many rows of weights a panel has: as buffers and workgroups allow, in whole groups. */
#include "exec/exec_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/matrix.h"
#include "kernels/kernels.h"

static vka_caps caps_of(uint64_t bytes, uint32_t groups)
{
    return (vka_caps){.max_range = bytes,
                      .max_buffer = bytes,
                      .max_alloc = bytes,
                      .max_invocations = 128,
                      .max_local_size = {128, 128, 64},
                      .max_groups = {groups, groups, groups},
                      .shared_bytes = 16384,
                      .storage_buffers = 4,
                      .push_bytes = 128};
}

static void buffers_limit_panels(void **state)
{
    vka_caps caps = caps_of(1 << 20, 65535);

    (void)state;
    assert_int_equal(matrix_panel_rows(&caps, 1024, VKA_F32), 256);
    assert_int_equal(matrix_panel_rows(&caps, 1024, VKA_F16), 512);
    assert_int_equal(matrix_panel_rows(&caps, 1000, VKA_F32), 256); /* 262 in whole groups */
    assert_int_equal(matrix_panel_rows(&caps, 1 << 20, VKA_F32), 0);
}

/* Every projection that the device can run computes all rows of a panel in one dispatch. */
static void check_groups(const vka_caps *caps)
{
    uint32_t rows = matrix_panel_rows(caps, 8, VKA_F32), most = 0;

    assert_int_equal(rows % MATRIX_GROUP, 0);
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        const gemm_push push = {.rows = 1, .cols = rows};
        uint32_t groups[3];
        if ((row->kernel != VKA_KERNEL_GEMM && row->kernel != VKA_KERNEL_GEMV) ||
            !vka_variant_runs(row, row->kernel, row->dtype, caps))
            continue;
        vka_groups_gemm(row, &push, groups);
        assert_in_range(groups[0], 1, 65535);
        most = groups[0] > most ? groups[0] : most;
    }
    assert_int_equal(most, 65535); /* no more panels than that asks for */
}

static void workgroups_limit_panels(void **state)
{
    vka_caps caps = caps_of(1ull << 34, 65535);

    (void)state;
    check_groups(&caps);
    caps.texel_elements = UINT32_MAX;
    caps.bits = UINT64_MAX;
    check_groups(&caps);
}

int run_panels_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_limit_panels),
        cmocka_unit_test(workgroups_limit_panels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
