/* Selection of kernel variants: every row can be had, every refusal names its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

/* Exactly what design allows every device to have. */
static const vka_caps floor_caps = {
    .max_invocations = 128,
    .max_local_size = {128, 128, 64},
    .max_groups = {65535, 65535, 65535},
    .shared_bytes = 16384,
    .storage_buffers = 4,
    .push_bytes = 128,
    .max_range = 1u << 27,
    .max_buffer = 1u << 30,
    .max_alloc = 1u << 30,
};

static vka_caps rich_caps(void)
{
    vka_caps caps = floor_caps;
    caps.bits = UINT64_MAX;
    caps.max_invocations = 1024;
    caps.max_local_size[0] = 1024;
    caps.shared_bytes = 65536;
    caps.storage_buffers = 32;
    caps.push_bytes = 256;
    caps.texel_elements = UINT32_MAX;
    return caps;
}

static void floor_serves_all(void **state)
{
    (void)state;
    static const vka_dtype weights[] = {VKA_F32, VKA_F16, VKA_BF16};
    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++) {
        bool weighs = kernel == VKA_KERNEL_GEMM || kernel == VKA_KERNEL_GEMV;
        for (int i = 0; i < (weighs ? 3 : 2); i++) {
            const vka_variant *row = NULL;
            assert_int_equal(vka_variant_select((vka_kernel)kernel, weights[i], &floor_caps, NULL, &row, NULL), VKA_OK);
            assert_int_equal(row->kernel, kernel);
            assert_int_equal(row->needs, 0);
            assert_int_equal(row->texel_bindings, 0);
        }
    }
}

static void every_row_can_be_forced(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        const vka_variant *chosen = NULL;
        char reason[160];
        if (row->absent)
            continue;
        assert_int_equal(vka_variant_select(row->kernel, row->dtype, &caps, row->name, &chosen, NULL), VKA_OK);
        assert_ptr_equal(chosen, row);
        assert_true(vka_variant_reason(i, &caps, row->name, reason, sizeof reason));
        assert_string_equal(reason, "");
        assert_true(row->spirv_bytes > 20 && row->spirv[0] == 0x07230203u);
        assert_true(row->push_bytes <= 128);
    }
    assert_null(vka_variant_row(vka_variant_rows()));
}

static void one_row_is_selected_per_kernel_and_type(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        int selected = 0;
        for (uint32_t j = 0; j < vka_variant_rows(); j++) {
            const vka_variant *other = vka_variant_row(j);
            char reason[160];
            if (other->kernel != row->kernel || other->dtype != row->dtype)
                continue;
            bool chosen = vka_variant_reason(j, &caps, NULL, reason, sizeof reason);
            assert_int_equal(chosen, reason[0] == '\0');
            selected += chosen;
        }
        assert_int_equal(selected, 1);
    }
}

static void expect_reason(const vka_caps *caps, const char *name, const char *forced, const char *expected)
{
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        char reason[160];
        if (strcmp(vka_variant_row(i)->name, name) != 0)
            continue;
        assert_false(vka_variant_reason(i, caps, forced, reason, sizeof reason));
        assert_string_equal(reason, expected);
        return;
    }
    fail_msg("no row %s", name);
}

static void limits_are_named(void **state)
{
    (void)state;
    vka_caps caps = floor_caps;
    caps.max_invocations = 16;
    expect_reason(&caps, "gemm_f32_floor", NULL, "needs workgroup invocations 64, the device has 16");
    caps = floor_caps;
    caps.max_local_size[0] = 16;
    expect_reason(&caps, "gemm_f32_floor", NULL, "needs workgroup size x 64, the device has 16");
    caps = floor_caps;
    caps.shared_bytes = 1024;
    expect_reason(&caps, "prefill_f16_floor", NULL, "needs shared memory bytes 9856, the device has 1024");
    caps = floor_caps;
    caps.storage_buffers = 3;
    expect_reason(&caps, "decode_f16_floor", NULL, "needs storage buffers 4, the device has 3");
    caps = floor_caps;
    caps.push_bytes = 32;
    expect_reason(&caps, "gemm_f32_floor", NULL, "needs push constant bytes 48, the device has 32");
}

static void workgroups_fill_subgroups_where_some_row_can(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    const vka_variant *row = NULL;
    caps.subgroup_size = 32;
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "gemm_f16_floor");
    expect_reason(&caps, "gemm_f16_texel", NULL, "its workgroups of 8 do not fill a subgroup of 32");
    caps.subgroup_size = 128; /* no row fills it: priority decides again */
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "gemm_f16_lanes");
}

