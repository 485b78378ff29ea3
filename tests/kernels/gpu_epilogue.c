/* The epilogue against the float64 reference: to float rows and into a paged cache of both types. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu_epilogue.h"
#include "kernels/gpu_tests.h"
#include "layout/shard.h"
#include "support/require.h"
#include "verify/verify.h"

enum { GAP = 4, SLAB = 3, OTHER_SLAB = 1, PAGE = 5, FIRST_TOKEN = 2 };
static const double theta = 500000;
static const double eps = 1e-5;

typedef struct epilogue {
    epilogue_shape shape;
    epilogue_push push;
    epilogue_kind kind;
    vka_dtype target; /* type of the destination */
    rig_buffer parameters, constants, source, destination;
    float *raw, *bias, *norm; /* dense, for the reference */
    int32_t *position;
    vka_layer_desc desc; /* what the reference is told */
} epilogue;

static float *element_at(const epilogue *e, uint32_t row, uint32_t head, uint32_t i)
{
    return &e->source.f[e->push.src_offset + row * e->push.src_stride + head * e->push.head_pad + i];
}

/* Element of the destination: rows, or tokens in pages that lie in descending order. */
static size_t target_at(const epilogue *e, uint32_t row, uint32_t head, uint32_t i)
{
    const epilogue_push *p = &e->push;
    if (!e->kind.paged)
        return p->dst_offset + (size_t)row * p->dst_stride + head * p->dst_head_stride + i;
    const uint32_t *record = &e->parameters.u[p->record_offset + row * p->record_words];
    return (size_t)record[1] * p->page_stride + p->dst_offset + (head * PAGE + record[2]) * p->head_pad + i;
}

static void put_record(epilogue *e, uint32_t row, uint32_t slab)
{
    uint32_t token = row + FIRST_TOKEN;
    uint32_t last_page = (e->shape.rows - 1 + FIRST_TOKEN) / PAGE;
    uint32_t *record = &e->parameters.u[e->push.record_offset + row * e->push.record_words];
    float *own = (float *)(record + EPILOGUE_ROW_WORDS);
    const epilogue_shape *s = &e->shape;
    float *partner = own + EPILOGUE_ANGLES(s->rotary_offset, s->rotary_dim);
    uint32_t half = s->rotary_dim / 2;
    record[0] = slab;
    record[1] = last_page - token / PAGE + 1;
    record[2] = token % PAGE;
    e->position[row] = (int32_t)(1000 * row + 3);
    for (uint32_t i = 0; i < half; i++) {
        double angle = e->position[row] * pow(theta, -2.0 * i / s->rotary_dim);
        uint32_t first = s->rotary_offset % 4 + (s->interleaved ? 2 * i : i);
        uint32_t second = first + (s->interleaved ? 1 : half);
        own[first] = own[second] = (float)cos(angle);
        partner[second] = (float)sin(angle);
        partner[first] = -partner[second];
    }
}

static void make_source(epilogue *e, test_rig *rig)
{
    const epilogue_shape *s = &e->shape;
    uint32_t width = s->heads * s->head_dim;
    e->raw = noise_array(3, (size_t)s->rows * width);
    e->bias = noise_array(4, width);
    e->norm = noise_array(5, s->head_dim);
    e->source = rig_buffer_new(rig, e->push.src_offset + (size_t)s->rows * e->push.src_stride + RIG_EDGE);
    e->constants = rig_buffer_new(rig, e->push.norm_offset + e->push.head_pad + RIG_EDGE);
    memset(&e->constants.f[e->push.bias_offset], 0, (size_t)(s->heads + 1) * e->push.head_pad * sizeof(float));
    for (uint32_t h = 0; h < s->heads; h++) {
        for (uint32_t i = 0; i < s->head_dim; i++) {
            e->constants.f[e->push.bias_offset + h * e->push.head_pad + i] = e->bias[h * s->head_dim + i];
            for (uint32_t r = 0; r < s->rows; r++)
                *element_at(e, r, h, i) = e->raw[r * width + h * s->head_dim + i];
        }
    }
    memcpy(&e->constants.f[e->push.norm_offset], e->norm, s->head_dim * sizeof *e->norm);
}

