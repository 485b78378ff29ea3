/* Kernel variants: the table, and selection with a reason for every rejected row. Policy only: no Vulkan, no clock. */
#ifndef VKA_KERNELS_KERNELS_H
#define VKA_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/caps.h"
#include "../../shaders/params.h"
#include "vkattn/tensor.h"

/* X(ENUM, "name") */
#define VKA_KERNEL_LIST(X)                                                     \
    X(VKA_KERNEL_GEMM, "gemm")          /* Y = X W^T, many rows */             \
    X(VKA_KERNEL_GEMV, "gemv")          /* Y = X W^T, few rows */              \
    X(VKA_KERNEL_EPILOGUE, "epilogue")  /* bias, QK-norm, RoPE, append */      \
    X(VKA_KERNEL_PREFILL, "prefill")    /* attention, tiles of many rows */    \
    X(VKA_KERNEL_DECODE, "decode")      /* attention, one row, split keys */   \
    X(VKA_KERNEL_COMBINE, "combine")    /* merge of split attention */         \
    X(VKA_KERNEL_PACK, "pack")          /* strided copy with padding */        \
    X(VKA_KERNEL_PEAK_FMA, "peak_fma")   /* what the device can do at best */  \
    X(VKA_KERNEL_PEAK_READ, "peak_read")                                       \
    X(VKA_KERNEL_PEAK_COPY, "peak_copy")

typedef enum vka_kernel {
#define VKA_KERNEL_ENUM(name, text) name,
    VKA_KERNEL_LIST(VKA_KERNEL_ENUM)
#undef VKA_KERNEL_ENUM
    VKA_KERNEL_COUNT
} vka_kernel;

const char *vka_kernel_name(vka_kernel kernel);

/* One row of shaders/variants.inc. */
typedef struct vka_variant {
    const char *name;
    vka_kernel kernel;
    vka_dtype dtype;        /* of weights (gemm, gemv), cache (epilogue, prefill, decode), destination (pack);
                               VKA_DTYPE_DEFAULT: any */
    const uint32_t *spirv;
    size_t spirv_bytes;
    uint64_t needs;         /* capability bits */
    int priority;           /* highest wins among those that can run and whose workgroups fill a subgroup */
    uint32_t local_size;    /* invocations per workgroup */
    uint32_t tile_rows;     /* rows of the result per workgroup: GEMM, GEMV m-tile; PREFILL query rows; else 1 */
    uint32_t tile_cols;     /* GEMM, GEMV: columns of the result per workgroup; EPILOGUE: heads, PREFILL, DECODE: query
                               heads per workgroup; PEAK_FMA: chains; else 1 */
    uint32_t shared_bytes;  /* for the largest head size */
    uint32_t storage_bindings;
    uint32_t texel_bindings; /* after the storage bindings, see vka_texel_operand() */
    uint32_t push_bytes;
    const char *absent;      /* why the row runs nowhere and has no code; NULL: it has */
} vka_variant;

/* Bytes of one texel: four floats, or 16 bytes of 16-bit values. */
#define VKA_TEXEL_BYTES 16u

/* A texel variant sees operands a second time, as uniform texel buffers behind its storage bindings, in this order:
 * GEMM and GEMV: w, x; PREFILL and DECODE: cache slab, q. Float operands are RGBA32F, 16-bit ones RGBA32UI. The k-th
 * texel binding shows the storage binding that this returns. */
uint32_t vka_texel_operand(vka_kernel kernel, uint32_t k);

uint32_t vka_variant_rows(void);
const vka_variant *vka_variant_row(uint32_t index);

/* The variant that runs (kernel, dtype) under `caps`. `forced` is the user's list of names (NULL: none). Fails with
 * VKA_ERR_UNSUPPORTED when nothing can run, VKA_ERR_ARGUMENT when a forced row is unknown or cannot run. */
vka_status vka_variant_select(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps, const char *forced,
                              const vka_variant **out, vka_error *error);

/* The same where tuning chose row `tuned` (NULL: none): it comes after forced names and before priority, and is passed
 * over when it cannot run or does not serve (kernel, dtype). */
vka_status vka_variant_select_tuned(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps, const char *forced,
                                    const vka_variant *tuned, const vka_variant **out, vka_error *error);

/* True when `row` is one of (kernel, dtype); when it is, and the device can run it. */
bool vka_variant_serves(const vka_variant *row, vka_kernel kernel, vka_dtype dtype);
bool vka_variant_runs(const vka_variant *row, vka_kernel kernel, vka_dtype dtype, const vka_caps *caps);

/* Why row `index` is not what selection gives: writes the reason, or "" when it is selected. Returns true if it is. */
bool vka_variant_reason(uint32_t index, const vka_caps *caps, const char *forced, char *reason, size_t size);

/* ---- dispatch geometry: how many workgroups a variant needs ---- */

void vka_groups_gemm(const vka_variant *variant, const gemm_push *push, uint32_t groups[3]); /* GEMM, GEMV: one product */
/* Columns of the result that one dispatch can have, of any GEMM or GEMV that the device can run. */
uint64_t vka_gemm_max_cols(const vka_caps *caps);
void vka_groups_epilogue(const vka_variant *variant, const epilogue_push *push, uint32_t groups[3]);
void vka_groups_attention(const vka_variant *variant, uint32_t tiles, uint32_t head_records, uint32_t groups[3]);
void vka_groups_combine(const vka_variant *variant, uint32_t entries, uint32_t heads, uint32_t groups[3]);
void vka_groups_pack(const vka_variant *variant, const pack_push *push, uint32_t groups[3]);

/* What attention is specialised for: its constants, in this order. COMBINE has the last two. */
typedef struct attention_kind {
    uint32_t qk_pad, v_pad;
    uint32_t v_stride; /* elements between vectors of V in the cache; 0: v_pad */
    uint32_t softcap, alibi, mask; /* what scores go through, if anything: 0 or 1 */
    uint32_t sinks, gate;          /* what becomes of a finished row */
} attention_kind;

/* What an epilogue does: its specialisation constants, in this order. */
typedef struct epilogue_kind {
    uint32_t rotary_dim; /* 0: no RoPE */
    uint32_t paged;      /* into the cache; else to float rows */
    uint32_t bias;
    uint32_t norm;          /* EPILOGUE_NORM_* */
    uint32_t norm_dim;      /* elements of a head that are normed, the first; 0: all */
    uint32_t rotary_offset; /* first element that turns; 0 without RoPE */
    uint32_t interleaved;   /* element 2i turns with 2i + 1; else with that rotary_dim/2 away */
    uint32_t sigmoid;
    float clip;             /* values are clamped to [-clip, clip] after the bias; 0: they are not */
    uint32_t squares;       /* only the sum of squares of each head is stored */
} epilogue_kind;

/* Specialisation constants. */
typedef struct vka_spec {
    uint32_t count;
    uint32_t value[16];
} vka_spec;

vka_spec vka_spec_attention(const attention_kind *kind);
vka_spec vka_spec_combine(const attention_kind *kind);
vka_spec vka_spec_epilogue(const epilogue_kind *kind);

#endif
