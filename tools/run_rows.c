/* Hidden states of a run: generated, or the rows of a safetensors file; and the file that takes the result. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "run.h"

/* Streams of the generator below this one belong to weights. */
#define STREAM_INPUT    1000u
#define STREAM_KV_INPUT 1001u

static vka_status allocate(run_rows *rows, vka_error *error)
{
    rows->input = vka_alloc(NULL, rows->rows, sizeof(float) * rows->hidden);
    if (!rows->input)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u rows of %u hidden states", rows->rows,
                        rows->hidden);
    return VKA_OK;
}

static vka_status set_lengths(run_rows *rows, uint32_t sequences, uint32_t tokens, vka_error *error)
{
    uint64_t total = 0;

    rows->sequences = sequences;
    rows->prefill = vka_alloc(NULL, sequences, sizeof(rows->prefill[0]));
    if (!rows->prefill)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u sequences", sequences);
    for (uint32_t s = 0; s < sequences; s++) {
        rows->prefill[s] = (uint32_t)(((uint64_t)tokens * (sequences - s) + sequences - 1) / sequences);
        total += rows->prefill[s];
    }
    rows->prefill_rows = (uint32_t)total;
    total += (uint64_t)rows->decode * sequences;
    if (total > INT32_MAX)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%" PRIu64 " rows in all are too many; lower --tokens, --decode or "
                        "--sequences",
                        total);
    rows->rows = (uint32_t)total;
    return VKA_OK;
}

/* The tensor named "hidden", or the only one. */
static vka_status choose_tensor(const vka_tensor_file *file, const run_options *options, uint32_t hidden,
                                const vka_named_tensor **out, vka_error *error)
{
    const vka_named_tensor *tensor = vka_tensor_file_find(file, "hidden");

    if (!tensor && vka_tensor_file_count(file) == 1)
        tensor = vka_tensor_file_at(file, 0);
    if (!tensor)
        return vka_fail(error, VKA_ERR_FORMAT,
                        "%s holds %zu tensors and none is called hidden; expected one called "
                        "hidden, or a single tensor",
                        options->input, vka_tensor_file_count(file));
    if (tensor->dims != 2 || tensor->shape[1] != hidden)
        return vka_fail(error, VKA_ERR_FORMAT,
                        "tensor %s of %s has %u dimensions, the last of %" PRIu64 "; expected "
                        "[tokens, %u]",
                        tensor->name, options->input, tensor->dims, tensor->dims ? tensor->shape[tensor->dims - 1] : 0,
                        hidden);
    if (tensor->shape[0] <= options->decode || tensor->shape[0] > INT32_MAX)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s has %" PRIu64 " rows; --decode %u takes the last %u of them, and "
                        "at least one must be left for prefill",
                        options->input, tensor->shape[0], options->decode, options->decode);
    *out = tensor;
    return VKA_OK;
}

static vka_status read_rows(run_rows *rows, const run_options *options, vka_error *error)
{
    const vka_named_tensor *tensor = NULL;
    vka_tensor_file *file = NULL;
    vka_status status = vka_tensor_file_open(&file, options->input, error);

    if (!status)
        status = choose_tensor(file, options, rows->hidden, &tensor, error);
    if (!status)
        status = set_lengths(rows, 1, (uint32_t)tensor->shape[0] - options->decode, error);
    if (!status)
        status = allocate(rows, error);
    if (!status)
        vka_convert(rows->input, VKA_F32, tensor->data, tensor->dtype, (size_t)rows->rows * rows->hidden);
    vka_tensor_file_close(&file);
    return status;
}

static vka_status generate_rows(run_rows *rows, const run_options *options, vka_error *error)
{
    vka_status status = set_lengths(rows, options->sequences, options->tokens, error);

    if (!status)
        status = allocate(rows, error);
    if (!status)
        vka_random_fill(rows->input, (size_t)rows->rows * rows->hidden, 1.0, options->seed, STREAM_INPUT, 0);
    return status;
}

static vka_status generate_kv_rows(run_rows *rows, const run_options *options, vka_error *error)
{
    rows->kv_input = vka_alloc(NULL, rows->prefill_rows, sizeof(float) * rows->kv_hidden);
    if (!rows->kv_input)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %u rows of other sequences", rows->prefill_rows);
    vka_random_fill(rows->kv_input, (size_t)rows->prefill_rows * rows->kv_hidden, 1.0, options->seed, STREAM_KV_INPUT,
                    0);
    return VKA_OK;
}

vka_status run_rows_make(run_rows *out, const run_options *options, const vka_layer_desc *desc, vka_error *error)
{
    vka_status status;

    *out = (run_rows){.hidden = desc->hidden_size, .kv_hidden = desc->kv_hidden_size, .decode = options->decode};
    status = options->input ? read_rows(out, options, error) : generate_rows(out, options, error);
    if (!status && desc->attend == VKA_ATTEND_CROSS)
        status = generate_kv_rows(out, options, error);
    return status;
}

vka_status run_rows_write(const run_rows *rows, const float *output, const char *path, vka_error *error)
{
    vka_named_tensor tensor = {
        .name = "hidden", .dtype = VKA_F32, .dims = 2, .shape = {rows->rows, rows->hidden}, .data = output};

    return vka_tensor_file_write(path, &tensor, 1, error);
}

void run_rows_free(run_rows *rows)
{
    vka_free(NULL, rows->prefill);
    vka_free(NULL, rows->input);
    vka_free(NULL, rows->kv_input);
    *rows = (run_rows){0};
}