static void make_target(epilogue *e, test_rig *rig)
{
    const epilogue_push *p = &e->push;
    size_t pages = (e->shape.rows - 1 + FIRST_TOKEN) / PAGE + 3;
    size_t elements = p->dst_offset + (e->kind.paged ? pages * p->page_stride : (size_t)p->rows * p->dst_stride);
    uint32_t per_word = e->target == VKA_F32 ? 1 : 2;
    e->destination = rig_buffer_new(rig, elements / per_word + RIG_EDGE);
    for (uint32_t r = 0; r < p->rows; r++) {
        if (e->kind.paged && e->parameters.u[p->record_offset + r * p->record_words] != p->slab)
            continue;
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t i = 0; i < p->head_pad; i++)
                e->destination.written[target_at(e, r, h, i) / per_word] = true;
    }
}

static void epilogue_make(epilogue *e, test_rig *rig, vka_dtype dtype, const epilogue_shape *s,
                          uint32_t other_slab_every)
{
    uint32_t pad = vka_pad8(s->head_dim);
    e->shape = *s;
    e->target = s->paged ? dtype : VKA_F32;
    e->kind = (epilogue_kind){.rotary_dim = s->rotary_dim,
                              .paged = s->paged,
                              .bias = s->bias,
                              .norm = s->norm,
                              .norm_dim = s->norm_dim,
                              .rotary_offset = s->rotary_offset,
                              .interleaved = s->interleaved,
                              .sigmoid = s->sigmoid,
                              .clip = s->clip};
    e->desc = (vka_layer_desc){.rope_type = s->rotary_dim > 0 ? VKA_ROPE_DEFAULT : VKA_ROPE_NONE,
                               .rope_pairing = s->interleaved ? VKA_ROPE_INTERLEAVED : VKA_ROPE_HALF_SPLIT,
                               .rotary_dim = s->rotary_dim,
                               .rotary_offset = s->rotary_offset,
                               .rope_theta = theta,
                               .clip_qkv = (double)s->clip,
                               .norm_eps = eps};
    e->push = (epilogue_push){.rows = s->rows,
                              .heads = s->heads,
                              .head_dim = s->head_dim,
                              .head_pad = pad,
                              .src_offset = RIG_EDGE,
                              .src_stride = s->heads * pad + GAP,
                              .bias_offset = RIG_EDGE,
                              .norm_offset = RIG_EDGE + s->heads * pad,
                              .norm_eps = (float)eps,
                              .record_offset = RIG_EDGE,
                              .record_words = EPILOGUE_ROW_WORDS + 2 * EPILOGUE_ANGLES(s->rotary_offset, s->rotary_dim),
                              .dst_offset = (uint32_t)rig_edge(e->target),
                              .dst_stride = s->heads * (pad + GAP),
                              .dst_head_stride = pad + GAP,
                              .slab = SLAB,
                              .page_stride = s->heads * PAGE * pad + 8,
                              .page_size = PAGE};
    e->position = new_array(s->rows, sizeof *e->position);
    e->parameters = rig_buffer_new(rig, 2 * RIG_EDGE + (size_t)s->rows * e->push.record_words);
    for (uint32_t r = 0; r < s->rows; r++)
        put_record(e, r, other_slab_every && r % other_slab_every == 0 ? OTHER_SLAB : SLAB);
    make_source(e, rig);
    make_target(e, rig);
}

static void epilogue_free(epilogue *e)
{
    rig_buffer_free(&e->parameters);
    rig_buffer_free(&e->constants);
    rig_buffer_free(&e->source);
    rig_buffer_free(&e->destination);
    free(e->raw);
    free(e->bias);
    free(e->norm);
    free(e->position);
}

