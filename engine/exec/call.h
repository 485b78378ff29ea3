/* The per-call parameter buffer: row records and page tables, the same on every device, followed by the device's own
 * tiles, head records and combine rows. Lengths, positions and page tables live here and nowhere else. */
#ifndef VKA_EXEC_CALL_H
#define VKA_EXEC_CALL_H

#include "exec/context.h"
#include "exec/pages.h"
#include "exec/pipelines.h"
#include "exec/steps.h"
#include "vkattn/layer_desc.h"

/* Room for `count` sequences in context->call. */
vka_status call_reserve_sequences(vka_context *context, uint32_t count, vka_error *error);
vka_status call_reserve_result(vka_context *context, size_t floats, vka_error *error);
void call_memory_free(call_memory *call, const vka_allocator *allocator);

/* 0: no RoPE */
uint32_t call_rotary_dim(const vka_layer_desc *desc);
/* Of the first turned element as angles take it: latent attention keeps the turned parts of its vectors apart. */
uint32_t call_rotary_offset(const vka_layer_desc *desc);

/* Words of one row record: 0 when the call has no epilogue (desc NULL). */
uint32_t call_record_words(const vka_layer_desc *desc);

/* Word at which the factors of a full-width QK-norm lie behind the records of `rows` rows: two floats a row, for Q and
 * K.
 */
uint32_t call_factors_offset(const vka_layer_desc *desc, uint32_t rows);

/* What the row records of a chunk are made from. */
typedef struct call_records {
    const vka_layer_desc *desc; /* NULL: there are no records */
    bool paged;                 /* rows have a place in their sequence's pages */
    const int32_t *positions;   /* [axes, rows] of the whole call; NULL: a row's place in its sequence */
    uint32_t axes;              /* 1 or 3 */
    uint32_t rows;              /* of the whole call */
    uint32_t first_row;         /* of the chunk in the call */
} call_records;

/* Fills context->call.words: records of all rows of the chunk, then each source's page table; sets pages_offset of the
 * sources. *words is the number of words. */
vka_status call_build_shared(vka_context *context, const call_records *records, uint32_t page_size,
                             uint32_t pages_per_slab, tile_source *sources, uint32_t count, uint32_t *words,
                             vka_error *error);

/* Head records of both attention kernels on one device. */
typedef struct call_heads {
    uint32_t kv_heads;
    const uint32_t *kv_q_begin;
    uint32_t prefill_records, decode_records;
    const float *sinks, *slopes; /* by local query head; NULL: none. Set by the caller */
} call_heads;
call_heads call_count_heads(const pipeline_set *set, uint32_t kv_heads, const uint32_t *kv_q_begin);

/* Writes the device's parameter buffer of `slot` behind `shared_words` shared words, from device->plan, and sets the
 * offsets and record counts of *step. The copy to the device is recorded. */
vka_status call_write_device(const vka_context *context, exec_device *device, uint32_t slot, recorder *rec,
                             const pipeline_set *set, const call_heads *heads, uint32_t shared_words,
                             attention_step *step, vka_error *error);

/* Bytes that call_write_device() needs. */
uint64_t call_device_bytes(const exec_device *device, const call_heads *heads, uint32_t shared_words);

#endif
