/* The paged KV cache on the devices. One page of one layer is [K part | V part]; each part is [kv head][slot][dim],
 * heads padded to multiples of 8. Pages lie in slabs that fit the buffer limits of every device. */
#ifndef VKA_EXEC_CACHE_H
#define VKA_EXEC_CACHE_H

#include "exec/layer.h"
#include "exec/pages.h"
#include "vkattn/cache.h"

typedef struct cache_device {
    uint32_t kv_heads;
    uint32_t *kv_head;      /* [kv_heads] local -> whole layer */
    uint32_t page_elements; /* K and V of one page of one layer */
    uint32_t v_offset;      /* elements from the start of a page to its V part */
    gpu_buffer **slabs;     /* [layers * pool.slabs]; NULL on an idle device */
} cache_device;

struct vka_cache {
    vka_context *context;
    page_pool pool;
    vka_dtype dtype;
    uint32_t kv_heads; /* of the whole layer */
    uint32_t k_dim, v_dim, qk_pad;
    uint32_t
        v_stored; /* elements of a V vector with padding; 0: V is the first v_dim elements of K (latent attention) */
    uint32_t latent_pad; /* latent attention: where the rest of K begins behind the latent */
    bool reproducible;   /* slabs are cut as if a device held every head */
    cache_device *devices;
};

vka_status exec_cache_create(vka_cache **out, vka_layer *layer, const vka_cache_params *params, vka_error *error);
void exec_cache_destroy(vka_cache **cache);
/* VKA_ERR_ARGUMENT unless `layer` may use `cache`. */
vka_status exec_cache_check(const vka_cache *cache, const vka_layer *layer, vka_error *error);
/* cache_append.c */
vka_status exec_cache_append(vka_cache *cache, uint32_t cache_layer, page_sequence *sequence, const vka_tensor *k,
                             const vka_tensor *v, vka_error *error);
vka_status exec_cache_read(vka_cache *cache, uint32_t device, uint32_t cache_layer, uint32_t sequence, uint32_t kv_head,
                           uint32_t first, uint32_t count, float *k, float *v, vka_error *error);

static inline gpu_buffer *cache_slab(const vka_cache *cache, uint32_t device, uint32_t layer, uint32_t slab)
{
    return cache->devices[device].slabs[(size_t)layer * cache->pool.slabs + slab];
}

#endif