static void epilogue_run(epilogue *e, test_rig *rig, const vka_variant *variant)
{
    rig_job job = {.variant = variant,
                   .buffers = {&e->parameters, &e->constants, &e->source, &e->destination},
                   .push = &e->push,
                   .spec = vka_spec_epilogue(&e->kind)};
    vka_groups_epilogue(variant, &e->push, job.groups);
    rig_run(rig, &job);
    rig_check_written(&e->destination, variant->name);
}

/* The result without padding, which must be zeros. */
static float *collect(const epilogue *e)
{
    const epilogue_shape *s = &e->shape;
    float *got = new_array((size_t)s->rows * s->heads * s->head_dim, sizeof *got);
    for (uint32_t r = 0; r < s->rows; r++) {
        for (uint32_t h = 0; h < s->heads; h++) {
            for (uint32_t i = 0; i < s->head_dim; i++)
                got[(r * s->heads + h) * s->head_dim + i] = rig_get(&e->destination, e->target, target_at(e, r, h, i));
            for (uint32_t i = s->head_dim; i < e->push.head_pad; i++)
                assert_true(rig_get(&e->destination, e->target, target_at(e, r, h, i)) == 0);
        }
    }
    return got;
}

void check_epilogue(test_rig *rig, const vka_variant *variant, const epilogue_shape *s)
{
    epilogue e;
    vka_error error;
    epilogue_make(&e, rig, variant->dtype, s, 0);
    epilogue_run(&e, rig, variant);
    float *got = collect(&e);
    size_t width = (size_t)s->heads * s->head_dim;
    verify_epilogue_params params = {.rows = s->rows,
                                     .heads = s->heads,
                                     .head_dim = s->head_dim,
                                     .raw = e.raw,
                                     .raw_stride = width,
                                     .bias = s->bias ? e.bias : NULL,
                                     .norm = s->norm ? e.norm : NULL,
                                     .norm_dim = s->norm_dim,
                                     .desc = &e.desc,
                                     .turned = true,
                                     .sigmoid = s->sigmoid,
                                     .position = e.position,
                                     .got = got,
                                     .got_stride = width,
                                     .got_dtype = e.target};
    verify_result result = {0};
    require(verify_epilogue(&params, &result, &error) == VKA_OK, "%s", error.message);
    require(verify_passed(&result), "%s head_dim %u: error/bound %g at %zu, got %g, want %g", variant->name,
            s->head_dim, result.max_ratio, result.index, result.got, result.want);
    if (s->rotary_dim > 2) {
        verify_result bug = {0};
        params.mutant = VERIFY_WRONG_ROPE_PAIRING;
        assert_int_equal(verify_epilogue(&params, &bug, &error), VKA_OK);
        assert_false(verify_passed(&bug));
    }
    free(got);
    epilogue_free(&e);
}

