/* See cache.h. */
#include "exec/cache.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "exec/limits.h"

/* Bytes of one page with `kv_heads` heads. */
static uint64_t page_bytes(const vka_layer *layer, uint32_t page_size, uint32_t kv_heads, vka_dtype dtype)
{
    return (uint64_t)page_size * kv_heads * (layer->qk_pad + layer->v_stored) * vka_dtype_size(dtype);
}

/* Pages that fit one slab on every device. When reproducible, as if a device held every head, so that the cut of key
 * ranges at slab borders does not depend on placement. */
static vka_status pages_per_slab(const vka_layer *layer, uint32_t page_size, vka_dtype dtype, uint32_t *out,
                                 vka_error *error)
{
    uint64_t least = UINT32_MAX;

    for (uint32_t d = 0; d < layer->context->device_count; d++) {
        const vka_shard *shard = &layer->devices[d].shard;
        const vka_caps *caps = gpu_device_caps(layer->context->devices[d].gpu);
        uint32_t heads = layer->reproducible ? vka_stored_kv_heads(&layer->desc) : shard->kv_heads;
        uint64_t bytes = page_bytes(layer, page_size, heads, dtype);
        if (bytes == 0) {
            continue;
        }
        vka_status status = limits_check(caps, d, bytes, "a page of the KV cache",
                                         "choose a smaller page_size, raise tp, or store the cache in F16", error);
        if (status != VKA_OK) {
            return status;
        }
        uint64_t fit = vka_caps_max_tensor(caps) / bytes;
        least = fit < least ? fit : least;
    }
    *out = (uint32_t)least;
    return VKA_OK;
}

static vka_status create_slabs(vka_cache *cache, const vka_layer *layer, uint32_t device, vka_error *error)
{
    cache_device *out = &cache->devices[device];
    const vka_shard *shard = &layer->devices[device].shard;
    const vka_allocator *allocator = &cache->context->allocator;
    const page_pool *pool = &cache->pool;
    size_t slabs = (size_t)pool->layers * pool->slabs;

    out->kv_heads = shard->kv_heads;
    out->v_offset = cache->v_stored > 0 ? pool->page_size * shard->kv_heads * cache->qk_pad : 0;
    out->page_elements = pool->page_size * shard->kv_heads * (cache->qk_pad + cache->v_stored);
    out->kv_head = vka_alloc(allocator, shard->kv_heads, sizeof(uint32_t));
    out->slabs = vka_alloc(allocator, slabs, sizeof(*out->slabs));
    if (out->kv_head == NULL || out->slabs == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %zu cache slabs", slabs);
    }
    memcpy(out->kv_head, shard->kv_head, shard->kv_heads * sizeof(uint32_t));
    for (size_t i = 0; i < slabs; i++) {
        uint32_t first = (uint32_t)(i % pool->slabs) * pool->pages_per_slab;
        uint32_t pages = pool->pages - first < pool->pages_per_slab ? pool->pages - first : pool->pages_per_slab;
        uint64_t bytes = (uint64_t)pages * out->page_elements * vka_dtype_size(cache->dtype);
        vka_status status = gpu_buffer_create(&out->slabs[i], cache->context->devices[device].gpu, bytes,
                                              GPU_MEMORY_DEVICE, "KV cache slab", error);
        if (status != VKA_OK) {
            return status;
        }
    }
    return VKA_OK;
}

static vka_status resolve_params(const vka_cache_params *in, vka_cache_params *out, vka_error *error)
{
    *out = *in;
    out->page_size = in->page_size != 0 ? in->page_size : 16;
    out->layers = in->layers != 0 ? in->layers : 1;
    out->dtype = in->dtype != VKA_DTYPE_DEFAULT ? in->dtype : VKA_F16;
    if (out->page_size > 65536) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "page_size is %u, expected 1 to 65536 tokens", out->page_size);
    }
    if (out->pages == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "pages is 0, expected the number of pages in the pool");
    }
    if ((uint64_t)out->pages * out->page_size > INT32_MAX) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%u pages of %u tokens: a cache holds at most 2^31 - 1 tokens",
                        out->pages, out->page_size);
    }
    if (out->layers > 65536) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "layers is %u, expected 1 to 65536", out->layers);
    }
    if (out->dtype != VKA_F32 && out->dtype != VKA_F16) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "dtype of the KV cache is %s, expected F32 or F16",
                        vka_dtype_name(out->dtype));
    }
    return VKA_OK;
}

