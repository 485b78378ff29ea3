/* See check.h. Local heads are told from the rank table, not from the trace, and the trace must agree. */
#include "layer/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verify/latent.h"

const char *stage_name(check_stage which)
{
    static const char *const names[STAGE_COUNT] = {"upload", "qkv", "epilogue", "attention", "output", "sum"};

    return names[which];
}

/* The positions of all rows: those of the call, or the places in the sequences. */
static int32_t *call_positions(const stage_checker *checker)
{
    const rig_call *call = checker->call;
    size_t rows = rig_rows(call), axes = call->position_rows > 1 ? call->position_rows : 1, row = 0;
    int32_t *positions = malloc((axes * rows + 1) * sizeof(*positions));

    require(positions != NULL, "no memory");
    if (call->positions != NULL)
        memcpy(positions, call->positions, axes * rows * sizeof(*positions));
    for (uint32_t i = 0; call->positions == NULL && i < call->count; i++)
        for (uint32_t t = 0; t < call->entries[i].new_tokens; t++)
            positions[row++] = (int32_t)(checker->past[i % RIG_SEQUENCES] + t);
    return positions;
}

void check_begin(stage_checker *out, layer_rig *rig, const rig_call *call, const float *input)
{
    *out = (stage_checker){.rig = rig, .call = call, .input = input};
    if (call->report != NULL)
        out->report.mutant = call->report->mutant;
    for (uint32_t i = 0; i < call->count && i < RIG_SEQUENCES; i++)
        (void)vka_cache_sequence_length(rig->cache, call->entries[i].sequence, call->cache_layer, &out->past[i], NULL);
    out->positions = call_positions(out);
}

static vka_status note(stage_checker *checker, check_stage which, vka_status status, const verify_result *result)
{
    verify_merge(&checker->report.stages[which], result);
    return status;
}

/* ---- heads ---- */

/* Heads of `device` by the rank table: ascending, each once. Returns their number. */
static uint32_t heads_of_device(const layer_rig *rig, uint32_t device, bool kv, uint32_t *heads)
{
    uint32_t ranks, count = 0;
    const vka_rank *rank = vka_layer_ranks(rig->layer, &ranks);

    if (kv && rig->desc.kv_lora_rank > 0) { /* the latent, on every device with ranks */
        *heads = 0;
        for (uint32_t r = 0; r < ranks; r++)
            count = count || rank[r].device == device;
        return count;
    }

    for (uint32_t head = 0; head < (kv ? rig->desc.kv_heads : rig->desc.heads); head++) {
        bool here = false;
        for (uint32_t r = 0; r < ranks; r++) {
            uint32_t begin = kv ? rank[r].kv_begin : rank[r].q_begin, held = kv ? rank[r].kv_count : rank[r].q_count;
            here = here || (rank[r].device == device && head >= begin && head < begin + held);
        }
        if (here)
            heads[count++] = head;
    }
    return count;
}

static vka_status check_heads(stage_checker *checker, const vka_trace *trace)
{
    uint32_t heads[VKA_MAX_HEADS];
    uint32_t q = heads_of_device(checker->rig, trace->device, false, heads);
    bool same = q == trace->q_heads && memcmp(heads, trace->q_head, q * sizeof(uint32_t)) == 0;
    uint32_t kv = heads_of_device(checker->rig, trace->device, true, heads);

    same = same && kv == trace->kv_heads && memcmp(heads, trace->kv_head, kv * sizeof(uint32_t)) == 0;
    return same ? VKA_OK
                : vka_fail(&checker->error, VKA_ERR_ARGUMENT, "device %u: the trace names other heads than the ranks",
                           trace->device);
}

static bool gated(const vka_layer_desc *desc)
{
    return desc->gate != VKA_GATE_NONE;
}

/* The first column of K, behind Q and its gates. */
static size_t k_column(const vka_layer_desc *desc, const vka_trace *trace)
{
    return (size_t)trace->q_heads * (desc->head_dim + (gated(desc) ? desc->v_head_dim : 0));
}

static size_t qkv_columns(const stage_checker *checker, const vka_trace *trace)
{
    const vka_layer_desc *desc = &checker->rig->desc;

    return k_column(desc, trace) + (size_t)trace->kv_heads * (desc->head_dim + desc->v_head_dim);
}

