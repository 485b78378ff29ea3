/* include/vkattn/cache.h */
#include "vkattn/cache.h"

#include "api/guard.h"
#include "base/error.h"
#include "base/threads.h"
#include "exec/cache.h"

vka_status vka_cache_create(vka_cache **out, vka_layer *layer, const vka_cache_params *params, vka_error *error)
{
    vka_cache_params taken;
    vka_status status = guard_params(&taken, sizeof(taken), params, "vka_cache_params", error);

    if (status == VKA_OK && (out == NULL || layer == NULL)) {
        status = vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out == NULL ? "out" : "layer");
    }
    if (status == VKA_OK) {
        status = guard_enter(layer->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    status = exec_cache_create(out, layer, &taken, error);
    guard_leave(layer->context);
    return status;
}

void vka_cache_destroy(vka_cache **cache)
{
    exec_cache_destroy(cache);
}

/* Claims the context and finds the sequence. On success the caller leaves the guard. */
static vka_status enter_sequence(vka_cache *cache, uint32_t id, page_sequence **sequence, vka_error *error)
{
    if (cache == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache is NULL");
    }
    vka_status status = guard_enter(cache->context, error);
    if (status != VKA_OK) {
        return status;
    }
    *sequence = page_sequence_get(&cache->pool, id, error);
    if (*sequence == NULL) {
        guard_leave(cache->context);
        return VKA_ERR_ARGUMENT;
    }
    return VKA_OK;
}

vka_status vka_cache_sequence_new(vka_cache *cache, uint32_t *sequence, vka_error *error)
{
    if (cache == NULL || sequence == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", cache == NULL ? "cache" : "sequence");
    }
    vka_status status = guard_enter(cache->context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = page_sequence_new(&cache->pool, sequence, error);
    guard_leave(cache->context);
    return status;
}

vka_status vka_cache_sequence_free(vka_cache *cache, uint32_t sequence, vka_error *error)
{
    page_sequence *found = NULL;
    vka_status status = enter_sequence(cache, sequence, &found, error);

    if (status == VKA_OK) {
        page_sequence_free(&cache->pool, found);
        guard_leave(cache->context);
    }
    return status;
}

vka_status vka_cache_sequence_truncate(vka_cache *cache, uint32_t sequence, uint32_t length, vka_error *error)
{
    page_sequence *found = NULL;
    vka_status status = enter_sequence(cache, sequence, &found, error);

    if (status == VKA_OK) {
        page_sequence_truncate(&cache->pool, found, length);
        guard_leave(cache->context);
    }
    return status;
}

vka_status vka_cache_sequence_length(const vka_cache *cache, uint32_t sequence, uint32_t cache_layer, uint32_t *length,
                                     vka_error *error)
{
    if (cache == NULL || length == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", cache == NULL ? "cache" : "length");
    }
    if (cache_layer >= cache->pool.layers) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache_layer is %u, the cache has %u layers", cache_layer,
                        cache->pool.layers);
    }
    vka_status status = guard_enter(cache->context, error);
    if (status != VKA_OK) {
        return status;
    }
    const page_sequence *found = page_sequence_get(&cache->pool, sequence, error);
    if (found != NULL) {
        *length = found->lengths[cache_layer];
    }
    guard_leave(cache->context);
    return found != NULL ? VKA_OK : VKA_ERR_ARGUMENT;
}

vka_status vka_cache_append(vka_cache *cache, uint32_t cache_layer, uint32_t sequence, const vka_tensor *k,
                            const vka_tensor *v, vka_error *error)
{
    page_sequence *found = NULL;

    if (cache == NULL || k == NULL || v == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", cache == NULL ? "cache" : k == NULL ? "k" : "v");
    }
    if (cache_layer >= cache->pool.layers) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache_layer is %u, the cache has %u layers", cache_layer,
                        cache->pool.layers);
    }
    vka_status status = enter_sequence(cache, sequence, &found, error);
    if (status == VKA_OK) {
        status = exec_cache_append(cache, cache_layer, found, k, v, error);
        guard_leave(cache->context);
    }
    return status;
}

uint32_t vka_cache_free_pages(const vka_cache *cache)
{
    return cache != NULL ? cache->pool.total_free : 0;
}

uint64_t vka_cache_device_bytes(const vka_cache *cache, uint32_t device)
{
    if (cache == NULL || device >= cache->context->device_count) {
        return 0;
    }
    return (uint64_t)cache->pool.layers * cache->pool.pages * cache->devices[device].page_elements *
           vka_dtype_size(cache->dtype);
}

vka_dtype vka_cache_dtype(const vka_cache *cache)
{
    return cache != NULL ? cache->dtype : VKA_DTYPE_DEFAULT;
}

vka_status vka_cache_read(vka_cache *cache, uint32_t device, uint32_t cache_layer, uint32_t sequence, uint32_t kv_head,
                          uint32_t first, uint32_t count, float *k, float *v, vka_error *error)
{
    if (cache == NULL) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "cache is NULL");
    }
    if (device >= cache->context->device_count || cache_layer >= cache->pool.layers) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "device %u, cache_layer %u: there are %u devices and %u layers",
                        device, cache_layer, cache->context->device_count, cache->pool.layers);
    }
    if (atomic_load(&cache->context->tracer) == vka_thread_self()) { /* the caller is inside its own call */
        return exec_cache_read(cache, device, cache_layer, sequence, kv_head, first, count, k, v, error);
    }
    vka_status status = guard_enter(cache->context, error);
    if (status != VKA_OK) {
        return status;
    }
    status = exec_cache_read(cache, device, cache_layer, sequence, kv_head, first, count, k, v, error);
    guard_leave(cache->context);
    return status;
}