static vka_status fill_cache(vka_cache *cache, const vka_layer *layer, const vka_cache_params *params, vka_error *error)
{
    vka_context *context = cache->context;
    uint32_t per_slab = 0;
    vka_status status = pages_per_slab(layer, params->page_size, params->dtype, &per_slab, error);

    if (status == VKA_OK) {
        per_slab = per_slab < params->pages ? per_slab : params->pages;
        status = page_pool_create(&cache->pool, params->page_size, params->pages, per_slab, params->layers,
                                  &context->allocator, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    cache->devices = vka_alloc(&context->allocator, context->device_count, sizeof(*cache->devices));
    if (cache->devices == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a cache");
    }
    for (uint32_t d = 0; status == VKA_OK && d < context->device_count; d++) {
        if (layer->devices[d].shard.kv_heads > 0) {
            status = create_slabs(cache, layer, d, error);
        }
    }
    return status;
}

vka_status exec_cache_create(vka_cache **out, vka_layer *layer, const vka_cache_params *params, vka_error *error)
{
    vka_cache_params resolved;
    vka_status status = resolve_params(params, &resolved, error);

    if (status != VKA_OK) {
        return status;
    }
    vka_cache *cache = vka_alloc(&layer->context->allocator, 1, sizeof(*cache));
    if (cache == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a cache");
    }
    cache->context = layer->context;
    cache->dtype = resolved.dtype;
    cache->kv_heads = layer->desc.kv_heads;
    cache->k_dim = layer->k_dim;
    cache->v_dim = layer->v_dim;
    cache->qk_pad = layer->qk_pad;
    cache->v_stored = layer->v_stored;
    cache->latent_pad = layer->latent.latent;
    cache->reproducible = layer->reproducible;
    status = fill_cache(cache, layer, &resolved, error);
    if (status != VKA_OK) {
        exec_cache_destroy(&cache);
        return status;
    }
    *out = cache;
    return VKA_OK;
}

void exec_cache_destroy(vka_cache **cache)
{
    if (cache == NULL || *cache == NULL) {
        return;
    }
    vka_context *context = (*cache)->context;
    size_t slabs = (size_t)(*cache)->pool.layers * (*cache)->pool.slabs;
    for (uint32_t d = 0; (*cache)->devices != NULL && d < context->device_count; d++) {
        cache_device *device = &(*cache)->devices[d];
        for (size_t i = 0; device->slabs != NULL && i < slabs; i++) {
            gpu_buffer_destroy(&device->slabs[i]);
        }
        vka_free(&context->allocator, device->slabs);
        vka_free(&context->allocator, device->kv_head);
    }
    vka_free(&context->allocator, (*cache)->devices);
    page_pool_destroy(&(*cache)->pool);
    vka_free(&context->allocator, *cache);
    *cache = NULL;
}

vka_status exec_cache_check(const vka_cache *cache, const vka_layer *layer, vka_error *error)
{
    if (cache->context != layer->context || cache->k_dim != layer->k_dim || cache->v_dim != layer->v_dim ||
        cache->v_stored != layer->v_stored) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "the cache holds heads of %u and %u elements, the layer has %u and %u, or they are of two "
                        "contexts: make the cache from a layer of the same geometry",
                        cache->k_dim, cache->v_dim, layer->k_dim, layer->v_dim);
    }
    if (layer->reproducible && !cache->reproducible) {
        return vka_fail(
            error, VKA_ERR_ARGUMENT,
            "the layer is reproducible, but its cache was made from one that is not, so key ranges would be "
            "cut as placement has it: make the cache from a reproducible layer");
    }
    for (uint32_t d = 0; d < cache->context->device_count; d++) {
        const vka_shard *shard = &layer->devices[d].shard;
        const cache_device *device = &cache->devices[d];
        if (device->kv_heads != shard->kv_heads ||
            (shard->kv_heads > 0 && memcmp(device->kv_head, shard->kv_head, shard->kv_heads * sizeof(uint32_t)) != 0)) {
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "device %u holds other KV heads in the cache than in the layer: both need the same grid "
                            "and placement",
                            d);
        }
    }
    return VKA_OK;
}

