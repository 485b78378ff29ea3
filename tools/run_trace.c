/* Copies of traces: one block of memory each, arrays one after the other. */
#include "run_trace.h"

#include <string.h>

#include "base/alloc.h"
#include "verify/latent.h"

/* Hands out `bytes` of a block; a NULL block only counts. All arrays are of 4-byte elements. */
typedef struct array_carver {
    unsigned char *block;
    size_t used;
} array_carver;

static const void *copy(array_carver *carver, const void *from, size_t count)
{
    void *target = carver->block ? carver->block + carver->used : NULL;

    if (target && count > 0)
        memcpy(target, from, count * 4);
    carver->used += count * 4;
    return target;
}

static void copy_arrays(array_carver *carver, vka_trace *to, const vka_trace *from, const vka_layer_desc *desc)
{
    size_t rows = from->rows;
    bool latent = desc->kv_lora_rank > 0;
    size_t heads = from->q_heads, q_up = heads * desc->head_dim;
    size_t q = latent ? heads * (desc->kv_lora_rank + desc->rotary_dim) : q_up;
    size_t gates = desc->gate != VKA_GATE_NONE ? (size_t)from->q_heads * desc->v_head_dim : 0;
    size_t kv = (size_t)from->kv_heads * (desc->head_dim + desc->v_head_dim);
    size_t qkv = latent ? verify_latent_qkv_columns(desc, from->q_heads) : q + gates + kv;

    to->q_head = copy(carver, from->q_head, from->q_heads);
    to->kv_head = copy(carver, from->kv_head, from->kv_heads);
    to->partial_rank = copy(carver, from->partial_rank, from->partials);
    to->hidden = copy(carver, from->hidden, rows * desc->hidden_size);
    to->qkv = copy(carver, from->qkv, rows * qkv);
    to->norm_factor = from->norm_factor ? copy(carver, from->norm_factor, rows * 2) : NULL;
    to->q = copy(carver, from->q, rows * q);
    to->gate = from->gate ? copy(carver, from->gate, rows * from->q_heads * desc->v_head_dim) : NULL;
    to->attention = copy(carver, from->attention, rows * from->q_heads * desc->v_head_dim);
    to->q_latent = copy(carver, from->q_latent, from->q_latent ? rows * desc->q_lora_rank : 0);
    to->q_up = copy(carver, from->q_up, from->q_up ? rows * q_up : 0);
    to->latents = copy(carver, from->latents, from->latents ? rows * heads * desc->kv_lora_rank : 0);
    to->partial = copy(carver, from->partial, from->partials * rows * desc->hidden_size);
}

bool run_trace_add(run_trace_list *list, const vka_trace *trace, const vka_layer_desc *desc)
{
    array_carver carver = {0};
    run_trace added = {.trace = *trace};

    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        run_trace *items = vka_realloc(NULL, list->items, capacity, sizeof(items[0]));

        if (!items)
            return false;
        list->items = items;
        list->capacity = capacity;
    }
    copy_arrays(&carver, &added.trace, trace, desc);
    added.storage = vka_alloc(NULL, carver.used, 1);
    if (!added.storage)
        return false;
    carver.block = added.storage;
    carver.used = 0;
    copy_arrays(&carver, &added.trace, trace, desc);
    list->items[list->count++] = added;
    return true;
}

void run_trace_clear(run_trace_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        vka_free(NULL, list->items[i].storage);
    list->count = 0;
}

void run_trace_free(run_trace_list *list)
{
    run_trace_clear(list);
    vka_free(NULL, list->items);
    *list = (run_trace_list){0};
}
