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
                                                              : ATTENTION_NO_LIMIT};
    p->push.v_offset = p->push.k_offset + (c->v_in_k ? 0 : c->kv_heads * c->page_size * p->qk_pad + 8);
    p->push.page_stride = c->kv_heads * c->page_size * (p->qk_pad + p->v_pad) + 16;
    p->push.lse_offset = (FIRST_ROW + p->rows + 1) * p->push.out_stride;
}

static void make_inputs(problem *p, test_rig *rig, bool poisoned)
{
    const attention_case *c = p->c;
    vka_dtype dtype = p->variant->dtype;
    uint32_t pages = 2 * ((c->keys + c->page_size - 1) / c->page_size) + 1;
    size_t elements = p->push.k_offset + (size_t)pages * p->push.page_stride;
    p->q = rig_buffer_new(rig, (size_t)(FIRST_ROW + p->rows + 1) * p->push.q_stride);
    p->slab = rig_buffer_new(rig, elements / (dtype == VKA_F32 ? 1 : 2) + RIG_EDGE);
    fill(&p->q, poisoned);
    fill(&p->slab, poisoned);
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

static void combine(problem *p, test_rig *rig)
{
    combine_push push = {.entry_offset = p->used,
                         .heads = p->heads,
                         .v_pad = p->v_pad,
                         .out_stride = p->push.out_stride,
                         .lse_offset = p->push.lse_offset};
    for (uint32_t r = 0; r < p->rows; r++) {
        combine_row row = {.row = FIRST_ROW + r, .slot = r * p->c->splits, .slots = p->c->splits};
        memcpy(append(p, COMBINE_ROW_WORDS), &row, sizeof row);
    }
    rig_job job = {.variant = rig_variant(rig, VKA_KERNEL_COMBINE, VKA_F32),
                   .buffers = {&p->parameters, &p->partials, &p->out},
                   .push = &push};
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

float *run_attention(test_rig *rig, const vka_variant *variant, const attention_case *c, uint32_t first, uint32_t rows,
                     bool poisoned)
{
    problem p = {.c = c, .variant = variant, .first = first, .rows = rows, .heads = c->kv_heads * c->group};
    p.qk_pad = vka_pad8(c->qk_dim);
    p.v_pad = vka_pad8(c->v_dim);
    const attention_kind kind = {.qk_pad = p.qk_pad, .v_pad = p.v_pad, .v_stride = c->v_in_k ? p.qk_pad : 0};
    p.parameters = rig_buffer_new(rig, 2 * RIG_EDGE + c->keys + 4 * p.heads + 12 * (size_t)rows * c->splits);
    p.used = RIG_EDGE;
    make_push(&p);
    make_pages(&p);
    make_heads(&p);
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
        combine(&p, rig);
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

/* ---- check ---- */

typedef struct reference {
    const attention_case *c;
    float *q, *k, *v; /* [rows, heads, qk_dim], [keys, kv_heads, qk_dim], [keys, kv_heads, v_dim] */
} reference;

static void reference_make(reference *r, const attention_case *c, vka_dtype dtype)
{
    uint32_t heads = c->kv_heads * c->group;
    r->c = c;
    r->q = new_array((size_t)c->rows * heads * c->qk_dim, sizeof *r->q);
    r->k = new_array((size_t)c->keys * c->kv_heads * c->qk_dim, sizeof *r->k);
    r->v = new_array((size_t)c->keys * c->kv_heads * c->v_dim, sizeof *r->v);
    for (uint32_t n = 0; n < c->rows * heads; n++)
        for (uint32_t i = 0; i < c->qk_dim; i++)
            r->q[n * c->qk_dim + i] = case_q(c, n / heads, n % heads, i);
    for (uint32_t n = 0; n < c->keys * c->kv_heads; n++) {
        for (uint32_t i = 0; i < c->qk_dim; i++)
            r->k[n * c->qk_dim + i] = case_k(c, dtype, n / c->kv_heads, n % c->kv_heads, i);
        for (uint32_t i = 0; i < c->v_dim; i++)
            r->v[n * c->v_dim + i] = case_v(c, dtype, n / c->kv_heads, n % c->kv_heads, i);
    }
}

static void reference_free(reference *r)
{
    free(r->q);
    free(r->k);
    free(r->v);
}

/* All heads of `got`; the mutant stands for a bug of the device. */
static verify_result judge(const reference *r, const float *got, verify_mutant mutant, verify_result *lse)
{
    const attention_case *c = r->c;
    uint32_t heads = c->kv_heads * c->group;
    verify_result result = {0};
    for (uint32_t h = 0; h < heads; h++) {
        vka_error error;
        verify_attention_params params = {.rows = c->rows,
                                          .keys = c->keys,
                                          .qk_dim = c->qk_dim,
                                          .v_dim = c->v_dim,
                                          .q = r->q + h * c->qk_dim,
                                          .q_stride = (size_t)heads * c->qk_dim,
                                          .k = r->k,
                                          .v = r->v,
                                          .k_key_stride = (size_t)c->kv_heads * c->qk_dim,
                                          .k_head_stride = c->qk_dim,
                                          .v_key_stride = (size_t)c->kv_heads * c->v_dim,
                                          .v_head_stride = c->v_dim,
                                          .kv_head = h / c->group,
                                          .kv_heads = c->kv_heads,
                                          .scale = case_scale(c),
                                          .position = c->position,
                                          .causal = c->causal,
                                          .window = c->window,
                                          .window_right = c->window_right,
                                          .rescales = c->keys / 64 + 2 + c->splits,
                                          .got = got + h * c->v_dim,
                                          .got_stride = (size_t)heads * c->v_dim,
                                          .lse = got + (size_t)c->rows * heads * c->v_dim + h,
                                          .lse_stride = heads,
                                          .mutant = mutant};
        require(verify_attention(&params, &result, lse, &error) == VKA_OK, "%s", error.message);
    }
    return result;
}

static void check_mutants(const reference *r, const float *got, const char *name)
{
    for (int m = VERIFY_WRONG_SCALE; m <= VERIFY_WRONG_KV_HEAD; m++) {
        verify_result lse = {0};
        bool no_other_head = m == VERIFY_WRONG_KV_HEAD && r->c->kv_heads == 1;
        bool no_other_key = m == VERIFY_WRONG_SCALE && r->c->window == 1; /* the only weight is 1 */
        if (no_other_head || no_other_key)
            continue;
        verify_result bug = judge(r, got, (verify_mutant)m, &lse);
        require(!verify_passed(&bug), "%s: the planted bug '%s' was not seen", name,
                verify_mutant_name((verify_mutant)m));
    }
}

void check_attention(test_rig *rig, const vka_variant *variant, const attention_case *c)
{
    reference r;
    verify_result lse = {0};
    reference_make(&r, c, variant->dtype);
    float *got = run_attention(rig, variant, c, 0, c->rows, false);
    float *poisoned = run_attention(rig, variant, c, 0, c->rows, true);
    size_t count = (size_t)c->rows * c->kv_heads * c->group * (c->v_dim + 1);
    require(memcmp(got, poisoned, count * sizeof *got) == 0, "%s (%u, %u): poison outside of the data matters",
            variant->name, c->qk_dim, c->v_dim);

    verify_result result = judge(&r, got, VERIFY_CORRECT, &lse);
    require(
        verify_passed(&result) && verify_passed(&lse),
        "%s (%u, %u), %u rows, %u keys: error/bound %g at %zu, got %g, want %g; log-sum-exp %g at %zu, got %g, want %g",
        variant->name, c->qk_dim, c->v_dim, c->rows, c->keys, result.max_ratio, result.index, result.got, result.want,
        lse.max_ratio, lse.index, lse.got, lse.want);
    if (c->amplitude <= 1 && !c->equal_keys && c->keys > 1 && c->position >= 0)
        check_mutants(&r, got, variant->name);
    reference_free(&r);
    free(got);
    free(poisoned);
}