/* ---- matrices ---- */

static size_t input_columns(const stage_checker *checker, const vka_trace *trace)
{
    return trace->appends ? checker->rig->desc.kv_hidden_size : checker->rig->desc.hidden_size;
}

/* Whether the chunk projected K and V. */
static bool has_kv(const stage_checker *checker, const vka_trace *trace)
{
    return trace->appends || checker->rig->desc.attend != VKA_ATTEND_CROSS;
}

static vka_status check_upload(stage_checker *checker, const vka_trace *trace)
{
    size_t hidden = input_columns(checker, trace);
    const float *input = trace->appends ? checker->kv_input : checker->input;
    verify_result result = {0};

    for (size_t i = 0; input != NULL && i < trace->rows * hidden; i++)
        verify_element(&result, i, (double)trace->hidden[i], (double)input[trace->first_row * hidden + i], 0);
    return note(checker, STAGE_UPLOAD, VKA_OK, &result);
}

static size_t stride_of(const vka_tensor *tensor)
{
    return (size_t)(tensor->row_stride != 0 ? tensor->row_stride : tensor->cols);
}

/* One head's rows of a weight matrix against its columns of the projection. */
static vka_status check_projected_head(stage_checker *checker, const vka_trace *trace, const vka_tensor *weights,
                                       uint64_t first_row, uint32_t dim, size_t column)
{
    vka_tensor rows = *weights;
    verify_result result = {0};
    verify_projection_params params = {.rows = trace->rows,
                                       .cols = dim,
                                       .depth = input_columns(checker, trace),
                                       .x = trace->hidden,
                                       .x_stride = input_columns(checker, trace),
                                       .stored = vka_layer_weight_dtype(checker->rig->layer),
                                       .y = trace->qkv + column,
                                       .y_stride = qkv_columns(checker, trace)};

    rows.data = (const unsigned char *)weights->data + first_row * stride_of(weights) * vka_dtype_size(weights->dtype);
    rows.rows = dim;
    params.weights = rows;
    vka_status status = verify_projection(&params, &result, &checker->error);
    return note(checker, STAGE_QKV, status, &result);
}

static void note_latent(void *user, verify_latent_stage stage, size_t row, size_t column, size_t columns,
                        const verify_result *result)
{
    static const check_stage stages[] = {[VERIFY_LATENT_QKV] = STAGE_QKV,
                                         [VERIFY_LATENT_EPILOGUE] = STAGE_EPILOGUE,
                                         [VERIFY_LATENT_ATTENTION] = STAGE_ATTENTION};

    (void)row, (void)column, (void)columns;
    note(user, stages[stage], VKA_OK, result);
}

static verify_latent_params latent_params(stage_checker *checker, const vka_trace *trace)
{
    return (verify_latent_params){.desc = &checker->rig->desc,
                                  .weights = &checker->rig->weights,
                                  .stored = vka_layer_weight_dtype(checker->rig->layer),
                                  .trace = trace,
                                  .mutant = checker->report.mutant,
                                  .note = note_latent,
                                  .user = checker};
}

static vka_status check_qkv(stage_checker *checker, const vka_trace *trace)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const vka_layer_weights *w = &checker->rig->weights;
    size_t dim = desc->head_dim, v_dim = desc->v_head_dim, step = gated(desc) ? 2 * dim : dim;
    size_t k = k_column(desc, trace), v = k + trace->kv_heads * dim;
    vka_status status = VKA_OK;

    if (desc->kv_lora_rank > 0) {
        const verify_latent_params latent = latent_params(checker, trace);
        return verify_latent_matrices(&latent, &checker->error);
    }
    for (uint32_t i = 0; status == VKA_OK && !trace->appends && i < trace->q_heads; i++) {
        uint64_t row = trace->q_head[i] * step;
        status = check_projected_head(checker, trace, &w->q, row, desc->head_dim, i * dim);
        if (status == VKA_OK && gated(desc))
            status = check_projected_head(checker, trace, &w->q, row + dim, desc->head_dim, (trace->q_heads + i) * dim);
    }
    for (uint32_t i = 0; status == VKA_OK && has_kv(checker, trace) && i < trace->kv_heads; i++)
        status = check_projected_head(checker, trace, &w->k, trace->kv_head[i] * dim, desc->head_dim, k + i * dim);
    for (uint32_t i = 0; status == VKA_OK && has_kv(checker, trace) && i < trace->kv_heads; i++)
        status =
            check_projected_head(checker, trace, &w->v, trace->kv_head[i] * v_dim, desc->v_head_dim, v + i * v_dim);
    return status;
}

