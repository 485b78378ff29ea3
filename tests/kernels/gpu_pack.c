/* Packing, and through it the conversion to F16 that the epilogue uses too. */
#include <math.h>

#include "base/half.h"
#include "kernels/gpu_pack.h"
#include "kernels/gpu_tests.h"
#include "support/require.h"

typedef struct pack_shape {
    uint32_t batch, tokens, heads, src_dim, dst_dim;
} pack_shape;

static pack_push push_of(const pack_shape *s, vka_dtype dtype)
{
    /* source [batch, heads, tokens, dim], destination [tokens, batch, heads, dim], both with gaps */
    pack_push p = {.batch = s->batch, .tokens = s->tokens, .heads = s->heads, .src_dim = s->src_dim};
    p.dst_dim = s->dst_dim;
    p.src_offset = RIG_EDGE + 1;
    p.src_length_stride = s->src_dim + 3;
    p.src_head_stride = s->tokens * p.src_length_stride;
    p.src_batch_stride = s->heads * p.src_head_stride + 1;
    p.dst_offset = (uint32_t)rig_edge(dtype) + 2;
    p.dst_head_stride = s->dst_dim + 2;
    p.dst_batch_stride = s->heads * p.dst_head_stride;
    p.dst_length_stride = s->batch * p.dst_batch_stride + 4;
    return p;
}

/* Where vector n of the source and of the destination begins. */
static size_t source_at(const pack_push *p, size_t n)
{
    return p->src_offset + n / p->heads / p->tokens * p->src_batch_stride +
           n / p->heads % p->tokens * p->src_length_stride + n % p->heads * p->src_head_stride;
}

static size_t target_at(const pack_push *p, size_t n)
{
    return p->dst_offset + n / p->heads / p->tokens * p->dst_batch_stride +
           n / p->heads % p->tokens * p->dst_length_stride + n % p->heads * p->dst_head_stride;
}

static void check_shape(test_rig *rig, const vka_variant *variant, const pack_shape *s)
{
    pack_push p = push_of(s, variant->dtype);
    uint32_t per_word = variant->dtype == VKA_F32 ? 1 : 2;
    rig_buffer from = rig_buffer_new(rig, p.src_offset + (size_t)s->batch * p.src_batch_stride + RIG_EDGE);
    rig_buffer to = rig_buffer_new(rig, (p.dst_offset + (size_t)s->tokens * p.dst_length_stride) / per_word + RIG_EDGE);
    size_t vectors = (size_t)s->batch * s->tokens * s->heads;
    for (size_t n = 0; n < vectors; n++) {
        for (size_t i = 0; i < s->src_dim; i++)
            from.f[source_at(&p, n) + i] = noise(6, n * 1000 + i);
        for (size_t i = 0; i < s->dst_dim; i++)
            to.written[(target_at(&p, n) + i) / per_word] = true;
    }
    rig_job job = {.variant = variant, .buffers = {&from, &to}, .push = &p};
    vka_groups_pack(variant, &p, job.groups);
    rig_run(rig, &job);
    rig_check_written(&to, variant->name);
    for (size_t n = 0; n < vectors; n++) {
        for (size_t i = 0; i < s->dst_dim; i++) {
            float want = i < s->src_dim ? rounded(noise(6, n * 1000 + i), variant->dtype) : 0;
            assert_true(rig_get(&to, variant->dtype, target_at(&p, n) + i) == want);
        }
    }
    rig_buffer_free(&from);
    rig_buffer_free(&to);
}

void check_packing(test_rig *rig, const vka_variant *variant)
{
    static const pack_shape shapes[] = {
        {1, 1, 1, 1, 8},    {2, 3, 4, 5, 8},   {3, 17, 2, 64, 64},
        {1, 40, 3, 80, 80}, {2, 5, 3, 24, 16}, {1, 2, 1, 575, 576},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(rig, variant, &shapes[i]);
}

void packing_is_exact(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_PACK, check_packing);
}

/* Every F16 value, what lies half-way to the next one, and the neighbours of both. */
void halves_are_rounded_to_nearest_even(void **state)
{
    test_rig *rig = *state;
    enum { OFFSETS = 6, COUNT = 65536 * OFFSETS };
    static const uint32_t offset[OFFSETS] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff};
    const vka_variant *variant = rig_variant(rig, VKA_KERNEL_PACK, VKA_F16);
    pack_push p = {.batch = 1, .tokens = 1, .heads = 1, .src_dim = COUNT, .dst_dim = COUNT};
    rig_buffer from = rig_buffer_new(rig, COUNT);
    rig_buffer to = rig_buffer_new(rig, COUNT / 2);
    for (uint32_t i = 0; i < COUNT; i++)
        from.u[i] =
            (i / OFFSETS & 0x8000u) << 16 | (((i / OFFSETS & 0x7fffu) << 13) + 0x38000000u + offset[i % OFFSETS]);
    for (uint32_t i = 0; i < COUNT; i += 7) /* subnormals of F16, and below */
        from.f[i] = noise(7, i) * ldexpf(1, -14 - (int)(i % 13));
    for (uint32_t i = 1; i < COUNT; i += 4099) /* too large for F16 */
        from.f[i] = noise(8, i) * ldexpf(1, 16 + (int)(i % 100));
    from.f[8] = INFINITY;
    from.f[9] = -INFINITY;
    from.f[10] = NAN;
    rig_job job = {.variant = variant, .buffers = {&from, &to}, .push = &p};
    vka_groups_pack(variant, &p, job.groups);
    rig_run(rig, &job);
    for (uint32_t i = 0; i < COUNT; i++) {
        float got = rig_get(&to, VKA_F16, i);
        float want = vka_f16_to_f32(vka_f32_to_f16(from.f[i]));
        require(isnan(want) ? isnan(got) : got == want, "%a gave %a, not %a", (double)from.f[i], (double)got,
                (double)want);
    }
    rig_buffer_free(&from);
    rig_buffer_free(&to);
}
