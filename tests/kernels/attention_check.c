/* A case against float64, and bugs planted in the reference that must be seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention_case.h"
#include "kernels/attention_data.h"
#include "support/require.h"
#include "verify/verify.h"

typedef struct reference {
    const attention_case *c;
    float *q, *k, *v;   /* [rows, heads, qk_dim], [keys, kv_heads, qk_dim], [keys, kv_heads, v_dim] */
    float *mask, *gate; /* [heads, rows + 1, keys], [rows + 1, heads, v_dim]: one row more, for planted bugs */
    float *sinks;       /* [heads + 1] */
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

static void reference_add_options(reference *r)
{
    const attention_case *c = r->c;
    uint32_t heads = c->kv_heads * c->group;
    r->mask = new_array((size_t)heads * (c->rows + 1) * c->keys + 1, sizeof *r->mask);
    r->gate = new_array((size_t)(c->rows + 1) * heads * c->v_dim + 1, sizeof *r->gate);
    r->sinks = new_array(heads + 1, sizeof *r->sinks);
    for (uint32_t h = 0; h <= heads; h++)
        r->sinks[h] = case_sink(h);
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t n = 0; n < c->rows * c->keys; n++)
            r->mask[h * (c->rows + 1) * c->keys + n] = case_mask(c, n / c->keys, h, n % c->keys);
    for (uint32_t n = 0; n < c->rows * heads; n++)
        for (uint32_t i = 0; i < c->v_dim; i++)
            r->gate[n * c->v_dim + i] = case_gate(n / heads, n % heads, i);
}

static void reference_free(reference *r)
{
    free(r->q);
    free(r->k);
    free(r->v);
    free(r->mask);
    free(r->gate);
    free(r->sinks);
}

/* Bugs of options, planted in the parameters of the reference. */
typedef enum option_bug {
    BUG_NONE,
    BUG_SOFTCAP_DROPPED,
    BUG_SOFTCAP_OFF,
    BUG_SLOPE_DROPPED,
    BUG_SLOPE_OF_NEXT_HEAD,
    BUG_SINK_DROPPED,
    BUG_SINK_OF_NEXT_HEAD,
    BUG_MASK_DROPPED,
    BUG_MASK_OF_NEXT_KEY,
    BUG_MASK_OF_NEXT_ROW,
    BUG_GATE_DROPPED,
    BUG_GATE_OF_NEXT_ELEMENT,
    BUG_GATE_OF_NEXT_ROW,
    BUG_COUNT
} option_bug;

static bool has_bug(const attention_case *c, option_bug bug)
{
    switch (bug) {
    case BUG_SOFTCAP_DROPPED:
    case BUG_SOFTCAP_OFF:
        return c->softcap > 0;
    case BUG_SLOPE_DROPPED:
    case BUG_SLOPE_OF_NEXT_HEAD:
        return c->alibi;
    case BUG_SINK_DROPPED:
    case BUG_SINK_OF_NEXT_HEAD:
        return c->sinks;
    case BUG_MASK_DROPPED:
        return c->mask != MASK_NONE;
    case BUG_MASK_OF_NEXT_KEY:
        return c->mask == MASK_FULL || c->mask == MASK_KEYS;
    case BUG_MASK_OF_NEXT_ROW:
        return c->mask == MASK_FULL || c->mask == MASK_ROWS;
    default:
        return c->gate;
    }
}

static void plant(verify_attention_params *p, uint32_t head, option_bug bug)
{
    switch (bug) {
    case BUG_SOFTCAP_DROPPED:
    case BUG_SOFTCAP_OFF:
        p->softcap *= bug == BUG_SOFTCAP_OFF ? 1.01 : 0;
        break;
    case BUG_SLOPE_DROPPED:
    case BUG_SLOPE_OF_NEXT_HEAD:
        p->slope = bug == BUG_SLOPE_DROPPED ? 0 : (double)case_slope(head + 1);
        break;
    case BUG_SINK_DROPPED:
    case BUG_SINK_OF_NEXT_HEAD:
        p->sink = bug == BUG_SINK_DROPPED ? NULL : p->sink + 1;
        break;
    case BUG_MASK_DROPPED:
        p->mask = NULL;
        break;
    case BUG_MASK_OF_NEXT_KEY:
    case BUG_MASK_OF_NEXT_ROW:
        p->mask += bug == BUG_MASK_OF_NEXT_KEY ? 1 : p->mask_row_stride;
        break;
    case BUG_GATE_DROPPED:
        p->gate = NULL;
        break;
    case BUG_GATE_OF_NEXT_ELEMENT:
    case BUG_GATE_OF_NEXT_ROW:
        p->gate += bug == BUG_GATE_OF_NEXT_ELEMENT ? 1 : p->gate_stride;
        break;
    default:
        break;
    }
}

/* All heads of `got`; the mutant, or the bug of an option, stands for one of the device. */
static verify_result judge(const reference *r, const float *got, verify_mutant mutant, option_bug bug,
                           verify_result *lse)
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
                                          .softcap = (double)c->softcap,
                                          .slope = c->alibi ? (double)case_slope(h) : 0,
                                          .mask = c->mask != MASK_NONE ? r->mask + h * (c->rows + 1) * c->keys : NULL,
                                          .mask_row_stride = c->keys,
                                          .mask_key_stride = 1,
                                          .mask_keys = c->keys,
                                          .sink = c->sinks ? &r->sinks[h] : NULL,
                                          .gate = c->gate ? r->gate + h * c->v_dim : NULL,
                                          .gate_stride = (size_t)heads * c->v_dim,
                                          .rescales = c->keys / 64 + 2 + c->splits,
                                          .got = got + h * c->v_dim,
                                          .got_stride = (size_t)heads * c->v_dim,
                                          .lse = got + (size_t)c->rows * heads * c->v_dim + h,
                                          .lse_stride = heads,
                                          .mutant = mutant};
        plant(&params, h, bug);
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
        verify_result bug = judge(r, got, (verify_mutant)m, BUG_NONE, &lse);
        require(!verify_passed(&bug), "%s, %u rows, %u keys: the planted bug '%s' was not seen", name, r->c->rows,
                r->c->keys, verify_mutant_name((verify_mutant)m));
    }
    for (int planted = BUG_NONE + 1; planted < BUG_COUNT; planted++) {
        verify_result lse = {0};
        if (!has_bug(r->c, (option_bug)planted))
            continue;
        verify_result bug = judge(r, got, VERIFY_CORRECT, (option_bug)planted, &lse);
        require(!verify_passed(&bug) || !verify_passed(&lse), "%s, %u rows, %u keys: bug %d of an option was not seen",
                name, r->c->rows, r->c->keys, planted);
    }
}

void check_attention(test_rig *rig, const vka_variant *variant, const attention_case *c)
{
    reference r;
    verify_result lse = {0};
    reference_make(&r, c, variant->dtype);
    reference_add_options(&r);
    float *got = run_attention(rig, variant, c, 0, c->rows, false);
    float *poisoned = run_attention(rig, variant, c, 0, c->rows, true);
    size_t count = (size_t)c->rows * c->kv_heads * c->group * (c->v_dim + 1);
    require(memcmp(got, poisoned, count * sizeof *got) == 0, "%s (%u, %u): poison outside of the data matters",
            variant->name, c->qk_dim, c->v_dim);

    verify_result result = judge(&r, got, VERIFY_CORRECT, BUG_NONE, &lse);
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