/* Columns of `count` heads of the output weights, one head after the other. */
static unsigned char *gather_columns(const vka_tensor *weights, const uint32_t *heads, uint32_t count, uint32_t dim)
{
    size_t size = vka_dtype_size(weights->dtype), piece = dim * size;
    unsigned char *gathered = malloc((size_t)weights->rows * count * piece), *to = gathered;

    for (size_t row = 0; gathered != NULL && row < weights->rows; row++)
        for (uint32_t i = 0; i < count; i++, to += piece)
            memcpy(to, (const unsigned char *)weights->data + row * stride_of(weights) * size + heads[i] * piece,
                   piece);
    return gathered;
}

/* Partial `p` is that of all heads of the device, or of one rank's. */
static vka_status check_partial(stage_checker *checker, const vka_trace *trace, uint32_t p)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const vka_tensor *o = &checker->rig->weights.o;
    uint32_t first = 0, count = trace->q_heads, ranks;
    const vka_rank *rank = vka_layer_ranks(checker->rig->layer, &ranks);

    if (checker->rig->setup.reproducible) {
        if (trace->partial_rank[p] >= ranks || rank[trace->partial_rank[p]].device != trace->device)
            return vka_fail(&checker->error, VKA_ERR_ARGUMENT, "partial %u is of rank %u", p, trace->partial_rank[p]);
        rank += trace->partial_rank[p];
        count = rank->q_count;
        while (trace->q_head[first] != rank->q_begin)
            first++;
    }
    unsigned char *columns = gather_columns(o, trace->q_head + first, count, desc->v_head_dim);
    verify_result result = {0};
    const verify_projection_params params = {
        .rows = trace->rows,
        .cols = desc->hidden_size,
        .depth = (size_t)count * desc->v_head_dim,
        .x = trace->attention + (size_t)first * desc->v_head_dim,
        .x_stride = (size_t)trace->q_heads * desc->v_head_dim,
        .weights = {columns, o->dtype, desc->hidden_size, (uint64_t)count * desc->v_head_dim, 0},
        .stored = vka_layer_weight_dtype(checker->rig->layer),
        .y = trace->partial + (size_t)p * trace->rows * desc->hidden_size,
        .y_stride = desc->hidden_size};
    vka_status status = verify_projection(&params, &result, &checker->error);

    free(columns);
    return note(checker, STAGE_OUTPUT, status, &result);
}

static vka_status check_output(stage_checker *checker, const vka_trace *trace)
{
    uint32_t ranks, here = 0;
    const vka_rank *rank = vka_layer_ranks(checker->rig->layer, &ranks);
    vka_status status = VKA_OK;

    for (uint32_t r = 0; r < ranks; r++)
        here += rank[r].device == trace->device;
    if (trace->partials != (checker->rig->setup.reproducible ? here : 1))
        return vka_fail(&checker->error, VKA_ERR_ARGUMENT, "device %u has %u partials for %u ranks", trace->device,
                        trace->partials, here);
    for (uint32_t p = 0; status == VKA_OK && p < trace->partials; p++)
        status = check_partial(checker, trace, p);
    return status;
}

/* ---- heads of one sequence ---- */

/* The rows of one sequence in a chunk. */
typedef struct segment {
    const vka_trace *trace;
    uint32_t sequence, row, rows, position, keys;
    uint32_t length;          /* of the sequence when the call is over */
    const int32_t *positions; /* of the first row */
    float *k, *v;             /* [keys, dim]: one KV head */
} segment;

static const float *bias_of(const vka_tensor *bias, uint32_t head, uint32_t dim)
{
    return bias->data != NULL ? (const float *)bias->data + (size_t)head * dim : NULL;
}

