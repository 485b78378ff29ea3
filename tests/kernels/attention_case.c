/* Buffers of a case: call parameters, Q rows, a cache slab with the pages in descending order between foreign ones, and
 * the output, all with strides wider than their content. */
#include "kernels/attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention_data.h"
#include "layout/shard.h"
#include "support/require.h"
#include "verify/verify.h"

enum { FIRST_ROW = 2, SHORT_TILE = 3 };

typedef struct problem {
    const attention_case *c;
    const vka_variant *variant;
    uint32_t first, rows; /* of the case's rows */
    uint32_t heads, qk_pad, v_pad;
    attention_push push;
    uint32_t pages; /* word of the page table */
    uint32_t tiles, head_records;
    rig_buffer parameters, q, slab, out, partials;
    uint32_t used; /* words of parameters */
} problem;

static uint32_t *append(problem *p, uint32_t words)
{
    uint32_t at = p->used;
    p->used += words;
    assert_true(p->used + RIG_EDGE <= p->parameters.words);
    return &p->parameters.u[at];
}

static size_t key_at(const problem *p, uint32_t key, uint32_t kv_head, uint32_t offset, uint32_t pad)
{
    uint32_t page = p->parameters.u[p->pages + key / p->c->page_size];
    return (size_t)page * p->push.page_stride + offset +
           ((size_t)kv_head * p->c->page_size + key % p->c->page_size) * pad;
}

/* Words that must not matter: NaN, infinities and huge numbers as F32 and as F16, or zeros. */
static void fill(rig_buffer *buffer, bool poisoned)
{
    static const uint32_t poison[] = {RIG_GUARD, 0x7f800000u, 0xff800000u, 0x7149f2cau, 0x7c00fc00u, 0x7bff7e00u};
    for (size_t i = 0; i < buffer->words; i++)
        buffer->u[i] = poisoned ? poison[i % 6] : 0;
}

static void make_pages(problem *p)
{
    const attention_case *c = p->c;
    uint32_t count = (c->keys + c->page_size - 1) / c->page_size;
    p->pages = p->used;
    uint32_t *table = append(p, count);
    for (uint32_t i = 0; i < count; i++)
        table[i] = 2 * (count - 1 - i) + 1;
}

static void make_heads(problem *p)
{
    uint32_t cols = p->variant->tile_cols;
    p->push.heads_offset = p->used;
    for (uint32_t h = 0; h < p->c->kv_heads; h++) {
        for (uint32_t first = 0; first < p->c->group; first += cols) {
            uint32_t left = p->c->group - first;
            attention_heads record = {.kv_head = h, .q_begin = h * p->c->group + first};
            record.q_count = left < cols ? left : cols;
            memcpy(append(p, ATTENTION_HEADS_WORDS), &record, sizeof record);
            p->head_records++;
        }
    }
}

/* Sinks and slopes, whether they are used or not. */
static void make_head_terms(problem *p)
{
    p->push.sinks_offset = p->used;
    p->push.slopes_offset = p->used + p->heads;
    float *terms = p->parameters.f + p->used;
    (void)append(p, 2 * p->heads);
    for (uint32_t h = 0; h < p->heads; h++) {
        terms[h] = case_sink(h);
        terms[p->heads + h] = case_slope(h);
    }
}

static void make_tile(problem *p, uint32_t row, uint32_t rows, uint32_t split)
{
    const attention_case *c = p->c;
    attention_tile tile = {.row = FIRST_ROW + row,
                           .rows = rows,
                           .position = c->position + (int32_t)(p->first + row),
                           .key_begin = (uint32_t)((uint64_t)c->keys * split / c->splits),
                           .key_end = (uint32_t)((uint64_t)c->keys * (split + 1) / c->splits),
                           .pages = p->pages};
    if (c->splits > 1) {
        tile.slot = row * c->splits + split;
        tile.slot_stride = c->splits;
    }
    memcpy(append(p, ATTENTION_TILE_WORDS), &tile, sizeof tile);
    p->tiles++;
}

/* The first tile is short, the others are as large as the variant allows. */
static void make_tiles(problem *p)
{
    uint32_t tile_rows = p->variant->tile_rows;
    p->push.tile_offset = p->used;
    for (uint32_t row = 0; row < p->rows;) {
        uint32_t rows = p->rows - row < tile_rows ? p->rows - row : tile_rows;
        if (row == 0 && rows > SHORT_TILE)
            rows = SHORT_TILE;
        for (uint32_t split = 0; split < p->c->splits; split++)
            make_tile(p, row, rows, split);
        row += rows;
    }
}

