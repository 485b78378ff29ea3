/* See attention_scene.h. */
#include "layer/attention_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

static size_t mask_elements(const attention_case *c)
{
    size_t elements = c->mask_rank > 0;

    for (uint32_t i = 0; i < c->mask_rank; i++)
        elements *= c->mask_shape[i];
    return elements;
}

vka_dtype attention_host_type(const attention_case *c, int tensor)
{
    return tensor == TENSOR_LSE || c->host == VKA_DTYPE_DEFAULT ? VKA_F32 : c->host;
}

/* Sinks, slopes and the boolean mask, where the case has them. */
static void make_options(attention_scene *s)
{
    const attention_case *c = s->c;

    if (c->sinks)
        vka_random_fill(s->sinks = malloc(c->heads * sizeof(float)), c->heads, 2, 77, 20, 0);
    if (c->alibi)
        vka_random_fill(s->slopes = malloc(c->heads * sizeof(float)), c->heads, 0.3, 77, 21, 0);
    s->keep = malloc(s->count[TENSOR_MASK] + 1);
    for (size_t i = 0; i < s->count[TENSOR_MASK]; i++)
        s->keep[i] = s->value[TENSOR_MASK][i] == 0 ? (unsigned char)(1 + i % 255) : 0;
}

void attention_open(attention_scene *s, vka_context *context, const attention_case *c)
{
    size_t queries = (size_t)c->batch * c->q_len * c->heads, keys = (size_t)c->batch * c->kv_len * c->kv_heads;

    *s = (attention_scene){.context = context,
                           .c = c,
                           .count = {queries * c->head_dim, keys * c->head_dim, keys * c->v_head_dim, mask_elements(c),
                                     queries * c->v_head_dim, queries}};
    for (int t = 0; t < TENSORS; t++) {
        size_t size = vka_dtype_size(attention_host_type(c, t));
        s->host[t] = malloc(s->count[t] * size + 16);
        s->value[t] = malloc(s->count[t] * sizeof(float) + 16);
        memset(s->host[t], 0xff, s->count[t] * size + 16); /* NaN, and a guard behind the last element */
        if (t > TENSOR_MASK)
            continue;
        vka_random_fill(s->value[t], s->count[t], t == TENSOR_Q ? 2.0 : 1.0, 77, (uint32_t)t, 0);
        for (size_t i = 0; t == TENSOR_MASK && i < s->count[t]; i++)
            s->value[t][i] = fabsf(s->value[t][i]) > 0.8f ? -INFINITY : c->keep ? 0 : s->value[t][i];
        vka_convert(s->host[t], attention_host_type(c, t), s->value[t], VKA_F32, s->count[t]);
        vka_convert(s->value[t], VKA_F32, s->host[t], attention_host_type(c, t), s->count[t]);
    }
    make_options(s);
}

void attention_close(attention_scene *s)
{
    free(s->keep);
    free(s->sinks);
    free(s->slopes);
    for (int t = 0; t < TENSORS; t++) {
        free(s->host[t]);
        free(s->value[t]);
    }
}

vka_attention_params attention_params(const attention_scene *s, uint32_t device)
{
    const attention_case *c = s->c;
    vka_attention_params params = {.struct_size = sizeof(params),
                                   .device = device,
                                   .batch = c->batch,
                                   .heads = c->heads,
                                   .kv_heads = c->kv_heads,
                                   .head_dim = c->head_dim,
                                   .v_head_dim = c->v_head_dim,
                                   .q_len = c->q_len,
                                   .kv_len = c->kv_len,
                                   .scale = c->scale,
                                   .causal = c->causal,
                                   .align = c->align,
                                   .window = c->window,
                                   .window_right = c->window_right,
                                   .softcap = c->softcap,
                                   .alibi = s->slopes,
                                   .sinks = s->sinks,
                                   .mask = {.rank = c->mask_rank, .keep = c->keep ? s->keep : NULL},
                                   .cache_dtype = c->cache};
    vka_attention_tensor *tensors[TENSORS] = {&params.q,          &params.k, &params.v,
                                              &params.mask.added, &params.o, &params.lse};

    memcpy(params.mask.shape, c->mask_shape, sizeof(params.mask.shape));

    for (int t = 0; t < TENSORS; t++)
        if (t != TENSOR_MASK || (c->mask_rank > 0 && !c->keep))
            *tensors[t] = (vka_attention_tensor){.host = s->host[t], .dtype = attention_host_type(c, t)};
    return params;
}