static void texel_views_are_preferred_where_they_fit(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    const vka_variant *row = NULL;
    caps.bits &= ~VKA_CAP_BIT(VKA_CAP_SUBGROUP8);
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "gemm_f16_texel");
    assert_int_equal(row->texel_bindings, 2);
    expect_reason(&caps, "gemm_f16_floor", NULL, "gemm_f16_texel has a higher priority");
    expect_reason(&caps, "gemm_f16_texel", "gemm_f16_floor", "gemm_f16_floor is forced");
    expect_reason(&caps, "gemm_f16_texel", "nonsense", "the list of forced variants cannot be met");

    caps.bits &= ~VKA_CAP_BIT(VKA_CAP_TEXEL);
    expect_reason(&caps, "gemm_f16_texel", NULL, "needs capability texel, which the device lacks");
    caps = rich_caps();
    caps.texel_elements = 65536; /* SwiftShader's; a tensor may have 2^27 bytes */
    expect_reason(&caps, "gemm_f16_texel", NULL,
                  "needs texel views of any tensor, elements 8388608, the device has 65536");
    caps.max_alloc = 65536 * VKA_TEXEL_BYTES;
    assert_int_equal(vka_variant_select(VKA_KERNEL_DECODE, VKA_F32, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "decode_f32_lanes");
    caps.bits &= ~VKA_CAP_BIT(VKA_CAP_SUBGROUP8);
    assert_int_equal(vka_variant_select(VKA_KERNEL_DECODE, VKA_F32, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "decode_f32_texel");
    expect_reason(&caps, "decode_f32_lanes", NULL, "needs capability subgroup8, which the device lacks");

    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(vka_texel_operand(VKA_KERNEL_GEMM, k), 1 - k);
        assert_int_equal(vka_texel_operand(VKA_KERNEL_PREFILL, k), 2 - k);
    }
}

static void quads_come_between_the_floor_and_texel_views(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    const vka_variant *row = NULL;
    caps.subgroup_size = 4;
    caps.bits &= ~VKA_CAP_BIT(VKA_CAP_SUBGROUP8);
    expect_reason(&caps, "gemm_f16_quad", NULL, "gemm_f16_texel has a higher priority");
    caps.texel_elements = 65536;
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "gemm_f16_quad");
    caps.bits &= ~VKA_CAP_BIT(VKA_CAP_QUADS);
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &caps, NULL, &row, NULL), VKA_OK);
    assert_string_equal(row->name, "gemm_f16_floor");
}

/* Listed, so that a device that could use it is told why it does not run; even when it is forced. */
static void absent_rows_say_why(void **state)
{
    (void)state;
    vka_caps caps = rich_caps();
    uint32_t absent = 0;
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i), *chosen = NULL;
        vka_error error;
        if (!row->absent)
            continue;
        expect_reason(&caps, row->name, NULL, row->absent);
        assert_int_equal(vka_variant_select(row->kernel, row->dtype, &caps, row->name, &chosen, &error),
                         VKA_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, row->absent));
        absent++;
    }
    assert_int_equal(absent, 1); /* gemm_f16_coopmat */
}

static void nothing_runs(void **state)
{
    (void)state;
    const vka_variant *row = NULL;
    vka_error error;
    vka_caps caps = floor_caps;
    caps.storage_buffers = 3;
    assert_int_equal(vka_variant_select(VKA_KERNEL_DECODE, VKA_F16, &caps, NULL, &row, &error), VKA_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "decode_f16_floor needs storage buffers 4, the device has 3."));
    assert_int_equal(vka_variant_select(VKA_KERNEL_DECODE, VKA_BF16, &floor_caps, NULL, &row, &error),
                     VKA_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "decode"));
    assert_non_null(strstr(error.message, "BF16"));
    assert_null(row);
}

