/* The verifier: copies what each call traces, checks it when the call is over, and keeps the verdict. */
#include "run_verify.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "progress.h"
#include "run_chain.h"
#include "run_verify_stages.h"

struct run_verifier {
    const run_layer *layer;
    const run_engine *engine;
    stage_vectors vectors;
    run_trace_list traces; /* of the call that runs */
    run_verdict verdict;
    bool incomplete; /* a call left rows or heads untraced */
};

const char *run_check_name(run_check check)
{
    static const char *const names[] = {"upload", "qkv", "epilogue", "attention", "output", "sum"};

    return names[check];
}

/* ---- results ---- */

size_t stage_k_column(const vka_trace *trace, const vka_layer_desc *desc)
{
    return (size_t)trace->q_heads * (desc->head_dim + (desc->gate != VKA_GATE_NONE ? desc->v_head_dim : 0));
}

size_t stage_qkv_columns(const vka_trace *trace, const vka_layer_desc *desc)
{
    if (desc->kv_lora_rank > 0)
        return verify_latent_qkv_columns(desc, trace->q_heads);
    return stage_k_column(trace, desc) + (size_t)trace->kv_heads * (desc->head_dim + desc->v_head_dim);
}

size_t stage_attention_elements(const vka_layer_desc *desc)
{
    return desc->kv_lora_rank > 0 ? verify_latent_attention_elements(desc) : desc->v_head_dim;
}

void stage_note(const stage_chunk *chunk, run_check check, stage_place place, const verify_result *result)
{
    run_worst *worst = &chunk->verdict->worst[check];
    bool first = chunk->verdict->elements[check] == 0;

    if (result->elements == 0)
        return;
    chunk->verdict->elements[check] += result->elements;
    if (!first && result->max_ratio <= worst->ratio)
        return;
    *worst = (run_worst){
        .ratio = result->max_ratio,
        .got = result->got,
        .want = result->want,
        .bound = result->bound,
        .device = chunk->trace->device,
        .row = (uint32_t)(chunk->trace->first_row + place.row + result->index / place.columns),
        .column = (uint32_t)(place.column + result->index % place.columns),
        .decoding = chunk->call->past[0] > 0,
    };
}

/* ---- calls ---- */

static int keep_trace(void *user, const vka_trace *trace)
{
    run_verifier *verifier = user;

    return run_trace_add(&verifier->traces, trace, &verifier->layer->source.desc) ? 0 : 1;
}

static vka_status check_chunk(const stage_chunk *chunk, vka_error *error)
{
    vka_status status = stage_check_upload(chunk, error);

    if (!status)
        status = stage_check_qkv(chunk, error);
    if (!status)
        status = stage_check_heads(chunk, error);
    return status ? status : stage_check_output(chunk, error);
}

/* Whether trace `i` is the first of its rows: the sum is checked once for all devices. */
static bool leads(const run_trace_list *traces, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (traces->items[j].trace.first_row == traces->items[i].trace.first_row)
            return false;
    return true;
}

static vka_status check_call(void *user, const run_call *call, vka_error *error)
{
    run_verifier *verifier = user;
    const vka_layer_desc *desc = &verifier->layer->source.desc;
    run_verdict *verdict = &verifier->verdict;
    uint64_t attention =
        verdict->elements[RUN_CHECK_ATTENTION] + (uint64_t)call->rows * desc->heads * stage_attention_elements(desc);
    uint64_t sums = verdict->elements[RUN_CHECK_SUM] + (uint64_t)call->rows * desc->hidden_size;
    vka_status status = VKA_OK;

    progress_show("verifying %u rows", call->rows);
    for (size_t i = 0; i < verifier->traces.count && !status; i++) {
        stage_chunk chunk = {
            verifier->layer, verifier->engine, &verifier->vectors, call, &verifier->traces.items[i].trace, verdict};

        status = check_chunk(&chunk, error);
        if (!status && leads(&verifier->traces, i))
            status = stage_check_factors(&chunk, &verifier->traces, error);
        if (!status && leads(&verifier->traces, i))
            status = stage_check_sum(&chunk, &verifier->traces, error);
    }
    verifier->incomplete |= verdict->elements[RUN_CHECK_ATTENTION] != attention;
    verifier->incomplete |= verdict->elements[RUN_CHECK_SUM] != sums;
    run_trace_clear(&verifier->traces);
    return status;
}

/* ---- the object ---- */

/* An optional vector as F32. */
static bool load_vector(float **out, const vka_tensor *tensor)
{
    if (!tensor->data)
        return true;
    *out = vka_alloc(NULL, (size_t)tensor->cols, sizeof(float));
    if (*out)
        vka_convert(*out, VKA_F32, tensor->data, tensor->dtype, (size_t)tensor->cols);
    return *out != NULL;
}

static bool load_vectors(stage_vectors *vectors, const vka_layer_weights *weights)
{
    return load_vector(&vectors->q_bias, &weights->q_bias) && load_vector(&vectors->k_bias, &weights->k_bias) &&
           load_vector(&vectors->v_bias, &weights->v_bias) && load_vector(&vectors->o_bias, &weights->o_bias) &&
           load_vector(&vectors->q_norm, &weights->q_norm) && load_vector(&vectors->k_norm, &weights->k_norm) &&
           load_vector(&vectors->sinks, &weights->sinks) && load_vector(&vectors->slopes, &weights->alibi_slopes);
}

vka_status run_verifier_create(run_verifier **out, const run_layer *layer, const run_engine *engine, vka_error *error)
{
    run_verifier *verifier = vka_alloc(NULL, 1, sizeof(*verifier));

    if (!verifier || !load_vectors(&verifier->vectors, &layer->weights)) {
        run_verifier_destroy(&verifier);
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "verification: no memory for biases and norm weights");
    }
    verifier->layer = layer;
    verifier->engine = engine;
    *out = verifier;
    return VKA_OK;
}

void run_verifier_destroy(run_verifier **verifier)
{
    run_verifier *gone = *verifier;

    if (!gone)
        return;
    run_trace_free(&gone->traces);
    vka_free(NULL, gone->vectors.q_bias);
    vka_free(NULL, gone->vectors.k_bias);
    vka_free(NULL, gone->vectors.v_bias);
    vka_free(NULL, gone->vectors.o_bias);
    vka_free(NULL, gone->vectors.q_norm);
    vka_free(NULL, gone->vectors.k_norm);
    vka_free(NULL, gone->vectors.sinks);
    vka_free(NULL, gone->vectors.slopes);
    vka_free(NULL, gone);
    *verifier = NULL;
}

run_observer run_verifier_observer(run_verifier *verifier)
{
    return (run_observer){.trace = keep_trace, .done = check_call, .user = verifier};
}

vka_status run_verifier_verdict(run_verifier *verifier, const run_rows *rows, const float *output, run_verdict *out,
                                vka_error *error)
{
    *out = verifier->verdict;
    for (uint32_t c = 0; c < RUN_CHECK_COUNT; c++)
        out->max_error_over_bound = fmax(out->max_error_over_bound, out->worst[c].ratio);
    if (verifier->incomplete)
        out->max_error_over_bound = INFINITY;
    progress_show("computing the float64 chain");
    return run_chain_nmse(verifier->layer, &verifier->vectors, vka_layer_weight_dtype(verifier->engine->layer), rows,
                          output, &out->nmse, error);
}