/* What the kernel reads: rounded to the type that it is kept in. */
static float *as_kept(const attention_scene *s, int tensor)
{
    float *kept = malloc(s->count[tensor] * sizeof(float) + 4);

    for (size_t i = 0; i < s->count[tensor]; i++)
        kept[i] = s->c->cache == VKA_F16 ? vka_f16_to_f32(vka_f32_to_f16(s->value[tensor][i])) : s->value[tensor][i];
    return kept;
}

static int64_t first_position(const attention_case *c)
{
    bool top_left =
        c->causal == VKA_CAUSAL_TOP_LEFT || (c->causal == VKA_CAUSAL_NONE && c->align == VKA_ALIGN_TOP_LEFT);

    return top_left ? 0 : (int64_t)c->kv_len - c->q_len;
}

/* The mask spread over [q_len, kv_len] of one batch entry and head. */
static float *spread_mask(const attention_scene *s, uint32_t batch, uint32_t head)
{
    const attention_case *c = s->c;
    float *mask = malloc(((size_t)c->q_len * c->kv_len + 1) * sizeof(float));

    for (uint32_t i = 0; i < c->q_len; i++) {
        for (uint32_t j = 0; j < c->kv_len; j++) {
            const uint32_t at[4] = {batch, head, i, j};
            size_t element = 0;
            bool inside = true;
            for (uint32_t d = 0; d < c->mask_rank; d++) {
                uint32_t size = c->mask_shape[d], index = size == 1 ? 0 : at[d + 4 - c->mask_rank];
                inside = inside && index < size;
                element = element * size + index;
            }
            mask[(size_t)i * c->kv_len + j] = inside ? s->value[TENSOR_MASK][element] : -INFINITY;
        }
    }
    return mask;
}

void attention_judge(const attention_scene *s, verify_mutant mutant, verify_result *output, verify_result *lse)
{
    const attention_case *c = s->c;
    float *k = as_kept(s, TENSOR_K), *v = as_kept(s, TENSOR_V);

    for (uint32_t b = 0; b < c->batch; b++) {
        for (uint32_t h = 0; h < c->heads; h++) {
            size_t query = (size_t)b * c->q_len * c->heads + h, key = (size_t)b * c->kv_len * c->kv_heads;
            float *mask = c->mask_rank > 0 ? spread_mask(s, b, h) : NULL;
            const verify_attention_params params = {.rows = c->q_len,
                                                    .keys = c->kv_len,
                                                    .qk_dim = c->head_dim,
                                                    .v_dim = c->v_head_dim,
                                                    .q = s->value[TENSOR_Q] + query * c->head_dim,
                                                    .q_stride = (size_t)c->heads * c->head_dim,
                                                    .k = k + key * c->head_dim,
                                                    .v = v + key * c->v_head_dim,
                                                    .k_key_stride = (size_t)c->kv_heads * c->head_dim,
                                                    .k_head_stride = c->head_dim,
                                                    .v_key_stride = (size_t)c->kv_heads * c->v_head_dim,
                                                    .v_head_stride = c->v_head_dim,
                                                    .kv_head = h / (c->heads / c->kv_heads),
                                                    .kv_heads = c->kv_heads,
                                                    .scale = c->scale != 0 ? c->scale : 1 / sqrt(c->head_dim),
                                                    .position = first_position(c),
                                                    .causal = c->causal != VKA_CAUSAL_NONE,
                                                    .window = c->window,
                                                    .window_right = c->window_right,
                                                    .softcap = c->softcap,
                                                    .slope = s->slopes != NULL ? (double)s->slopes[h] : 0,
                                                    .sink = s->sinks != NULL ? &s->sinks[h] : NULL,
                                                    .mask = mask,
                                                    .mask_row_stride = c->kv_len,
                                                    .mask_key_stride = 1,
                                                    .mask_keys = c->kv_len,
                                                    .got = s->value[TENSOR_O] + query * c->v_head_dim,
                                                    .got_stride = (size_t)c->heads * c->v_head_dim,
                                                    .lse = s->value[TENSOR_LSE] + query,
                                                    .lse_stride = c->heads,
                                                    .mutant = mutant};
            assert_int_equal(verify_attention(&params, output, lse, NULL), VKA_OK);
            free(mask);
        }
    }
    free(k);
    free(v);
}