static void make_push(problem *p)
{
    const attention_case *c = p->c;
    vka_dtype dtype = p->variant->dtype;
    p->push = (attention_push){.heads = p->heads,
                               .q_stride = p->heads * p->qk_pad + 8,
                               .out_stride = p->heads * p->v_pad + 4,
                               .page_size = c->page_size,
                               .k_offset = (uint32_t)rig_edge(dtype),
                               .scale = (float)case_scale(c),
                               .left = c->window > 0 ? c->window : ATTENTION_NO_LIMIT,
                               .right = c->causal             ? 1
                                        : c->window_right > 0 ? c->window_right
                                                              : ATTENTION_NO_LIMIT,
                               .softcap = c->softcap};
    p->push.v_offset = p->push.k_offset + (c->v_in_k ? 0 : c->kv_heads * c->page_size * p->qk_pad + 8);
    p->push.page_stride = c->kv_heads * c->page_size * (p->qk_pad + p->v_pad) + 16;
    p->push.lse_offset = (FIRST_ROW + p->rows + 1) * p->push.out_stride;
}

/* Words of q's buffer: queries, the gate, the mask, with what must not be read between them. */
static size_t place_gate_and_mask(problem *p)
{
    const attention_case *c = p->c;
    size_t floats = (size_t)(FIRST_ROW + p->rows + 1) * p->push.q_stride;
    if (c->gate) {
        p->push.gate_offset = (uint32_t)floats + 4;
        p->push.gate_stride = p->heads * p->v_pad + 8;
        floats = p->push.gate_offset + (size_t)(FIRST_ROW + p->rows) * p->push.gate_stride;
    }
    if (c->mask == MASK_NONE)
        return floats;
    p->push.mask_offset = (uint32_t)floats + 3;
    p->push.mask_keys = c->mask == MASK_KEYS ? c->keys - 3 : c->keys;
    p->push.mask_key_stride = c->mask != MASK_ROWS;
    p->push.mask_row_stride = c->mask == MASK_KEYS ? 0 : c->mask == MASK_ROWS ? 1 : c->keys;
    p->push.mask_head_stride = c->mask == MASK_FULL ? c->rows * c->keys : 0;
    p->push.mask_batch_stride = c->mask == MASK_FULL ? p->heads * p->push.mask_head_stride : 0;
    p->push.mask_queries = c->rows;
    p->push.mask_first_row = c->rows + p->first - FIRST_ROW; /* the second batch */
    return p->push.mask_offset + 2 * (size_t)p->heads * c->rows * c->keys;
}

static void put_gate_and_mask(problem *p)
{
    const attention_case *c = p->c;
    for (uint32_t r = 0; r < p->rows && c->gate; r++)
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t i = 0; i < p->v_pad; i++)
                p->q.f[p->push.gate_offset + (FIRST_ROW + r) * p->push.gate_stride + h * p->v_pad + i] =
                    i < c->v_dim ? case_gate(p->first + r, h, i) : 0;
    for (uint32_t r = 0; r < c->rows && c->mask != MASK_NONE; r++)
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t j = 0; j < p->push.mask_keys; j++)
                p->q.f[p->push.mask_offset + p->push.mask_batch_stride + h * p->push.mask_head_stride +
                       r * p->push.mask_row_stride + j * p->push.mask_key_stride] = case_mask(c, r, h, j);
}

static void make_inputs(problem *p, test_rig *rig, bool poisoned)
{
    const attention_case *c = p->c;
    vka_dtype dtype = p->variant->dtype;
    uint32_t pages = 2 * ((c->keys + c->page_size - 1) / c->page_size) + 1;
    size_t elements = p->push.k_offset + (size_t)pages * p->push.page_stride;
    p->q = rig_buffer_new(rig, place_gate_and_mask(p));
    p->slab = rig_buffer_new(rig, elements / (dtype == VKA_F32 ? 1 : 2) + RIG_EDGE);
    fill(&p->q, poisoned);
    fill(&p->slab, poisoned);
    put_gate_and_mask(p);
    for (uint32_t r = 0; r < p->rows; r++)
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t i = 0; i < p->qk_pad; i++)
                p->q.f[(FIRST_ROW + r) * p->push.q_stride + h * p->qk_pad + i] =
                    i < c->qk_dim ? case_q(c, p->first + r, h, i) : 0;
    for (uint32_t j = 0; j < c->keys; j++) {
        for (uint32_t h = 0; h < c->kv_heads; h++) {
            for (uint32_t i = 0; i < p->qk_pad; i++)
                rig_put(&p->slab, dtype, key_at(p, j, h, p->push.k_offset, p->qk_pad) + i,
                        i < c->qk_dim ? case_k(c, dtype, j, h, i) : 0);
            for (uint32_t i = 0; i < p->v_pad && !c->v_in_k; i++)
                rig_put(&p->slab, dtype, key_at(p, j, h, p->push.v_offset, p->v_pad) + i,
                        i < c->v_dim ? case_v(c, dtype, j, h, i) : 0);
        }
    }
}