/* Of a query or of its gate: [query | gate] of each head. */
static const float *q_bias_of(const vka_layer_desc *desc, const vka_layer_weights *w, uint32_t head, bool gate)
{
    return bias_of(&w->q_bias, gated(desc) ? 2 * head + (gate ? 1 : 0) : head, desc->head_dim);
}

static bool norms_rows(const vka_layer_desc *desc)
{
    return desc->qk_norm == VKA_QK_NORM_FULL_WIDTH;
}

static const float *norm_of(const vka_layer_desc *desc, const vka_tensor *norm, uint32_t head)
{
    return norms_rows(desc) ? bias_of(norm, head, desc->head_dim) : norm->data;
}

/* Of Q (0) or K (1). */
static const float *factor_of(const segment *s, uint32_t which)
{
    return s->trace->norm_factor != NULL ? s->trace->norm_factor + 2 * (size_t)s->row + which : NULL;
}

static vka_status check_epilogue(stage_checker *checker, const segment *s, verify_epilogue_params *params,
                                 size_t column)
{
    verify_result result = {0};

    params->rows = s->rows;
    params->heads = 1;
    params->raw_stride = qkv_columns(checker, s->trace);
    params->raw = s->trace->qkv + s->row * params->raw_stride + column;
    params->desc = &checker->rig->desc;
    params->position = s->positions;
    params->position_stride = checker->call->position_rows > 1 ? rig_rows(checker->call) : 0;
    params->length = s->length;
    params->mutant = checker->report.mutant;
    vka_status status = verify_epilogue(params, &result, &checker->error);
    return note(checker, STAGE_EPILOGUE, status, &result);
}

static vka_status check_q(stage_checker *checker, const segment *s, uint32_t local)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const vka_layer_weights *w = &checker->rig->weights;
    size_t stride = (size_t)s->trace->q_heads * desc->head_dim, column = (size_t)local * desc->head_dim;
    verify_epilogue_params params = {.head_dim = desc->head_dim,
                                     .bias = q_bias_of(desc, w, s->trace->q_head[local], false),
                                     .norm = norm_of(desc, &w->q_norm, s->trace->q_head[local]),
                                     .factor = factor_of(s, 0),
                                     .turned = true,
                                     .got = s->trace->q + s->row * stride + column,
                                     .got_stride = stride,
                                     .got_dtype = VKA_F32};

    return check_epilogue(checker, s, &params, column);
}

static vka_status check_gate(stage_checker *checker, const segment *s, uint32_t local)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    size_t stride = (size_t)s->trace->q_heads * desc->v_head_dim, column = (size_t)local * desc->v_head_dim;
    verify_epilogue_params params = {.head_dim = desc->v_head_dim,
                                     .bias = q_bias_of(desc, &checker->rig->weights, s->trace->q_head[local], true),
                                     .sigmoid = true,
                                     .got = s->trace->gate + s->row * stride + column,
                                     .got_stride = stride,
                                     .got_dtype = VKA_F32};

    return check_epilogue(checker, s, &params, (size_t)s->trace->q_heads * desc->head_dim + column);
}

static vka_status check_k_and_v(stage_checker *checker, const segment *s, uint32_t local)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const vka_layer_weights *w = &checker->rig->weights;
    uint32_t head = s->trace->kv_head[local];
    size_t k_first = k_column(desc, s->trace), k_own = k_first + (size_t)local * desc->head_dim;
    size_t v_own = k_first + (size_t)s->trace->kv_heads * desc->head_dim + (size_t)local * desc->v_head_dim;
    verify_epilogue_params k = {.head_dim = desc->head_dim,
                                .bias = bias_of(&w->k_bias, head, desc->head_dim),
                                .norm = norm_of(desc, &w->k_norm, head),
                                .factor = factor_of(s, 1),
                                .turned = true,
                                .got = s->k + (size_t)s->position * desc->head_dim,
                                .got_stride = desc->head_dim,
                                .got_dtype = vka_cache_dtype(checker->rig->cache)};
    verify_epilogue_params v = {.head_dim = desc->v_head_dim,
                                .bias = bias_of(&w->v_bias, head, desc->v_head_dim),
                                .got = s->v + (size_t)s->position * desc->v_head_dim,
                                .got_stride = desc->v_head_dim,
                                .got_dtype = vka_cache_dtype(checker->rig->cache)};
    vka_status status = check_epilogue(checker, s, &k, k_own);

    return status == VKA_OK ? check_epilogue(checker, s, &v, v_own) : status;
}

