/* See call.h. */
#include "exec/call.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/threads.h"
#include "model/rope.h"

#define WORDS(type) ((uint32_t)(sizeof(type) / sizeof(uint32_t)))

vka_status call_reserve_sequences(vka_context *context, uint32_t count, vka_error *error)
{
    call_memory *call = &context->call;

    if (count <= call->capacity) {
        return VKA_OK;
    }
    call_sequence *sequences = vka_realloc(&context->allocator, call->sequences, count, sizeof(*sequences));
    call->sequences = sequences != NULL ? sequences : call->sequences;
    tile_source *sources = vka_realloc(&context->allocator, call->sources, count, sizeof(*sources));
    call->sources = sources != NULL ? sources : call->sources;
    if (sequences == NULL || sources == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a batch of %u sequences", count);
    }
    call->capacity = count;
    return VKA_OK;
}

vka_status call_reserve_result(vka_context *context, size_t floats, vka_error *error)
{
    call_memory *call = &context->call;

    if (floats <= call->result_capacity) {
        return VKA_OK;
    }
    float *result = vka_realloc(&context->allocator, call->result, floats, sizeof(*result));
    if (result == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu values of the result", floats);
    }
    call->result = result;
    call->result_capacity = floats;
    return VKA_OK;
}

static vka_status reserve_words(vka_context *context, size_t words, vka_error *error)
{
    call_memory *call = &context->call;

    if (words <= call->word_capacity) {
        return VKA_OK;
    }
    size_t capacity = words + words / 2; /* page tables grow with every few decoded tokens */
    uint32_t *grown = vka_realloc(&context->allocator, call->words, capacity, sizeof(*grown));
    if (grown == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu words of call parameters", capacity);
    }
    call->words = grown;
    call->word_capacity = capacity;
    return VKA_OK;
}

void call_memory_free(call_memory *call, const vka_allocator *allocator)
{
    vka_free(allocator, call->sequences);
    vka_free(allocator, call->sources);
    vka_free(allocator, call->words);
    vka_free(allocator, call->result);
    memset(call, 0, sizeof(*call));
}

uint32_t call_rotary_dim(const vka_layer_desc *desc)
{
    return desc->rope_type == VKA_ROPE_NONE ? 0 : desc->rotary_dim;
}

uint32_t call_rotary_offset(const vka_layer_desc *desc)
{
    return desc->kv_lora_rank > 0 ? 0 : desc->rotary_offset;
}

uint32_t call_record_words(const vka_layer_desc *desc)
{
    return desc == NULL ? 0
                        : WORDS(epilogue_row) + 2 * EPILOGUE_ANGLES(call_rotary_offset(desc), call_rotary_dim(desc));
}

uint32_t call_factors_offset(const vka_layer_desc *desc, uint32_t rows)
{
    return rows * call_record_words(desc);
}

static uint32_t factor_words(const vka_layer_desc *desc, uint32_t rows)
{
    return desc != NULL && desc->qk_norm == VKA_QK_NORM_FULL_WIDTH ? 2 * rows : 0;
}

typedef struct record_job {
    const call_records *records;
    rope_table rope; /* of the source's sequence */
    uint32_t step;   /* words of a record */
    const tile_source *source;
    uint32_t page_size, pages_per_slab;
    uint32_t *words; /* of the source's first row */
} record_job;

/* Position of a row of the source on an axis: as given for it, else its place in the sequence. */
static double row_position(const record_job *job, uint32_t row, uint32_t axis)
{
    const call_records *records = job->records;

    if (records->positions == NULL) {
        return (double)job->source->position + row;
    }
    size_t plane = records->axes > 1 ? axis * (size_t)records->rows : 0;
    return records->positions[plane + records->first_row + job->source->row + row];
}