static void make_outputs(problem *p, test_rig *rig)
{
    uint32_t slot = p->heads * (p->v_pad + 8);
    p->out = rig_buffer_new(rig, p->push.lse_offset + (size_t)(FIRST_ROW + p->rows) * p->heads + RIG_EDGE);
    p->partials = rig_buffer_new(rig, (size_t)p->rows * p->c->splits * slot + RIG_EDGE);
    for (uint32_t r = FIRST_ROW; r < FIRST_ROW + p->rows; r++) {
        for (uint32_t i = 0; i < p->heads * p->v_pad; i++)
            p->out.written[r * p->push.out_stride + i] = true;
        for (uint32_t h = 0; h < p->heads; h++)
            p->out.written[p->push.lse_offset + r * p->heads + h] = true;
    }
    for (size_t i = 0; i < (size_t)p->rows * p->c->splits * slot; i++)
        p->partials.written[i] = i % (p->v_pad + 8) < p->v_pad + 2;
}

static void combine(problem *p, test_rig *rig, const attention_kind *kind)
{
    combine_push push = {.entry_offset = p->used,
                         .heads = p->heads,
                         .v_pad = p->v_pad,
                         .out_stride = p->push.out_stride,
                         .lse_offset = p->push.lse_offset,
                         .sinks_offset = p->push.sinks_offset,
                         .gate_offset = p->push.gate_offset,
                         .gate_stride = p->push.gate_stride};
    for (uint32_t r = 0; r < p->rows; r++) {
        combine_row row = {.row = FIRST_ROW + r, .slot = r * p->c->splits, .slots = p->c->splits};
        memcpy(append(p, COMBINE_ROW_WORDS), &row, sizeof row);
    }
    rig_job job = {.variant = rig_variant(rig, VKA_KERNEL_COMBINE, VKA_F32),
                   .buffers = {&p->parameters, &p->partials, &p->out, &p->q},
                   .push = &push,
                   .spec = vka_spec_combine(kind)};
    vka_groups_combine(job.variant, p->rows, p->heads, job.groups);
    rig_run(rig, &job);
}

static float *collect(const problem *p)
{
    uint32_t v_dim = p->c->v_dim;
    size_t rows = (size_t)p->rows * p->heads;
    float *result = new_array(rows * (v_dim + 1), sizeof *result);
    for (size_t n = 0; n < rows; n++) {
        size_t row = FIRST_ROW + n / p->heads;
        size_t head = n % p->heads;
        const float *from = &p->out.f[row * p->push.out_stride + head * p->v_pad];
        memcpy(&result[n * v_dim], from, v_dim * sizeof *from);
        for (uint32_t i = v_dim; i < p->v_pad; i++)
            assert_true(from[i] == 0);
        result[rows * v_dim + n] = p->out.f[p->push.lse_offset + row * p->heads + head];
    }
    return result;
}

static attention_kind kind_of(const problem *p)
{
    const attention_case *c = p->c;
    return (attention_kind){.qk_pad = p->qk_pad,
                            .v_pad = p->v_pad,
                            .v_stride = c->v_in_k ? p->qk_pad : 0,
                            .softcap = c->softcap > 0,
                            .alibi = c->alibi,
                            .mask = c->mask != MASK_NONE,
                            .sinks = c->sinks,
                            .gate = c->gate};
}

float *run_attention(test_rig *rig, const vka_variant *variant, const attention_case *c, uint32_t first, uint32_t rows,
                     bool poisoned)
{
    problem p = {.c = c, .variant = variant, .first = first, .rows = rows, .heads = c->kv_heads * c->group};
    p.qk_pad = vka_pad8(c->qk_dim);
    p.v_pad = vka_pad8(c->v_dim);
    const attention_kind kind = kind_of(&p);
    p.parameters = rig_buffer_new(rig, 2 * RIG_EDGE + c->keys + 6 * p.heads + 12 * (size_t)rows * c->splits);
    p.used = RIG_EDGE;
    make_push(&p);
    make_pages(&p);
    make_heads(&p);
    make_head_terms(&p);
    make_tiles(&p);
    make_inputs(&p, rig, poisoned);
    make_outputs(&p, rig);
    rig_buffer *target = c->splits > 1 ? &p.partials : &p.out;
    rig_job job = {.variant = variant,
                   .buffers = {&p.parameters, &p.q, &p.slab, target},
                   .push = &p.push,
                   .spec = vka_spec_attention(&kind)};
    vka_groups_attention(variant, p.tiles, p.head_records, job.groups);
    rig_run(rig, &job);
    rig_check_written(target, variant->name);
    if (c->splits > 1) {
        combine(&p, rig, &kind);
        rig_check_written(&p.out, "combine");
    }
    float *result = collect(&p);
    rig_buffer_free(&p.parameters);
    rig_buffer_free(&p.q);
    rig_buffer_free(&p.slab);
    rig_buffer_free(&p.out);
    rig_buffer_free(&p.partials);
    return result;
}
