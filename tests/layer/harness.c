/* See harness.h. */
#include "layer/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "layer/check.h"
#include "support/validation.h"

/* ---- contexts ---- */

static struct {
    support_devices devices;
    char grammar[64];
    vka_context *context;
} shared;

vka_context_params harness_params(void)
{
    vka_context_params params = {.struct_size = sizeof(params), .no_pipeline_cache = 1, .no_tuning_cache = 1};

    support_validate(&params);
    return params;
}

const support_devices *harness_devices(void)
{
    if (shared.devices.count == 0) {
        support_find_devices(&shared.devices);
        const uint32_t *index = shared.devices.index, last = shared.devices.count - 1;
        snprintf(shared.grammar, sizeof(shared.grammar), "%u,%u,%u", index[0], index[last], index[0]);
    }
    return &shared.devices;
}

const char *harness_grammar(void)
{
    (void)harness_devices();
    return shared.grammar;
}

vka_context *harness_context(void)
{
    if (shared.context == NULL) {
        vka_context_params params = harness_params();
        vka_error error;
        params.devices = harness_grammar();
        require(vka_context_create(&shared.context, &params, &error) == VKA_OK, "%s", error.message);
    }
    return shared.context;
}

void harness_close(void)
{
    vka_context_destroy(&shared.context);
}

/* ---- layers ---- */

static vka_dtype or_f32(vka_dtype dtype)
{
    return dtype != VKA_DTYPE_DEFAULT ? dtype : VKA_F32;
}

static vka_status make_weights(layer_rig *rig, vka_error *error)
{
    const vka_generate_params params = {.struct_size = sizeof(params),
                                        .dtype = or_f32(rig->setup.weights),
                                        .seed = 20250611,
                                        .qkv_bias = rig->setup.qkv_bias,
                                        .o_bias = rig->setup.o_bias};
    vka_status status = vka_weights_generate(&rig->generated, &rig->setup.desc, &params, error);

    if (status == VKA_OK)
        rig->weights = *vka_weights_view(rig->generated);
    return status;
}

vka_status rig_try_open(layer_rig *out, vka_context *context, const layer_case *setup, vka_error *error)
{
    *out = (layer_rig){.setup = *setup, .context = context, .devices = vka_context_device_count(context)};
    out->setup.desc.struct_size = sizeof(vka_layer_desc);
    vka_layer_params layer = {.struct_size = sizeof(layer),
                              .desc = &out->setup.desc,
                              .weights = &out->weights,
                              .grid = {.tp = setup->tp},
                              .place = setup->place,
                              .weight_dtype = setup->stored,
                              .reproducible = setup->reproducible};
    const vka_cache_params cache = {.struct_size = sizeof(cache),
                                    .page_size = setup->page_size,
                                    .pages = setup->pages != 0 ? setup->pages : 64,
                                    .layers = setup->cache_layers,
                                    .dtype = or_f32(setup->cache)};
    vka_status status = make_weights(out, error);

    for (uint32_t i = 0; i < RIG_SEQUENCES; i++)
        out->stream[i] = i;
    if (status == VKA_OK)
        status = vka_layer_create(&out->layer, context, &layer, error);
    if (status == VKA_OK) {
        out->desc = *vka_layer_get_desc(out->layer);
        status = vka_cache_create(&out->cache, out->layer, &cache, error);
    }
    if (status != VKA_OK)
        rig_close(out);
    return status;
}

void rig_open(layer_rig *out, vka_context *context, const layer_case *setup)
{
    vka_error error;

    require(rig_try_open(out, context, setup, &error) == VKA_OK, "%s: %s", setup->name, error.message);
}

void rig_close(layer_rig *rig)
{
    vka_cache_destroy(&rig->cache);
    vka_layer_destroy(&rig->layer);
    vka_weights_free(&rig->generated);
}

uint32_t rig_sequence(layer_rig *rig)
{
    uint32_t id = UINT32_MAX;
    vka_error error;

    require(vka_cache_sequence_new(rig->cache, &id, &error) == VKA_OK, "%s", error.message);
    require(id < RIG_SEQUENCES, "sequence %u", id);
    return id;
}

