/* Appending tokens from host memory: page by page on each device that holds heads; a whole page goes in one piece. */
#include "exec/cache.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/tensor.h"

/* Elements begin .. of one page of one device, and the tokens that belong there. */
typedef struct page_run {
    const vka_cache *cache;
    const cache_device *device;
    const vka_tensor *k, *v;
    uint32_t begin;
    int64_t first; /* number of the token in slot 0, counted from the first new one */
} page_run;

/* Token of one head, padded with zeros. */
static void put_vector(const page_run *run, const vka_tensor *from, uint32_t vector, uint32_t dim, uint32_t pad,
                       unsigned char *out)
{
    vka_dtype dtype = run->cache->dtype;
    uint32_t page_size = run->cache->pool.page_size, head = run->device->kv_head[vector / page_size];
    uint64_t token = (uint64_t)(run->first + vector % page_size);

    memset(out, 0, pad * vka_dtype_size(dtype));
    vka_convert(out, dtype, vka_tensor_element(from, token, (uint64_t)head * dim), from->dtype, dim);
}

/* The whole run: runs are uploaded in one piece, so `offset` is 0. */
static void fill_run(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const page_run *run = user;
    const vka_cache *cache = run->cache;
    uint32_t v_first = run->device->v_offset, size = (uint32_t)vka_dtype_size(cache->dtype);
    uint32_t begin = run->begin + (uint32_t)(offset / size), end = begin + (uint32_t)(bytes / size), step;

    for (uint32_t e = begin; e < end; e += step) {
        unsigned char *out = (unsigned char *)target + (size_t)(e - begin) * size;
        step = e < v_first ? cache->qk_pad : cache->v_stored;
        if (e < v_first) {
            put_vector(run, run->k, e / step, cache->k_dim, step, out);
        } else {
            put_vector(run, run->v, (e - v_first) / step, cache->v_dim, step, out);
        }
    }
}

typedef struct append_job {
    vka_cache *cache;
    uint32_t cache_layer;
    const page_sequence *sequence;
    const vka_tensor *k, *v;
    uint32_t past;
} append_job;

/* Slots begin .. end - 1 of a page of the sequence. */
typedef struct page_slots {
    uint32_t number, begin, end;
} page_slots;

static vka_status upload_run(const append_job *job, uint32_t device, page_slots slots, uint32_t begin,
                             uint32_t elements, vka_error *error)
{
    vka_cache *cache = job->cache;
    const cache_device *local = &cache->devices[device];
    uint32_t page = job->sequence->pages[slots.number], per_slab = cache->pool.pages_per_slab;
    uint64_t size = vka_dtype_size(cache->dtype), bytes = elements * size;
    uint64_t offset = ((uint64_t)(page % per_slab) * local->page_elements + begin) * size;
    page_run run = {.cache = cache,
                    .device = local,
                    .k = job->k,
                    .v = job->v,
                    .begin = begin,
                    .first = (int64_t)slots.number * cache->pool.page_size - job->past};

    return staged_upload(cache->context->devices[device].gpu,
                         cache_slab(cache, device, job->cache_layer, page / per_slab), offset, bytes, bytes, fill_run,
                         &run, error);
}

/* A page whose other slots are not ours: K and V of each head apart. */
static vka_status upload_slots(const append_job *job, uint32_t device, page_slots slots, vka_error *error)
{
    const vka_cache *cache = job->cache;
    const cache_device *local = &cache->devices[device];
    uint32_t count = slots.end - slots.begin;
    vka_status status = VKA_OK;

    for (uint32_t head = 0; status == VKA_OK && head < local->kv_heads; head++) {
        uint32_t vector = head * cache->pool.page_size + slots.begin;
        status = upload_run(job, device, slots, vector * cache->qk_pad, count * cache->qk_pad, error);
        if (status == VKA_OK) {
            status = upload_run(job, device, slots, local->v_offset + vector * cache->v_stored, count * cache->v_stored,
                                error);
        }
    }
    return status;
}

static vka_status append_to_device(const append_job *job, uint32_t device, vka_error *error)
{
    const vka_cache *cache = job->cache;
    uint32_t size = cache->pool.page_size, end = job->past + (uint32_t)job->k->rows;
    vka_status status = VKA_OK;

    for (uint32_t token = job->past; status == VKA_OK && token < end;) {
        page_slots slots = {token / size, token % size, size};
        slots.end = end - token < size - slots.begin ? slots.begin + end - token : size;
        token += slots.end - slots.begin;
        status = slots.end - slots.begin == size
                     ? upload_run(job, device, slots, 0, cache->devices[device].page_elements, error)
                     : upload_slots(job, device, slots, error);
    }
    return status;
}

static vka_status check_tensor(const char *name, const vka_tensor *tensor, uint64_t rows, uint64_t cols,
                               vka_error *error)
{
    if (tensor->data == NULL || vka_dtype_size(tensor->dtype) == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s has %s, expected F32, F16 or BF16 in host memory", name,
                        tensor->data == NULL ? "no data" : "no element type");
    }
    if (tensor->rows != rows || tensor->cols != cols || (tensor->row_stride != 0 && tensor->row_stride < cols)) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "%s is [%llu, %llu] with row stride %llu, expected [%llu, %llu] with a stride of 0 or at least "
                        "%llu",
                        name, (unsigned long long)tensor->rows, (unsigned long long)tensor->cols,
                        (unsigned long long)tensor->row_stride, (unsigned long long)rows, (unsigned long long)cols,
                        (unsigned long long)cols);
    }
    return VKA_OK;
}

static vka_status check_append(const append_job *job, vka_error *error)
{
    const vka_cache *cache = job->cache;
    uint64_t rows = job->k->rows, heads = cache->kv_heads;

    if (cache->latent_pad > 0) {
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "the cache holds latents, which belong to no head: this release appends them by calls only");
    }
    if (rows == 0 || rows > INT32_MAX - job->past) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "k has %llu rows, expected 1 to %u new tokens",
                        (unsigned long long)rows, INT32_MAX - job->past);
    }
    vka_status status = check_tensor("k", job->k, rows, heads * cache->k_dim, error);
    return status == VKA_OK ? check_tensor("v", job->v, rows, heads * cache->v_dim, error) : status;
}

vka_status exec_cache_append(vka_cache *cache, uint32_t cache_layer, page_sequence *sequence, const vka_tensor *k,
                             const vka_tensor *v, vka_error *error)
{
    const append_job job = {cache, cache_layer, sequence, k, v, sequence->lengths[cache_layer]};
    vka_status status = check_append(&job, error);

    if (status == VKA_OK) {
        status = exec_wait_all(cache->context, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    uint32_t length = job.past + (uint32_t)k->rows;
    status = page_sequence_grow(&cache->pool, sequence, length, error);
    for (uint32_t d = 0; status == VKA_OK && d < cache->context->device_count; d++) {
        if (cache->devices[d].kv_heads > 0) {
            status = append_to_device(&job, d, error);
        }
    }
    if (status == VKA_OK) {
        sequence->lengths[cache_layer] = sequence->turned_for[cache_layer] = length;
    } else {
        page_sequence_settle(&cache->pool, sequence);
    }
    return status;
}
