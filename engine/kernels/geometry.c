/* How many workgroups a variant needs, and its specialisation constants. Axes that count rows or words are folded over
 * a second axis, as no axis may have more than 65,535 groups. */
#include "kernels/kernels.h"

#include <string.h>

enum { FOLD = 32768 };

static uint32_t divide_up(uint32_t count, uint32_t by)
{
    return count / by + (count % by != 0);
}

static void fold(uint32_t count, uint32_t *inner, uint32_t *outer)
{
    *inner = count < FOLD ? count : FOLD;
    *outer = divide_up(count, FOLD);
}

void vka_groups_gemm(const vka_variant *variant, const gemm_push *push, uint32_t groups[3])
{
    groups[0] = divide_up(push->cols, variant->tile_cols);
    groups[1] = divide_up(push->rows, variant->tile_rows);
    groups[2] = 1;
}

uint64_t vka_gemm_max_cols(const vka_caps *caps)
{
    uint32_t narrowest = UINT32_MAX;

    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        bool projects = row->kernel == VKA_KERNEL_GEMM || row->kernel == VKA_KERNEL_GEMV;
        if (projects && row->tile_cols < narrowest && vka_variant_runs(row, row->kernel, row->dtype, caps))
            narrowest = row->tile_cols;
    }
    return (uint64_t)narrowest * caps->max_groups[0];
}

void vka_groups_epilogue(const vka_variant *variant, const epilogue_push *push, uint32_t groups[3])
{
    groups[0] = divide_up(push->heads, variant->tile_cols);
    fold(push->rows, &groups[1], &groups[2]);
}

void vka_groups_attention(const vka_variant *variant, uint32_t tiles, uint32_t head_records, uint32_t groups[3])
{
    (void)variant; /* tiles and records are already cut to its size */
    groups[0] = tiles;
    groups[1] = head_records;
    groups[2] = 1;
}

void vka_groups_combine(const vka_variant *variant, uint32_t entries, uint32_t heads, uint32_t groups[3])
{
    (void)variant; /* one workgroup per entry and head, whatever its size */
    groups[0] = entries;
    groups[1] = heads;
    groups[2] = 1;
}

void vka_groups_pack(const vka_variant *variant, const pack_push *push, uint32_t groups[3])
{
    uint32_t word_elements = variant->dtype == VKA_F16 ? 2 : 1;
    uint32_t words = push->batch * push->tokens * push->heads * (push->dst_dim / word_elements);
    fold(divide_up(words, variant->local_size), &groups[0], &groups[1]);
    groups[2] = 1;
}

vka_spec vka_spec_attention(const attention_kind *kind)
{
    return (vka_spec){8,
                      {kind->qk_pad, kind->v_pad, kind->v_stride != 0 ? kind->v_stride : kind->v_pad, kind->softcap,
                       kind->alibi, kind->mask, kind->sinks, kind->gate}};
}

vka_spec vka_spec_combine(const attention_kind *kind)
{
    return (vka_spec){2, {kind->sinks, kind->gate}};
}

vka_spec vka_spec_epilogue(const epilogue_kind *kind)
{
    vka_spec spec = {10,
                     {kind->rotary_dim, kind->paged, kind->bias, kind->norm, kind->norm_dim, kind->rotary_offset,
                      kind->interleaved, kind->sigmoid}};

    memcpy(&spec.value[8], &kind->clip, sizeof(kind->clip));
    spec.value[9] = kind->squares;
    return spec;
}

uint32_t vka_texel_operand(vka_kernel kernel, uint32_t k)
{
    bool projection = kernel == VKA_KERNEL_GEMM || kernel == VKA_KERNEL_GEMV;

    return projection ? 1 - k : 2 - k; /* w then x, at 1 and 0; slab then q, at 2 and 1 */
}