static vka_status check_attention(stage_checker *checker, const segment *s, uint32_t local)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    size_t q_stride = (size_t)s->trace->q_heads * desc->head_dim;
    size_t o_stride = (size_t)s->trace->q_heads * desc->v_head_dim;
    const vka_layer_weights *w = &checker->rig->weights;
    const float *slope = bias_of(&w->alibi_slopes, s->trace->q_head[local], 1);
    verify_result result = {0};
    const verify_attention_params params = {
        .rows = s->rows,
        .keys = s->keys,
        .qk_dim = desc->head_dim,
        .v_dim = desc->v_head_dim,
        .q = s->trace->q + s->row * q_stride + (size_t)local * desc->head_dim,
        .q_stride = q_stride,
        .k = s->k,
        .v = s->v,
        .k_key_stride = desc->head_dim,
        .v_key_stride = desc->v_head_dim,
        .kv_heads = 1,
        .scale = desc->scale,
        .position = s->position,
        .causal = desc->attend == VKA_ATTEND_CAUSAL,
        .window = desc->window,
        .window_right = desc->window_right,
        .softcap = desc->softcap,
        .slope = slope != NULL ? (double)*slope : 0,
        .gate = s->trace->gate != NULL ? s->trace->gate + s->row * o_stride + (size_t)local * desc->v_head_dim : NULL,
        .gate_stride = o_stride,
        .sink = bias_of(&w->sinks, s->trace->q_head[local], 1),
        .got = s->trace->attention + s->row * o_stride + (size_t)local * desc->v_head_dim,
        .got_stride = o_stride,
        .mutant = checker->report.mutant};
    vka_status status = verify_attention(&params, &result, NULL, &checker->error);

    return note(checker, STAGE_ATTENTION, status, &result);
}

/* Which KV head the reference takes for local KV head `local`: the planted bug takes the next one of the layer. */
static uint32_t reference_head(const stage_checker *checker, uint32_t head)
{
    return checker->report.mutant == VERIFY_WRONG_KV_HEAD ? (head + 1) % checker->rig->desc.kv_heads : head;
}

/* Reads K and V of a KV head of the whole layer from a device that holds it. */
static vka_status read_head(stage_checker *checker, const segment *s, uint32_t head)
{
    uint32_t device = s->trace->device, heads[VKA_MAX_HEADS];

    if (head >= checker->rig->desc.kv_heads)
        return vka_fail(&checker->error, VKA_ERR_ARGUMENT, "KV head %u", head);
    for (uint32_t d = 0; d < checker->rig->devices; d++) {
        uint32_t count = heads_of_device(checker->rig, (device + d) % checker->rig->devices, true, heads);
        for (uint32_t i = 0; i < count; i++) {
            if (heads[i] == head)
                return vka_cache_read(checker->rig->cache, (device + d) % checker->rig->devices,
                                      checker->call->cache_layer, checker->call->entries[s->sequence].sequence, head, 0,
                                      s->keys, s->k, s->v, &checker->error);
        }
    }
    return vka_fail(&checker->error, VKA_ERR_ARGUMENT, "KV head %u is on no device", head);
}

static vka_status check_kv_head(stage_checker *checker, const segment *s, uint32_t local)
{
    uint32_t group = checker->rig->desc.heads / checker->rig->desc.kv_heads, head = s->trace->kv_head[local];
    vka_status status = read_head(checker, s, head);

    if (status == VKA_OK && has_kv(checker, s->trace))
        status = check_k_and_v(checker, s, local);
    if (status == VKA_OK && reference_head(checker, head) != head)
        status = read_head(checker, s, reference_head(checker, head));
    for (uint32_t q = 0; status == VKA_OK && !s->trace->appends && q < s->trace->q_heads; q++)
        if (s->trace->q_head[q] / group == head)
            status = check_attention(checker, s, q);
    return status;
}