uint32_t rig_length(const layer_rig *rig, uint32_t sequence, uint32_t cache_layer)
{
    uint32_t length = UINT32_MAX;
    vka_error error;

    require(vka_cache_sequence_length(rig->cache, sequence, cache_layer, &length, &error) == VKA_OK, "%s",
            error.message);
    return length;
}

void rig_hidden(const layer_rig *rig, uint32_t stream, uint32_t position, float *out)
{
    static const float bad[] = {NAN, INFINITY, 1e30f};

    vka_random_fill(out, rig->desc.hidden_size, sqrt(3.0), 1, stream, (uint64_t)position * rig->desc.hidden_size);
    for (uint32_t i = 0; stream >= STREAM_NAN && i < rig->desc.hidden_size; i++)
        out[i] = copysignf(bad[stream - STREAM_NAN], out[i]);
}

void rig_kv_hidden(const layer_rig *rig, uint32_t stream, uint32_t position, float *out)
{
    vka_random_fill(out, rig->desc.kv_hidden_size, sqrt(3.0), 2, stream, (uint64_t)position * rig->desc.kv_hidden_size);
}

/* ---- calls ---- */

enum { GUARD = 0xff }; /* every byte of unused elements: NaN in every type */

/* Host memory of a call as the engine sees it. */
typedef struct host_rows {
    vka_dtype dtype;
    size_t rows, cols, stride;
    unsigned char *data;
} host_rows;

static host_rows make_rows(size_t rows, size_t cols, uint32_t gap, vka_dtype dtype)
{
    host_rows made = {or_f32(dtype), rows, cols, cols + gap, NULL};
    size_t bytes = rows * made.stride * vka_dtype_size(made.dtype);

    made.data = malloc(bytes);
    require(made.data != NULL, "no memory");
    memset(made.data, GUARD, bytes);
    return made;
}

static unsigned char *row_at(const host_rows *rows, size_t row)
{
    return rows->data + row * rows->stride * vka_dtype_size(rows->dtype);
}

/* The hidden states of a call; then `values` holds them as the engine gets them, rounded to the type. */
static host_rows make_input(const layer_rig *rig, const rig_call *call, float *values)
{
    uint32_t hidden = rig->desc.hidden_size, row = 0;
    host_rows input = make_rows(rig_rows(call), hidden, call->input_gap, call->input);

    for (uint32_t i = 0; i < call->count; i++) {
        uint32_t sequence = call->entries[i].sequence, past = 0;
        (void)vka_cache_sequence_length(rig->cache, sequence, call->cache_layer, &past, NULL);
        for (uint32_t t = 0; t < call->entries[i].new_tokens; t++, row++) {
            float *value = values + (size_t)row * hidden;
            rig_hidden(rig, rig->stream[sequence % RIG_SEQUENCES], past + t, value);
            vka_convert(row_at(&input, row), input.dtype, value, VKA_F32, hidden);
            vka_convert(value, VKA_F32, row_at(&input, row), input.dtype, hidden);
        }
    }
    return input;
}

/* The rows of kv_input, likewise. */
static host_rows make_kv_input(const layer_rig *rig, const rig_call *call, float *values)
{
    uint32_t hidden = rig->desc.kv_hidden_size, row = 0;
    host_rows input = make_rows(rig_kv_rows(call) + 1, hidden, call->input_gap, call->input);

    input.rows--;
    for (uint32_t i = 0; i < call->count; i++) {
        uint32_t sequence = call->entries[i].sequence, past = 0;
        (void)vka_cache_sequence_length(rig->cache, sequence, call->cache_layer, &past, NULL);
        for (uint32_t t = 0; call->kv_tokens != NULL && t < call->kv_tokens[i]; t++, row++) {
            float *value = values + (size_t)row * hidden;
            rig_kv_hidden(rig, rig->stream[sequence % RIG_SEQUENCES], past + t, value);
            vka_convert(row_at(&input, row), input.dtype, value, VKA_F32, hidden);
            vka_convert(value, VKA_F32, row_at(&input, row), input.dtype, hidden);
        }
    }
    return input;
}