void attention_run(attention_scene *s, uint32_t device)
{
    vka_attention_params params = attention_params(s, device);
    double gpu_ms = -7;
    vka_error error;

    params.gpu_ms = &gpu_ms;
    require(vka_attention(s->context, &params, &error) == VKA_OK, "%s: %s", s->c->name, error.message);
    assert_true(gpu_ms == -1 || gpu_ms >= 0);
    for (int t = TENSOR_O; t < TENSORS; t++) {
        size_t size = vka_dtype_size(attention_host_type(s->c, t));
        for (int i = 0; i < 16; i++)
            assert_int_equal(s->host[t][s->count[t] * size + (size_t)i], 0xff);
        vka_convert(s->value[t], VKA_F32, s->host[t], attention_host_type(s->c, t), s->count[t]);
    }
}

/* A 16-bit result is rounded once more than the reference's bound allows for: take it from an F32 run. */
static void widen_result(attention_scene *s, uint32_t device)
{
    vka_attention_params params = attention_params(s, device);
    float *o = malloc(s->count[TENSOR_O] * sizeof(float) + 4),
          *rounded = malloc(s->count[TENSOR_O] * sizeof(float) + 4);

    params.o = (vka_attention_tensor){.host = o};
    assert_int_equal(vka_attention(s->context, &params, NULL), VKA_OK);
    unsigned char *bits = malloc(s->count[TENSOR_O] * 4 + 4);
    vka_convert(bits, attention_host_type(s->c, TENSOR_O), o, VKA_F32, s->count[TENSOR_O]);
    vka_convert(rounded, VKA_F32, bits, attention_host_type(s->c, TENSOR_O), s->count[TENSOR_O]);
    assert_memory_equal(rounded, s->value[TENSOR_O], s->count[TENSOR_O] * sizeof(float));
    memcpy(s->value[TENSOR_O], o, s->count[TENSOR_O] * sizeof(float));
    free(bits);
    free(rounded);
    free(o);
}

void attention_check(attention_scene *s, uint32_t device)
{
    verify_result output = {0}, lse = {0};

    attention_run(s, device);
    if (attention_host_type(s->c, TENSOR_O) != VKA_F32)
        widen_result(s, device);
    attention_judge(s, VERIFY_CORRECT, &output, &lse);
    require(verify_passed(&output), "%s: output %zu is %g times its bound: %g, want %g", s->c->name, output.index,
            output.max_ratio, output.got, output.want);
    require(verify_passed(&lse), "%s: log-sum-exp %zu is %g times its bound: %g, want %g", s->c->name, lse.index,
            lse.max_ratio, lse.got, lse.want);
    assert_int_equal(output.elements, s->count[TENSOR_O]);
    assert_int_equal(lse.elements, s->count[TENSOR_LSE]);
}

/* ---- device tensors ---- */

enum { OFFSET = 12 }; /* bytes before a tensor in its buffer: no multiple of 16 */

void attention_run_on_device(const attention_scene *s, uint32_t device, unsigned on_device, float *o, float *lse)
{
    vka_attention_params params = attention_params(s, device);
    vka_attention_tensor *tensors[TENSORS] = {&params.q,          &params.k, &params.v,
                                              &params.mask.added, &params.o, &params.lse};
    vka_buffer *buffers[TENSORS] = {0};
    float *out[TENSORS] = {[TENSOR_O] = o, [TENSOR_LSE] = lse};
    vka_error error;

    params.o.host = o;
    params.lse.host = lse;
    for (int t = 0; t < TENSORS; t++) {
        uint64_t bytes = s->count[t] * sizeof(float);
        if ((on_device >> t & 1u) == 0 || (t == TENSOR_MASK && (s->c->mask_rank == 0 || s->c->keep)))
            continue;
        assert_int_equal(vka_buffer_create(&buffers[t], s->context, device, OFFSET + bytes + 4, NULL), VKA_OK);
        *tensors[t] = (vka_attention_tensor){.buffer = buffers[t], .offset = OFFSET};
        if (t <= TENSOR_MASK && bytes > 0)
            assert_int_equal(vka_buffer_write(buffers[t], OFFSET, s->value[t], bytes, NULL), VKA_OK);
    }
    require(vka_attention(s->context, &params, &error) == VKA_OK, "%s: %s", s->c->name, error.message);
    for (int t = 0; t < TENSORS; t++) {
        if (t >= TENSOR_O && buffers[t] != NULL)
            assert_int_equal(vka_buffer_read(buffers[t], OFFSET, out[t], s->count[t] * sizeof(float), NULL), VKA_OK);
        vka_buffer_destroy(&buffers[t]);
    }
}