static vka_status check_latent(stage_checker *checker, segment *s)
{
    const verify_latent_params params = latent_params(checker, s->trace);
    const verify_latent_rows rows = {.row = s->row,
                                     .rows = s->rows,
                                     .keys = s->keys,
                                     .position = s->position,
                                     .turned = s->positions,
                                     .k = s->k,
                                     .cache = vka_cache_dtype(checker->rig->cache)};
    vka_status status =
        vka_cache_read(checker->rig->cache, s->trace->device, checker->call->cache_layer,
                       checker->call->entries[s->sequence].sequence, 0, 0, s->keys, s->k, NULL, &checker->error);

    return status == VKA_OK ? verify_latent_sequence(&params, &rows, &checker->error) : status;
}

static vka_status check_segment_heads(stage_checker *checker, segment *s)
{
    vka_status status = VKA_OK;

    for (uint32_t q = 0; status == VKA_OK && !s->trace->appends && q < s->trace->q_heads; q++)
        status = check_q(checker, s, q);
    for (uint32_t q = 0; status == VKA_OK && s->trace->gate != NULL && q < s->trace->q_heads; q++)
        status = check_gate(checker, s, q);
    for (uint32_t h = 0; status == VKA_OK && h < s->trace->kv_heads; h++)
        status = check_kv_head(checker, s, h);
    return status;
}

static vka_status check_segment(stage_checker *checker, segment *s)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    bool latent = desc->kv_lora_rank > 0;
    size_t k_dim = latent ? desc->kv_lora_rank + desc->rotary_dim : desc->head_dim;
    vka_status status = VKA_OK;

    s->k = malloc((size_t)s->keys * k_dim * sizeof(float));
    s->v = malloc((size_t)s->keys * checker->rig->desc.v_head_dim * sizeof(float));
    if (s->k == NULL || s->v == NULL)
        status = vka_fail(&checker->error, VKA_ERR_HOST_MEMORY, "no memory");
    if (status == VKA_OK)
        status = latent ? check_latent(checker, s) : check_segment_heads(checker, s);
    free(s->k);
    free(s->v);
    return status;
}

/* Sequence by sequence, since each has its own positions and its own part of the cache. */
static vka_status check_sequences(stage_checker *checker, const vka_trace *trace)
{
    uint32_t begin = 0, chunk_end = trace->first_row + trace->rows;
    vka_attend attend = checker->rig->desc.attend;
    vka_status status = VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < checker->call->count; i++) {
        bool other = attend == VKA_ATTEND_CROSS && !trace->appends;
        uint32_t kv_tokens = checker->call->kv_tokens != NULL ? checker->call->kv_tokens[i] : 0;
        uint32_t end = begin + (trace->appends ? kv_tokens : checker->call->entries[i].new_tokens);
        uint32_t first = begin > trace->first_row ? begin : trace->first_row;
        uint32_t last = end < chunk_end ? end : chunk_end;
        if (first < last) {
            segment s = {.trace = trace,
                         .sequence = i,
                         .row = first - trace->first_row,
                         .rows = last - first,
                         .position = other ? first - begin : checker->past[i] + first - begin,
                         .length = checker->past[i] + end - begin,
                         .positions = checker->positions + first,
                         .keys = checker->past[i] + (attend == VKA_ATTEND_FULL ? end : last) - begin};
            if (other)
                s.keys = checker->past[i] + kv_tokens;
            status = check_segment(checker, &s);
        }
        begin = end;
    }
    return status;
}

/* ---- the sum ---- */

/* The chunk that begins at first_row; a new one when a device is the first to report it. */
static check_chunk *chunk_at(stage_checker *checker, const vka_trace *trace)
{
    if (checker->chunk_count > 0 && checker->chunks[checker->chunk_count - 1].first_row == trace->first_row)
        return &checker->chunks[checker->chunk_count - 1];
    check_chunk *grown = realloc(checker->chunks, (checker->chunk_count + 1) * sizeof(*grown));
    if (grown == NULL)
        return NULL;
    checker->chunks = grown;
    grown[checker->chunk_count] = (check_chunk){.first_row = trace->first_row, .rows = trace->rows};
    return &grown[checker->chunk_count++];
}

