/* Paged KV cache of one or many layers of the same geometry.
 *
 * A sequence is a list of pages plus, per layer, a length. vka_forward() appends; pages are taken from the pool when a
 * sequence grows and given back by truncate and free. Every device stores the KV heads of its own ranks; page numbers
 * are the same on all devices. */
#ifndef VKATTN_CACHE_H
#define VKATTN_CACHE_H

#include "vkattn/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vka_cache vka_cache;

typedef struct vka_cache_params {
    uint32_t struct_size; /* sizeof(vka_cache_params) */
    uint32_t page_size;   /* tokens per page, 1 .. 65536; default 16 */
    uint32_t pages;       /* pages in the pool; required */
    uint32_t layers;      /* layers that share the page table; default 1 */
    vka_dtype dtype;      /* F32 or F16; default F16 */
} vka_cache_params;

/* Geometry, ranks and devices come from `layer`; any layer of the same context, description geometry, grid and
 * placement may use the cache. For a reproducible layer it must have been made from a reproducible one. */
VKA_API vka_status vka_cache_create(vka_cache **out, vka_layer *layer, const vka_cache_params *params,
                                    vka_error *error);
VKA_API void vka_cache_destroy(vka_cache **cache);

/* A new empty sequence. Ids are small integers; a freed id may be given again. */
VKA_API vka_status vka_cache_sequence_new(vka_cache *cache, uint32_t *sequence, vka_error *error);
/* Gives back all pages and the id. */
VKA_API vka_status vka_cache_sequence_free(vka_cache *cache, uint32_t sequence, vka_error *error);
/* Shortens to `length` tokens on every layer (those already shorter stay) and gives back pages no longer needed. */
VKA_API vka_status vka_cache_sequence_truncate(vka_cache *cache, uint32_t sequence, uint32_t length, vka_error *error);
VKA_API vka_status vka_cache_sequence_length(const vka_cache *cache, uint32_t sequence, uint32_t cache_layer,
                                             uint32_t *length, vka_error *error);

/* Appends tokens on one layer whose keys and values are there already, normed and turned as the layer's own: k [tokens,
 * kv_heads*head_dim] and v [tokens, kv_heads*v_head_dim], all KV heads of the layer in order, in host memory (F32, F16
 * or BF16), rounded to the type of the cache. Blocks. On failure the sequence is as before; VKA_ERR_CACHE_FULL says how
 * many pages are missing. VKA_ERR_UNSUPPORTED for latent attention, whose cache holds neither. */
VKA_API vka_status vka_cache_append(vka_cache *cache, uint32_t cache_layer, uint32_t sequence, const vka_tensor *k,
                                    const vka_tensor *v, vka_error *error);

VKA_API uint32_t vka_cache_free_pages(const vka_cache *cache);
VKA_API uint64_t vka_cache_device_bytes(const vka_cache *cache, uint32_t device);
VKA_API vka_dtype vka_cache_dtype(const vka_cache *cache);

/* Reads back K and V of one KV head (number in the whole layer) of one sequence as a device holds it, converted to F32:
 * k [count, head_dim], v [count, v_head_dim] for tokens first .. first+count-1. Either may be NULL. For checks.
 * Latent attention: kv_head is 0, k is [count, kv_lora_rank + rotary_dim], the normed latent and the turned part of K that
 * all heads share, and v is [count, kv_lora_rank], the latent once more. */
VKA_API vka_status vka_cache_read(vka_cache *cache, uint32_t device, uint32_t cache_layer, uint32_t sequence,
                                  uint32_t kv_head, uint32_t first, uint32_t count, float *k, float *v,
                                  vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