/* Factors of the elements and of their partners: computed in double, rounded once. */
static void write_angles(const record_job *job, uint32_t row, float *own)
{
    const vka_layer_desc *desc = job->records->desc;
    bool interleaved = desc->rope_pairing == VKA_ROPE_INTERLEAVED;
    uint32_t padded = EPILOGUE_ANGLES(call_rotary_offset(desc), 2 * job->rope.pairs);
    uint32_t step = interleaved ? 2 : 1, distance = interleaved ? 1 : job->rope.pairs;
    float *partner = own + padded;

    memset(own, 0, 2 * padded * sizeof(*own));
    for (uint32_t i = 0; i < job->rope.pairs; i++) {
        uint32_t first = call_rotary_offset(desc) % 4 + i * step, second = first + distance;
        double angle = row_position(job, row, job->rope.axis[i]) * job->rope.inverse[i];
        own[first] = own[second] = (float)(job->rope.factor * cos(angle));
        partner[second] = (float)(job->rope.factor * sin(angle));
        partner[first] = -partner[second];
    }
}

static epilogue_row row_place(const record_job *job, uint32_t row)
{
    uint32_t place = (uint32_t)job->source->position + row;
    uint32_t page = job->source->pages[place / job->page_size];

    return (epilogue_row){
        .slab = page / job->pages_per_slab, .page = page % job->pages_per_slab, .slot = place % job->page_size};
}

static void write_records(void *user, size_t begin, size_t end)
{
    const record_job *job = user;

    for (size_t r = begin; r < end; r++) {
        const epilogue_row record = job->records->paged ? row_place(job, (uint32_t)r) : (epilogue_row){0};
        uint32_t *out = job->words + r * job->step;
        memcpy(out, &record, sizeof(record));
        write_angles(job, (uint32_t)r, (float *)(void *)(out + WORDS(epilogue_row)));
    }
}

/* Records of one source; the table of the source before it serves where it does not depend on the length. */
static void write_source(record_job *job, const tile_source *source, uint32_t *words)
{
    const vka_layer_desc *desc = job->records->desc;

    if (job->source == NULL || rope_length_limit(desc) > 0) {
        rope_table_make(&job->rope, desc, source->keys);
    }
    job->source = source;
    job->words = words;
    vka_parallel_for(source->rows, 64, write_records, job);
}

static uint32_t table_entries(const tile_source *source, uint32_t page_size)
{
    return source->keys == 0 ? 0 : (source->keys - 1) / page_size + 1;
}

static void write_page_table(const tile_source *source, uint32_t page_size, uint32_t pages_per_slab, uint32_t *out)
{
    uint32_t entries = table_entries(source, page_size);

    for (uint32_t i = 0; i < entries; i++) {
        out[i] = source->pages[i] % pages_per_slab;
    }
}

vka_status call_build_shared(vka_context *context, const call_records *records, uint32_t page_size,
                             uint32_t pages_per_slab, tile_source *sources, uint32_t count, uint32_t *words,
                             vka_error *error)
{
    uint32_t step = call_record_words(records->desc), rows = 0;
    size_t total = 0;

    for (uint32_t i = 0; i < count; i++) {
        rows += sources[i].rows;
        total += table_entries(&sources[i], page_size);
    }
    total += (size_t)rows * step + factor_words(records->desc, rows);
    vka_status status = reserve_words(context, total, error);
    if (status != VKA_OK) {
        return status;
    }
    size_t table = (size_t)rows * step + factor_words(records->desc, rows);
    record_job job = {.records = records, .step = step, .page_size = page_size, .pages_per_slab = pages_per_slab};
    for (uint32_t i = 0; i < count; i++) {
        if (records->desc != NULL) {
            write_source(&job, &sources[i], context->call.words + (size_t)sources[i].row * step);
        }
        write_page_table(&sources[i], page_size, pages_per_slab, context->call.words + table);
        sources[i].pages_offset = (uint32_t)table;
        table += table_entries(&sources[i], page_size);
    }
    *words = (uint32_t)total;
    return VKA_OK;
}