/* Vectors of one part (K or V) of a page: `dim` elements, those from `split` on behind padding, at `split_pad`. */
typedef struct vector_shape {
    uint32_t stride, dim, split, split_pad;
} vector_shape;

static vector_shape k_shape(const vka_cache *cache)
{
    uint32_t split = cache->latent_pad > 0 ? cache->v_dim : cache->k_dim;

    return (vector_shape){cache->qk_pad, cache->k_dim, split, cache->latent_pad};
}

static vector_shape v_shape(const vka_cache *cache)
{
    return (vector_shape){cache->v_stored > 0 ? cache->v_stored : cache->qk_pad, cache->v_dim, cache->v_dim, 0};
}

/* One run of tokens within a page. */
static vka_status read_run(vka_cache *cache, uint32_t device, gpu_buffer *slab, uint64_t element, uint32_t tokens,
                           vector_shape shape, float *out, vka_error *error)
{
    const vka_allocator *allocator = &cache->context->allocator;
    size_t size = vka_dtype_size(cache->dtype);
    size_t bytes = (size_t)tokens * shape.stride * size;
    unsigned char *raw = vka_alloc(allocator, bytes, 1);

    if (raw == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory to read %zu bytes of the cache", bytes);
    }
    vka_status status = staged_download(cache->context->devices[device].gpu, slab, element * size, bytes, raw, error);
    for (uint32_t t = 0; status == VKA_OK && t < tokens; t++) {
        const unsigned char *vector = raw + (size_t)t * shape.stride * size;
        float *to = out + (size_t)t * shape.dim;
        vka_convert(to, VKA_F32, vector, cache->dtype, shape.split);
        vka_convert(to + shape.split, VKA_F32, vector + shape.split_pad * size, cache->dtype, shape.dim - shape.split);
    }
    vka_free(allocator, raw);
    return status;
}

static vka_status find_local_head(const vka_cache *cache, uint32_t device, uint32_t kv_head, uint32_t *local,
                                  vka_error *error)
{
    const cache_device *from = &cache->devices[device];

    for (uint32_t i = 0; i < from->kv_heads; i++) {
        if (from->kv_head[i] == kv_head) {
            *local = i;
            return VKA_OK;
        }
    }
    return vka_fail(error, VKA_ERR_ARGUMENT, "KV head %u is not on device %u", kv_head, device);
}

vka_status exec_cache_read(vka_cache *cache, uint32_t device, uint32_t cache_layer, uint32_t sequence, uint32_t kv_head,
                           uint32_t first, uint32_t count, float *k, float *v, vka_error *error)
{
    const page_pool *pool = &cache->pool;
    const page_sequence *from = page_sequence_get(pool, sequence, error);
    uint32_t head = 0, tokens;

    if (from == NULL) {
        return VKA_ERR_ARGUMENT;
    }
    vka_status status = find_local_head(cache, device, kv_head, &head, error);
    if (status == VKA_OK && (first > from->lengths[cache_layer] || count > from->lengths[cache_layer] - first)) {
        status = vka_fail(error, VKA_ERR_ARGUMENT, "tokens %u to %u: sequence %u holds %u", first, first + count,
                          sequence, from->lengths[cache_layer]);
    }
    const cache_device *local = &cache->devices[device];
    for (uint32_t done = 0; status == VKA_OK && done < count; done += tokens) {
        uint32_t page = from->pages[(first + done) / pool->page_size], slot = (first + done) % pool->page_size;
        gpu_buffer *slab = cache_slab(cache, device, cache_layer, page / pool->pages_per_slab);
        uint64_t base = (uint64_t)(page % pool->pages_per_slab) * local->page_elements;
        uint64_t cell = (uint64_t)head * pool->page_size + slot;
        tokens = pool->page_size - slot < count - done ? pool->page_size - slot : count - done;
        if (k != NULL) {
            status = read_run(cache, device, slab, base + cell * cache->qk_pad, tokens, k_shape(cache),
                              k + (size_t)done * cache->k_dim, error);
        }
        if (status == VKA_OK && v != NULL) {
            status = read_run(cache, device, slab, base + local->v_offset + cell * v_shape(cache).stride, tokens,
                              v_shape(cache), v + (size_t)done * cache->v_dim, error);
        }
    }
    return status;
}
