/* All kernels on one device: every row of the table that it can run, against float64. One process, since some software
 * devices compile everything anew in each. */
#include "kernels/attention_case.h"
#include "kernels/gpu_epilogue.h"
#include "kernels/gpu_pack.h"
#include "kernels/gpu_projection.h"
#include "kernels/gpu_tests.h"
#include "support/require.h"

static int open_device(void **state)
{
    static test_rig device;
    rig_open(&device, NULL);
    *state = &device;
    return 0;
}

static int close_device(void **state)
{
    rig_close(*state);
    return 0;
}

/* One case of every kernel as selected for the device, the cache of type `cache`. */
static void check_all(test_rig *device, vka_dtype cache)
{
    static const attention_case attention = {.qk_dim = 64,
                                             .v_dim = 64,
                                             .kv_heads = 2,
                                             .group = 3,
                                             .page_size = 16,
                                             .rows = 35,
                                             .keys = 90,
                                             .position = 55,
                                             .causal = true,
                                             .splits = 2};
    static const epilogue_shape epilogue = {
        .rows = 7, .heads = 3, .head_dim = 20, .rotary_dim = 12, .bias = true, .norm = true, .paged = true};
    for (vka_dtype dtype = VKA_F32; dtype <= VKA_BF16; dtype++) {
        check_projection(device, rig_variant(device, VKA_KERNEL_GEMM, dtype), (projection_shape){9, 70, 72});
        check_projection(device, rig_variant(device, VKA_KERNEL_GEMV, dtype), (projection_shape){2, 70, 72});
    }
    check_epilogue(device, rig_variant(device, VKA_KERNEL_EPILOGUE, cache), &epilogue);
    check_packing(device, rig_variant(device, VKA_KERNEL_PACK, cache));
    check_attention(device, rig_variant(device, VKA_KERNEL_PREFILL, cache), &attention);
    check_attention(device, rig_variant(device, VKA_KERNEL_DECODE, cache), &attention);
}

void floor_is_enough(void **state)
{
    (void)state;
    test_rig device;
    rig_open(&device, "floor");
    const vka_caps *caps = gpu_device_caps(device.device);
    assert_true(caps->max_invocations <= 128 && caps->shared_bytes <= 16384 && caps->storage_buffers <= 4);
    assert_int_equal(rig_variant(&device, VKA_KERNEL_GEMM, VKA_F16)->needs, 0);
    check_all(&device, VKA_F16);
    rig_close(&device);
}

void small_tensors_are_seen_as_texels(void **state)
{
    (void)state;
    test_rig device;
    rig_open(&device, "max_alloc=1MiB");
    assert_int_equal(rig_variant(&device, VKA_KERNEL_GEMM, VKA_F16)->texel_bindings, 2);
    check_all(&device, VKA_F32);
    rig_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_right),
        cmocka_unit_test(projections_do_not_depend_on_place),
        cmocka_unit_test(projections_of_blocks_are_those_of_each),

        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(epilogues_are_right),
        cmocka_unit_test(pages_of_other_slabs_are_left_alone),
        cmocka_unit_test(packing_is_exact),
        cmocka_unit_test(halves_are_rounded_to_nearest_even),
        cmocka_unit_test(prefill_is_right),
        cmocka_unit_test(decoding_is_right),
        cmocka_unit_test(rows_do_not_depend_on_their_tile),
        cmocka_unit_test(unseen_values_do_not_matter),
        cmocka_unit_test(floor_is_enough),
        cmocka_unit_test(small_tensors_are_seen_as_texels),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
