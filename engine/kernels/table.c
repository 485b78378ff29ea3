/* The table of variants: shaders/variants.inc joined with the SPIR-V that the build made of it. */
#include "kernels/kernels.h"

#include <assert.h>

#include "spirv.h"

static_assert(sizeof(epilogue_row) == 4 * EPILOGUE_ROW_WORDS, "record and its word count differ");
static_assert(sizeof(attention_tile) == 4 * ATTENTION_TILE_WORDS, "record and its word count differ");
static_assert(sizeof(attention_heads) == 4 * ATTENTION_HEADS_WORDS, "record and its word count differ");
static_assert(sizeof(combine_row) == 4 * COMBINE_ROW_WORDS, "record and its word count differ");

/* What all variants of a kernel share: shaders/params.h. */
enum {
    PUSH_GEMM = sizeof(gemm_push),
    PUSH_GEMV = sizeof(gemm_push),
    PUSH_EPILOGUE = sizeof(epilogue_push),
    PUSH_PREFILL = sizeof(attention_push),
    PUSH_DECODE = sizeof(attention_push),
    PUSH_COMBINE = sizeof(combine_push),
    PUSH_PACK = sizeof(pack_push),
    PUSH_PEAK_FMA = sizeof(peak_push),
    PUSH_PEAK_READ = sizeof(peak_push),
    PUSH_PEAK_COPY = sizeof(peak_push),

    BINDINGS_GEMM = 3,
    BINDINGS_GEMV = 3,
    BINDINGS_EPILOGUE = 4,
    BINDINGS_PREFILL = 4,
    BINDINGS_DECODE = 4,
    BINDINGS_COMBINE = 4,
    BINDINGS_PACK = 2,
    BINDINGS_PEAK_FMA = 1,
    BINDINGS_PEAK_READ = 2,
    BINDINGS_PEAK_COPY = 2,
};

#define VKA_ANY VKA_DTYPE_DEFAULT

#if VKA_GLSLC_COOPMAT
#define VKA_WHY_NO_COOPMAT "is not written yet: it wants a device to be tested on"
#else
#define VKA_WHY_NO_COOPMAT "is not built: glslc lacks GL_KHR_cooperative_matrix"
#endif

/* A workgroup of 8 that is one subgroup, and texel views. */
#define VKA_NEEDS_LANES8                                                                                               \
    (VKA_CAP_BIT(VKA_CAP_SUBGROUP_ADD) | VKA_CAP_BIT(VKA_CAP_SUBGROUP8) | VKA_CAP_BIT(VKA_CAP_TEXEL))

static const vka_variant variants[] = {
#define VKA_VARIANT(NAME, KERNEL, DTYPE, SHADER, LOCAL, ROWS, COLS, SHARED, TEXEL, NEEDS, PRIORITY)                    \
    {                                                                                                                  \
        .name = #NAME,                                                                                                 \
        .kernel = VKA_KERNEL_##KERNEL,                                                                                 \
        .dtype = VKA_##DTYPE,                                                                                          \
        .spirv = spirv_##NAME,                                                                                         \
        .spirv_bytes = sizeof spirv_##NAME,                                                                            \
        .needs = (NEEDS),                                                                                              \
        .priority = (PRIORITY),                                                                                        \
        .local_size = (LOCAL),                                                                                         \
        .tile_rows = (ROWS),                                                                                           \
        .tile_cols = (COLS),                                                                                           \
        .shared_bytes = (SHARED),                                                                                      \
        .storage_bindings = BINDINGS_##KERNEL,                                                                         \
        .texel_bindings = (TEXEL),                                                                                     \
        .push_bytes = PUSH_##KERNEL,                                                                                   \
    },
#define VKA_ABSENT(NAME, KERNEL, DTYPE, NEEDS, WHY)                                                                    \
    {.name = #NAME, .kernel = VKA_KERNEL_##KERNEL, .dtype = VKA_##DTYPE, .needs = (NEEDS), .absent = (WHY)},
#include "../../shaders/variants.inc"
#undef VKA_VARIANT
#undef VKA_ABSENT
};

const char *vka_kernel_name(vka_kernel kernel)
{
    static const char *const names[] = {
#define VKA_KERNEL_TEXT(name, text) [name] = text,
        VKA_KERNEL_LIST(VKA_KERNEL_TEXT)
#undef VKA_KERNEL_TEXT
    };
    return (unsigned)kernel < VKA_KERNEL_COUNT ? names[kernel] : "unknown";
}

uint32_t vka_variant_rows(void)
{
    return (uint32_t)(sizeof variants / sizeof variants[0]);
}

const vka_variant *vka_variant_row(uint32_t index)
{
    return index < vka_variant_rows() ? &variants[index] : NULL;
}