static void check_shapes(test_rig *rig, const vka_variant *variant)
{
    static const epilogue_shape shapes[] = {
        {.rows = 1, .heads = 1, .head_dim = 1},
        {.rows = 3, .heads = 2, .head_dim = 1, .bias = true, .norm = true, .paged = true},
        {.rows = 7, .heads = 9, .head_dim = 5, .rotary_dim = 4, .bias = true, .norm = true},
        {.rows = 7, .heads = 9, .head_dim = 5, .rotary_dim = 2, .norm = true, .paged = true},
        {.rows = 1, .heads = 8, .head_dim = 8, .rotary_dim = 8, .paged = true},
        {.rows = 33, .heads = 3, .head_dim = 64, .rotary_dim = 64, .bias = true},
        {.rows = 33, .heads = 3, .head_dim = 64, .rotary_dim = 64, .bias = true, .paged = true},
        {.rows = 12, .heads = 17, .head_dim = 80, .rotary_dim = 40, .bias = true, .norm = true, .paged = true},
        {.rows = 6, .heads = 5, .head_dim = 96, .rotary_dim = 96, .norm = true},
        {.rows = 6, .heads = 2, .head_dim = 128, .rotary_dim = 128, .norm = true, .paged = true},
        {.rows = 6, .heads = 2, .head_dim = 128, .norm = true, .paged = true},
        {.rows = 4, .heads = 2, .head_dim = 192, .rotary_dim = 64, .bias = true, .norm = true, .paged = true},
        {.rows = 3, .heads = 2, .head_dim = 576, .rotary_dim = 576, .bias = true, .norm = true, .paged = true},
        {.rows = 3, .heads = 1, .head_dim = 576, .rotary_dim = 64},
        {.rows = 5, .heads = 3, .head_dim = 80, .rotary_dim = 20, .bias = true, .norm = true, .paged = true},
        {.rows = 5, .heads = 3, .head_dim = 33, .rotary_dim = 14, .bias = true, .norm = true},
        {.rows = 5,
         .heads = 3,
         .head_dim = 64,
         .rotary_dim = 64,
         .bias = true,
         .norm = true,
         .paged = true,
         .interleaved = true},
        {.rows = 5,
         .heads = 3,
         .head_dim = 33,
         .rotary_dim = 14,
         .bias = true,
         .norm = true,
         .rotary_offset = 3,
         .interleaved = true},
        {.rows = 5,
         .heads = 3,
         .head_dim = 40,
         .rotary_dim = 22,
         .norm = true,
         .paged = true,
         .rotary_offset = 10,
         .interleaved = true},
        {.rows = 5, .heads = 3, .head_dim = 40, .rotary_dim = 22, .bias = true, .rotary_offset = 10},
        {.rows = 5,
         .heads = 2,
         .head_dim = 33,
         .rotary_dim = 16,
         .bias = true,
         .norm = true,
         .paged = true,
         .rotary_offset = 17},
        {.rows = 4,
         .heads = 1,
         .head_dim = 576,
         .rotary_dim = 64,
         .norm = true,
         .paged = true,
         .rotary_offset = 512,
         .interleaved = true,
         .norm_dim = 512},
        {.rows = 4, .heads = 2, .head_dim = 192, .rotary_dim = 64, .bias = true, .norm = true, .rotary_offset = 128},
        {.rows = 5,
         .heads = 3,
         .head_dim = 33,
         .rotary_dim = 10,
         .bias = true,
         .norm = true,
         .paged = true,
         .rotary_offset = 7,
         .norm_dim = 13},
        {.rows = 5, .heads = 9, .head_dim = 20, .rotary_dim = 12, .bias = true, .paged = true, .clip = 0.5f},
        {.rows = 5, .heads = 9, .head_dim = 20, .bias = true, .norm = true, .clip = 0.5f},
        {.rows = 7, .heads = 9, .head_dim = 20, .bias = true, .sigmoid = true},
        {.rows = 3, .heads = 2, .head_dim = 64, .sigmoid = true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_epilogue(rig, variant, &shapes[i]);
}

void epilogues_are_right(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_EPILOGUE, check_shapes);
}

/* Rows whose page lies in another slab are not written; those that are have the bits they have anyway. */
static void check_slabs(test_rig *rig, const vka_variant *variant)
{
    static const epilogue_shape shape = {
        .rows = 20, .heads = 3, .head_dim = 20, .rotary_dim = 12, .bias = true, .norm = true, .paged = true};
    epilogue all;
    epilogue some;
    epilogue_make(&all, rig, variant->dtype, &shape, 0);
    epilogue_make(&some, rig, variant->dtype, &shape, 3);
    epilogue_run(&all, rig, variant);
    epilogue_run(&some, rig, variant);
    size_t kept = 0;
    for (size_t i = 0; i < some.destination.words; i++) {
        if (!some.destination.written[i])
            continue;
        assert_int_equal(some.destination.u[i], all.destination.u[i]);
        kept++;
    }
    assert_true(kept > 0);
    epilogue_free(&all);
    epilogue_free(&some);
}

void pages_of_other_slabs_are_left_alone(void **state)
{
    rig_each_variant(*state, VKA_KERNEL_EPILOGUE, check_slabs);
}
