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
    pipeline_set set;                     /* the attention kernels */
    pipeline_set pack_cache, pack_floats; /* PACK, to the cache's dtype and to floats */
    uint32_t *kv_q_begin;                 /* [kv_heads + 1] */
    uint32_t *pages;                      /* [batch * batch_pages]: 0, 1, 2, ... */
    uint32_t batch_pages;                 /* per batch entry */
    uint32_t page_elements, v_offset;
    gpu_buffer **slabs;
    uint32_t slab_count;
    chunk_planner planner;
    double gpu_ms, wall_ms;
    const vka_variant *variant; /* of the first launch */
} attention_call;

vka_status exec_attention(vka_context *context, const vka_attention_params *params, vka_error *error);

/* The same in parts: K and V are made ready once, for any number of runs. `candidate` (NULL: none) runs instead of what
 * is selected for its kernel. Each run sets gpu_ms, wall_ms and variant. The result pointers in `params` are not used.
 */
vka_status attention_call_begin(attention_call *call, vka_context *context, const vka_attention_params *params,
                                vka_error *error);
vka_status attention_call_run(attention_call *call, const vka_variant *candidate, vka_error *error);
/* Accepts what attention_call_begin() left half-made. */
void attention_call_end(attention_call *call);

/* Which keys a row sees. */
static inline key_limits attention_keys(const vka_attention_params *params)
{
    return key_limits_of(params->causal != VKA_CAUSAL_NONE, params->window, params->window_right);
}

/* attention_kv.c: makes the slabs and puts K and V into them, from host memory or by pack dispatches. */
vka_status attention_load_kv(attention_call *call, vka_error *error);

/* attention_mask.c: checks the mask; its size in q's buffer on the device, 0 without one; */
vka_status attention_check_mask(attention_call *call, vka_error *error);
uint64_t attention_mask_bytes(const attention_call *call);
/* how the kernels find it from float `offset` on; */
void attention_push_mask(const attention_call *call, uint32_t offset, attention_push *push);
/* and its way there, from host memory before or from a buffer while a chunk is recorded. */
vka_status attention_upload_mask(attention_call *call, gpu_buffer *target, uint64_t offset, vka_error *error);
void attention_copy_mask(const attention_call *call, recorder *rec, gpu_buffer *target, uint64_t offset);

/* attention_check.c: fills in defaults and checks everything that needs no device. */
vka_status attention_resolve(attention_call *call, vka_error *error);
/* Exactly one of host and buffer is set, or neither if it is not required; a buffer is on the call's device and holds
 * `elements` floats. */
vka_status attention_check_tensor(const attention_call *call, vka_attention_tensor *tensor, const char *name,
                                  uint64_t elements, bool required, vka_error *error);

/* attention_rows.c: one chunk of rows: queries in, attention, output and log-sum-exp out. */
vka_status attention_run_chunk(attention_call *call, vka_error *error);

#endif