call_heads call_count_heads(const pipeline_set *set, uint32_t kv_heads, const uint32_t *kv_q_begin)
{
    const vka_variant *prefill = set->kernel[VKA_KERNEL_PREFILL].variant;
    const vka_variant *decode = set->kernel[VKA_KERNEL_DECODE].variant;

    return (call_heads){kv_heads,
                        kv_q_begin,
                        tile_head_records(kv_heads, kv_q_begin, prefill->tile_cols, NULL),
                        tile_head_records(kv_heads, kv_q_begin, decode->tile_cols, NULL),
                        NULL,
                        NULL};
}

/* Words of sinks or slopes, where there are some. */
static uint32_t term_words(const call_heads *heads, const float *terms)
{
    return terms != NULL ? heads->kv_q_begin[heads->kv_heads] : 0;
}

static void write_terms(const call_heads *heads, const float *terms, uint32_t *out)
{
    if (terms != NULL) {
        memcpy(out, terms, term_words(heads, terms) * sizeof(float));
    }
}

uint64_t call_device_bytes(const exec_device *device, const call_heads *heads, uint32_t shared_words)
{
    uint64_t words = (uint64_t)shared_words + (uint64_t)device->plan.tile_count * WORDS(attention_tile) +
                     (uint64_t)(heads->prefill_records + heads->decode_records) * WORDS(attention_heads) +
                     (uint64_t)device->plan.row_count * WORDS(combine_row) + term_words(heads, heads->sinks) +
                     term_words(heads, heads->slopes);

    return words * sizeof(uint32_t);
}

vka_status call_write_device(const vka_context *context, exec_device *device, uint32_t slot, recorder *rec,
                             const pipeline_set *set, const call_heads *heads, uint32_t shared_words,
                             attention_step *step, vka_error *error)
{
    staged_tensor *tensor = &device->scratch[EXEC_SCRATCH_CALL][slot];
    const tile_plan *plan = &device->plan;
    uint64_t bytes = call_device_bytes(device, heads, shared_words);
    uint32_t *words = staged_host(tensor);

    step->plan = plan;
    step->call = tensor->buffer;
    step->prefill_records = heads->prefill_records;
    step->decode_records = heads->decode_records;
    step->tiles_offset = shared_words;
    step->prefill_heads_offset = step->tiles_offset + plan->tile_count * WORDS(attention_tile);
    step->decode_heads_offset = step->prefill_heads_offset + heads->prefill_records * WORDS(attention_heads);
    step->combine_offset = step->decode_heads_offset + heads->decode_records * WORDS(attention_heads);
    step->sinks_offset = step->combine_offset + plan->row_count * WORDS(combine_row);
    step->slopes_offset = step->sinks_offset + term_words(heads, heads->sinks);

    memcpy(words, context->call.words, shared_words * sizeof(uint32_t));
    for (uint32_t i = 0; i < plan->tile_count; i++) {
        memcpy(words + step->tiles_offset + i * WORDS(attention_tile), &plan->tiles[i].tile, sizeof(attention_tile));
    }
    tile_head_records(heads->kv_heads, heads->kv_q_begin, set->kernel[VKA_KERNEL_PREFILL].variant->tile_cols,
                      (attention_heads *)(void *)(words + step->prefill_heads_offset));
    tile_head_records(heads->kv_heads, heads->kv_q_begin, set->kernel[VKA_KERNEL_DECODE].variant->tile_cols,
                      (attention_heads *)(void *)(words + step->decode_heads_offset));
    if (plan->row_count > 0) {
        memcpy(words + step->combine_offset, plan->rows, plan->row_count * sizeof(combine_row));
    }
    write_terms(heads, heads->sinks, words + step->sinks_offset);
    write_terms(heads, heads->slopes, words + step->slopes_offset);
    return staged_push(tensor, rec, bytes, error);
}