static void forced_names_are_checked(void **state)
{
    (void)state;
    const vka_variant *row = NULL;
    vka_error error;
    /* an unknown name is refused by every kernel, and the valid ones are listed */
    assert_int_equal(
        vka_variant_select(VKA_KERNEL_PACK, VKA_F32, &floor_caps, "gemm_f32_floor, nonsense", &row, &error),
        VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "\"nonsense\""));
    for (uint32_t i = 0; i < vka_variant_rows(); i++)
        assert_non_null(strstr(error.message, vka_variant_row(i)->name));
    assert_int_equal(vka_variant_select(VKA_KERNEL_PACK, VKA_F32, &floor_caps, "pack_f32_floo", &row, &error),
                     VKA_ERR_ARGUMENT);
    assert_int_equal(
        vka_variant_select(VKA_KERNEL_GEMM, VKA_F32, &floor_caps, "gemm_f32_floor,gemm_f32_texel", &row, &error),
        VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "both gemm_f32_floor and gemm_f32_texel are forced"));

    vka_caps caps = floor_caps;
    caps.push_bytes = 32;
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F32, &caps, "gemm_f32_floor", &row, &error),
                     VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "gemm_f32_floor is forced, but it needs push constant bytes 48"));
    assert_null(row);

    /* names of other kernels and types, blanks and empty names do not matter */
    assert_int_equal(
        vka_variant_select(VKA_KERNEL_PACK, VKA_F32, &floor_caps, " gemm_f32_floor,, pack_f16_floor,", &row, &error),
        VKA_OK);
    assert_string_equal(row->name, "pack_f32_floor");
}

static void geometry_covers_everything(void **state)
{
    (void)state;
    const vka_variant *row = NULL;
    uint32_t groups[3];
    assert_int_equal(vka_variant_select(VKA_KERNEL_GEMM, VKA_F16, &floor_caps, NULL, &row, NULL), VKA_OK);
    gemm_push gemm = {.rows = row->tile_rows + 1, .cols = 2 * row->tile_cols};
    vka_groups_gemm(row, &gemm, groups);
    assert_true(groups[0] == 2 && groups[1] == 2 && groups[2] == 1);

    assert_int_equal(vka_variant_select(VKA_KERNEL_EPILOGUE, VKA_F16, &floor_caps, NULL, &row, NULL), VKA_OK);
    epilogue_push epilogue = {.rows = 100000, .heads = row->tile_cols + 1};
    vka_groups_epilogue(row, &epilogue, groups);
    assert_int_equal(groups[0], 2);
    assert_true(groups[1] <= 65535 && groups[1] * groups[2] >= 100000);

    assert_int_equal(vka_variant_select(VKA_KERNEL_PACK, VKA_F16, &floor_caps, NULL, &row, NULL), VKA_OK);
    pack_push pack = {.batch = 3, .tokens = 100000, .heads = 7, .dst_dim = 8};
    vka_groups_pack(row, &pack, groups);
    assert_true(groups[0] <= 65535 && groups[1] <= 65535 && groups[2] == 1);
    assert_true((uint64_t)groups[0] * groups[1] * row->local_size >= 3ull * 100000 * 7 * 4);
}

static void sizes_and_kinds_become_constants(void **state)
{
    (void)state;
    const epilogue_kind kind = {.rotary_dim = 64, .paged = true, .norm = true, .rotary_offset = 12, .clip = -2};
    const attention_kind plain = {.qk_pad = 192, .v_pad = 128}, latent = {.qk_pad = 576, .v_pad = 512, .v_stride = 576};
    const vka_spec heads = vka_spec_attention(&plain), epilogue = vka_spec_epilogue(&kind);
    assert_int_equal(heads.count, 8);
    assert_true(heads.value[0] == 192 && heads.value[1] == 128 && heads.value[2] == 128);
    assert_int_equal(vka_spec_attention(&latent).value[2], 576);
    const attention_kind all = {.softcap = 1, .alibi = 2, .mask = 3, .sinks = 4, .gate = 5};
    const vka_spec options = vka_spec_attention(&all), combine = vka_spec_combine(&all);
    for (uint32_t i = 3; i < 8; i++)
        assert_int_equal(options.value[i], i - 2);
    assert_true(combine.count == 2 && combine.value[0] == 4 && combine.value[1] == 5);
    assert_int_equal(epilogue.count, 10);
    assert_true(epilogue.value[0] == 64 && epilogue.value[1] == 1 && epilogue.value[2] == 0 && epilogue.value[3] == 1);
    assert_true(epilogue.value[4] == 0 && epilogue.value[5] == 12 && epilogue.value[8] == 0xc0000000u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floor_serves_all),
        cmocka_unit_test(every_row_can_be_forced),
        cmocka_unit_test(one_row_is_selected_per_kernel_and_type),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(workgroups_fill_subgroups_where_some_row_can),
        cmocka_unit_test(texel_views_are_preferred_where_they_fit),
        cmocka_unit_test(quads_come_between_the_floor_and_texel_views),
        cmocka_unit_test(absent_rows_say_why),
        cmocka_unit_test(nothing_runs),
        cmocka_unit_test(forced_names_are_checked),
        cmocka_unit_test(geometry_covers_everything),
        cmocka_unit_test(sizes_and_kinds_become_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