/* The result as F32; nothing between the rows was touched. */
static void read_output(const host_rows *output, float *values)
{
    size_t size = vka_dtype_size(output->dtype);

    for (size_t row = 0; row < output->rows; row++) {
        const unsigned char *from = row_at(output, row);
        vka_convert(values + row * output->cols, VKA_F32, from, output->dtype, output->cols);
        for (size_t i = output->cols * size; i < output->stride * size; i++)
            require(from[i] == GUARD, "byte %zu behind row %zu was written", i, row);
    }
}

static vka_forward_params make_params(layer_rig *rig, const rig_call *call, const host_rows *input,
                                      const host_rows *output)
{
    vka_forward_params params = {
        .struct_size = sizeof(params),
        .layer = rig->layer,
        .cache = rig->cache,
        .cache_layer = call->cache_layer,
        .batch = {call->entries, call->count},
        .output = {output->data, output->dtype, output->rows, output->cols, output->stride},
        .output_buffers = call->output_buffers,
        .k_output = call->k_output,
        .v_output = call->v_output,
        .kv_tokens = call->kv_tokens,
        .positions = call->positions,
        .position_rows = call->position_rows,
        .timing = call->timing,
    };

    if (call->input_buffers != NULL)
        params.input_buffers = call->input_buffers;
    else
        params.input = (vka_tensor){input->data, input->dtype, input->rows, input->cols, input->stride};
    return params;
}

uint32_t rig_rows(const rig_call *call)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; i < call->count; i++)
        rows += call->entries[i].new_tokens;
    return rows;
}

uint32_t rig_kv_rows(const rig_call *call)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; call->kv_tokens != NULL && i < call->count; i++)
        rows += call->kv_tokens[i];
    return rows;
}

vka_status rig_try_forward(layer_rig *rig, const rig_call *call, vka_error *error)
{
    size_t elements = (size_t)rig_rows(call) * rig->desc.hidden_size;
    float *values = calloc(elements + 1, sizeof(float)), *result = calloc(elements + 1, sizeof(float));
    float *kv_values = calloc((size_t)rig_kv_rows(call) * rig->desc.kv_hidden_size + 1, sizeof(float));
    host_rows input = make_input(rig, call, values), kv_input = make_kv_input(rig, call, kv_values);
    host_rows output = make_rows(rig_rows(call), rig->desc.hidden_size, call->output_gap, call->output);
    vka_forward_params params = make_params(rig, call, &input, &output);
    stage_checker checker = {0};

    if (kv_input.rows > 0)
        params.kv_input = (vka_tensor){kv_input.data, kv_input.dtype, kv_input.rows, kv_input.cols, kv_input.stride};
    if (!call->unchecked) {
        check_begin(&checker, rig, call, call->input_buffers != NULL ? NULL : values);
        checker.kv_input = kv_values;
        params.trace = check_trace;
        params.trace_user = &checker;
    }
    vka_status status = vka_forward(&params, error);
    if (status == VKA_OK) {
        read_output(&output, result);
        if (!call->unchecked)
            check_end(&checker, result);
        if (call->result != NULL)
            memcpy(call->result, result, elements * sizeof(float));
    }
    if (checker.error.status != VKA_OK && error != NULL)
        *error = checker.error;
    if (status == VKA_OK && !call->unchecked && call->report == NULL)
        check_require(&checker.report, rig->setup.name);
    check_free(&checker);
    free(input.data);
    free(kv_input.data);
    free(kv_values);
    free(output.data);
    free(values);
    free(result);
    return status;
}

void rig_forward(layer_rig *rig, const rig_call *call)
{
    vka_error error;

    require(rig_try_forward(rig, call, &error) == VKA_OK, "%s: %s", rig->setup.name, error.message);
}

void rig_run(layer_rig *rig, uint32_t sequence, uint32_t tokens, float *result)
{
    const vka_batch_entry entry = {sequence, tokens};

    rig_forward(rig, &(rig_call){.entries = &entry, .count = 1, .result = result, .unchecked = true});
}

void rig_extend(layer_rig *rig, uint32_t sequence, uint32_t tokens, float *result)
{
    const vka_batch_entry entry = {sequence, tokens};

    rig_forward(rig, &(rig_call){.entries = &entry, .count = 1, .result = result});
}
