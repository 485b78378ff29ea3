/* See hf_block.h. */
#include "layer/hf_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_rows find_rows(const hf_block *b, const char *name, uint32_t cols)
{
    const vka_named_tensor *found = vka_tensor_file_find(b->reference, name);

    if (!found)
        return (hf_rows){0};
    require(found->dtype == VKA_F32 && found->dims == 2, "%s: %s is no matrix of F32", b->name, name);
    require(found->shape[1] == cols, "%s: %s has %u columns, expected %u", b->name, name, (unsigned)found->shape[1],
            cols);
    return (hf_rows){found->data, (uint32_t)found->shape[0], cols};
}

/* Integers of the file, as many as there are; the number of rows where it is a matrix, else 1. */
static uint32_t find_integers(const hf_block *b, const char *name, int32_t **out, uint32_t *count)
{
    const vka_named_tensor *found = vka_tensor_file_find(b->reference, name);
    uint64_t total = 1;

    *out = NULL;
    *count = 0;
    if (!found)
        return 0;
    for (uint32_t i = 0; i < found->dims; i++)
        total *= found->shape[i];
    *out = malloc(total * sizeof(**out));
    *count = (uint32_t)total;
    for (uint64_t i = 0; i < total; i++) {
        int64_t value; /* the library shows tensors of I64 without reading them */
        memcpy(&value, (const char *)found->data + i * sizeof(value), sizeof(value));
        (*out)[i] = (int32_t)value;
    }
    return found->dims == 2 ? (uint32_t)found->shape[0] : 1;
}

static uint32_t find_lengths(const hf_block *b, const char *name, uint32_t lengths[HF_SEQUENCES])
{
    int32_t *found;
    uint32_t count;

    find_integers(b, name, &found, &count);
    require(count <= HF_SEQUENCES, "%s: %u sequences", b->name, count);
    for (uint32_t i = 0; i < count; i++)
        lengths[i] = (uint32_t)found[i];
    free(found);
    return count;
}

static void find_positions(hf_block *b)
{
    uint32_t total;
    uint32_t rows = find_integers(b, "positions", &b->positions, &total);

    b->position_rows = rows == 3 ? 3 : 0;
    b->position_count = rows == 3 ? total / 3 : total;
}

static void read_reference(hf_block *b)
{
    const vka_layer_desc *d = &b->desc;

    b->prefill_input = find_rows(b, "prefill_input", d->hidden_size);
    b->prefill_output = find_rows(b, "prefill_output", d->hidden_size);
    b->decode_input = find_rows(b, "decode_input", d->hidden_size);
    b->decode_output = find_rows(b, "decode_output", d->hidden_size);
    b->kv_input = find_rows(b, "kv_input", d->kv_hidden_size);
    b->k_output = find_rows(b, "k_output", d->kv_heads * d->head_dim);
    b->v_output = find_rows(b, "v_output", d->kv_heads * d->v_head_dim);
    b->cached_k = find_rows(b, "cached_k", d->kv_heads * d->head_dim);
    b->cached_v = find_rows(b, "cached_v", d->kv_heads * d->v_head_dim);
    require(b->prefill_input.rows > 0 && b->prefill_output.rows == b->prefill_input.rows, "%s: no prefill", b->name);
    require(b->decode_output.rows == b->decode_input.rows, "%s: decoding is not whole", b->name);
    b->sequences = find_lengths(b, "lengths", b->length);
    if (b->sequences == 0) {
        b->sequences = 1;
        b->length[0] = b->prefill_input.rows;
    }
    b->decode_steps = b->decode_input.rows / b->sequences;
    find_lengths(b, "kv_lengths", b->kv_length);
    find_positions(b);
}

bool hf_is_gguf(const hf_case *which)
{
    return strstr(which->folder, ".gguf") != NULL;
}

static void open_reference(hf_block *b, const hf_case *which, const char *name)
{
    static const char *const places[] = {"hf", "gguf"};
    int length = (int)(strlen(which->folder) - (hf_is_gguf(which) ? strlen(".gguf") : 0));
    char path[512];
    vka_error error;

    for (size_t i = 0; !b->reference && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s/%.*s/reference-%s.safetensors", VKA_TEST_DATA, places[i], length,
                 which->folder, name);
        (void)vka_tensor_file_open(&b->reference, path, &error);
    }
    require(b->reference != NULL, "%s", error.message);
}

void hf_open(hf_block *b, const hf_case *which)
{
    static const char *const kinds[] = {"layer", "cross", "encoder"};
    char path[512], reference[32];
    vka_error error;

    *b = (hf_block){0};
    snprintf(reference, sizeof(reference), "%s%u", kinds[which->block], which->layer);
    if (which->reference)
        snprintf(reference, sizeof(reference), "%s", which->reference);
    snprintf(b->name, sizeof(b->name), "%s %s", which->folder, reference);
    snprintf(path, sizeof(path), "%s/%s/%s", VKA_TEST_DATA, hf_is_gguf(which) ? "gguf" : "hf", which->folder);
    require(vka_model_open(&b->model, path, &error) == VKA_OK, "%s", error.message);
    require(vka_model_layer_load(&b->loaded, b->model, which->block, which->layer, &error) == VKA_OK, "%s",
            error.message);
    b->desc = *vka_model_layer_desc(b->loaded);
    b->weights = *vka_model_layer_weights(b->loaded);
    open_reference(b, which, reference);
    read_reference(b);
}

void hf_close(hf_block *b)
{
    free(b->positions);
    vka_tensor_file_close(&b->reference);
    vka_model_layer_free(&b->loaded);
    vka_model_close(&b->model);
}