static vka_status keep_partials(stage_checker *checker, const vka_trace *trace)
{
    size_t bytes = (size_t)trace->rows * checker->rig->desc.hidden_size * sizeof(float);
    check_chunk *chunk = chunk_at(checker, trace);

    for (uint32_t p = 0; chunk != NULL && p < trace->partials; p++) {
        float **list = realloc(chunk->partial, (chunk->partials + 2) * sizeof(*list)); /* and room for the bias */
        chunk->partial = list != NULL ? list : chunk->partial;
        float *copy = list != NULL ? malloc(bytes) : NULL;
        if (copy == NULL)
            return vka_fail(&checker->error, VKA_ERR_HOST_MEMORY, "no memory");
        memcpy(copy, (const unsigned char *)trace->partial + p * bytes, bytes);
        chunk->partial[chunk->partials++] = copy;
    }
    return chunk != NULL ? VKA_OK : vka_fail(&checker->error, VKA_ERR_HOST_MEMORY, "no memory");
}

/* Adds the squares of one head of the chunk. */
static void add_squares(const stage_checker *checker, const vka_trace *trace, const float *bias, size_t column,
                        double *squares)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const verify_epilogue_params params = {.rows = trace->rows,
                                           .heads = 1,
                                           .head_dim = desc->head_dim,
                                           .raw = trace->qkv + column,
                                           .raw_stride = qkv_columns(checker, trace),
                                           .bias = bias,
                                           .desc = desc};

    verify_add_squares(&params, squares);
}

/* Squares of all devices, each KV head once, and the factors, which must be the same on all. */
static vka_status keep_squares(stage_checker *checker, const vka_trace *trace)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    const vka_layer_weights *w = &checker->rig->weights;
    check_chunk *chunk = chunk_at(checker, trace);
    size_t bytes = 2 * (size_t)trace->rows * sizeof(float);

    if (!norms_rows(desc))
        return VKA_OK;
    if (chunk->squares == NULL) {
        chunk->squares = calloc(2 * (size_t)trace->rows, sizeof(double));
        chunk->factors = malloc(bytes);
        memset(checker->counted, 0, sizeof(checker->counted));
        require(chunk->squares != NULL && chunk->factors != NULL, "no memory");
        memcpy(chunk->factors, trace->norm_factor, bytes);
    }
    if (memcmp(chunk->factors, trace->norm_factor, bytes) != 0)
        return vka_fail(&checker->error, VKA_ERR_ARGUMENT, "device %u has other norm factors", trace->device);
    for (uint32_t i = 0; i < trace->q_heads; i++)
        add_squares(checker, trace, q_bias_of(desc, w, trace->q_head[i], false), (size_t)i * desc->head_dim,
                    chunk->squares);
    for (uint32_t i = 0; i < trace->kv_heads; i++) {
        uint32_t head = trace->kv_head[i];
        if (!checker->counted[head])
            add_squares(checker, trace, bias_of(&w->k_bias, head, desc->head_dim),
                        k_column(desc, trace) + (size_t)i * desc->head_dim, chunk->squares + trace->rows);
        checker->counted[head] = true;
    }
    return VKA_OK;
}

static void check_factors(stage_checker *checker, const check_chunk *chunk)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    verify_result result = {0};

    for (size_t r = 0; chunk->squares != NULL && r < chunk->rows; r++) {
        verify_factor(&result, r, (double)chunk->factors[2 * r], chunk->squares[r],
                      (size_t)desc->heads * desc->head_dim, desc->norm_eps);
        verify_factor(&result, r, (double)chunk->factors[2 * r + 1], chunk->squares[chunk->rows + r],
                      (size_t)desc->kv_heads * desc->head_dim, desc->norm_eps);
    }
    note(checker, STAGE_EPILOGUE, VKA_OK, &result);
}

int check_trace(void *user, const vka_trace *trace)
{
    stage_checker *checker = user;
    vka_status status = check_heads(checker, trace);

    if (status == VKA_OK)
        status = check_upload(checker, trace);
    if (status == VKA_OK)
        status = check_qkv(checker, trace);
    if (status == VKA_OK)
        status = check_sequences(checker, trace);
    if (status == VKA_OK && !trace->appends)
        status = check_output(checker, trace);
    if (status == VKA_OK && !trace->appends)
        status = keep_partials(checker, trace);
    if (status == VKA_OK && !trace->appends)
        status = keep_squares(checker, trace);
    return (int)status;
}

