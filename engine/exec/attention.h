/* The attention step alone: the same kernels and planner as a layer call, over a temporary cache with one page table
 * per batch entry. */
#ifndef VKA_EXEC_ATTENTION_H
#define VKA_EXEC_ATTENTION_H

#include "exec/planner.h"
#include "vkattn/attention.h"

typedef struct attention_call {
    vka_attention_params params; /* resolved */
    vka_context *context;
    exec_device *device;
    uint32_t qk_pad, v_pad;
    pipeline_set set;     /* its PACK writes the cache's dtype */
    pipeline_set set_f32; /* its PACK writes floats; nothing else is in it */
    uint32_t *kv_q_begin; /* [kv_heads + 1] */
    uint32_t *pages;      /* [batch * batch_pages]: 0, 1, 2, ... */
    uint32_t batch_pages; /* per batch entry */
    uint32_t page_elements, v_offset;
    gpu_buffer **slabs;
    uint32_t slab_count;
    chunk_planner planner;
    double gpu_ms, wall_ms;
    const vka_variant *variant; /* of the first launch */
} attention_call;

vka_status exec_attention(vka_context *context, const vka_attention_params *params, vka_error *error);

/* attention_kv.c: makes the slabs and puts K and V into them, from host memory or by pack dispatches. */
vka_status attention_load_kv(attention_call *call, vka_error *error);

/* attention_rows.c: one chunk of rows: queries in, attention, output and log-sum-exp out. */
vka_status attention_run_chunk(attention_call *call, vka_error *error);

#endif