/* The output bias counts as one more partial. */
static void add_bias(stage_checker *checker, check_chunk *chunk)
{
    size_t hidden = checker->rig->desc.hidden_size;
    const float *bias = checker->rig->weights.o_bias.data;

    if (bias == NULL)
        return;
    float *rows = malloc(chunk->rows * hidden * sizeof(float));
    require(rows != NULL, "no memory");
    for (size_t r = 0; r < chunk->rows; r++)
        memcpy(rows + r * hidden, bias, hidden * sizeof(float));
    chunk->partial[chunk->partials++] = rows;
}

static void check_sum(stage_checker *checker, check_chunk *chunk, const float *output)
{
    size_t hidden = checker->rig->desc.hidden_size;
    verify_result result = {0};
    vka_error error;

    add_bias(checker, chunk);
    const verify_sum_params params = {.partials = chunk->partials,
                                      .count = chunk->rows * hidden,
                                      .partial = (const float *const *)chunk->partial,
                                      .got = output + chunk->first_row * hidden,
                                      .got_dtype = checker->call->output,
                                      .mutant = checker->report.mutant};
    verify_sum_params resolved = params;
    if (resolved.got_dtype == VKA_DTYPE_DEFAULT)
        resolved.got_dtype = VKA_F32;
    require(verify_sum(&resolved, &result, &error) == VKA_OK, "%s", error.message);
    note(checker, STAGE_SUM, VKA_OK, &result);
}

void check_end(stage_checker *checker, const float *output)
{
    const vka_layer_desc *desc = &checker->rig->desc;
    size_t rows = rig_rows(checker->call), next = 0;
    uint32_t devices = 0, heads[VKA_MAX_HEADS];

    for (uint32_t i = 0; i < checker->chunk_count; i++) {
        assert_int_equal(checker->chunks[i].first_row, next);
        next += checker->chunks[i].rows;
        check_sum(checker, &checker->chunks[i], output);
        check_factors(checker, &checker->chunks[i]);
    }
    assert_int_equal(next, rows);
    for (uint32_t d = 0; d < checker->rig->devices; d++)
        devices += heads_of_device(checker->rig, d, false, heads) > 0;
    if (checker->input != NULL)
        assert_int_equal(checker->report.stages[STAGE_UPLOAD].elements,
                         devices *
                             (rows * desc->hidden_size + rig_kv_rows(checker->call) * (size_t)desc->kv_hidden_size));
    size_t attended = desc->kv_lora_rank > 0 ? verify_latent_attention_elements(desc) : desc->v_head_dim;
    assert_int_equal(checker->report.stages[STAGE_ATTENTION].elements, rows * desc->heads * attended);
    assert_int_equal(checker->report.stages[STAGE_SUM].elements, rows * desc->hidden_size);
    if (checker->call->report != NULL)
        *checker->call->report = checker->report;
}

void check_free(stage_checker *checker)
{
    for (uint32_t i = 0; i < checker->chunk_count; i++) {
        for (uint32_t p = 0; p < checker->chunks[i].partials; p++)
            free(checker->chunks[i].partial[p]);
        free(checker->chunks[i].partial);
        free(checker->chunks[i].squares);
        free(checker->chunks[i].factors);
    }
    free(checker->chunks);
    free(checker->positions);
}

void check_require(const stage_report *report, const char *name)
{
    for (int which = STAGE_QKV; which < STAGE_COUNT; which++) {
        const verify_result *r = &report->stages[which];
        require(verify_passed(r), "%s: stage %s is %g times its bound at %zu: got %.9g, want %.9g, bound %g, %zu bad",
                name, stage_name((check_stage)which), r->max_ratio, r->index, r->got, r->want, r->bound, r->nonfinite);
    }
    require(report->stages[STAGE_UPLOAD].max_ratio == 0, "%s: the hidden states differ at %zu", name,
            report->stages[STAGE_UPLOAD].index);
}
