/* K and V of the attention step, laid out like cache pages: [K part | V part], each [kv head][slot][dim], padded. A
 * page holds all keys of a batch entry where that fits the buffer limits. */
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "exec/attention.h"
#include "exec/buffer.h"
#include "exec/limits.h"

/* K or V of one page. */
typedef struct page_part {
    const vka_attention_tensor *tensor;
    uint32_t dim, pad;
    uint32_t offset; /* elements from the start of the page */
} page_part;

static void page_parts(const attention_call *call, page_part parts[2])
{
    parts[0] = (page_part){&call->params.k, call->params.head_dim, call->qk_pad, 0};
    parts[1] = (page_part){&call->params.v, call->params.v_head_dim, call->v_pad, call->v_offset};
}

static vka_status choose_pages(attention_call *call, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    const vka_caps *caps = gpu_device_caps(call->device->gpu);
    uint64_t token = (uint64_t)p->kv_heads * (call->qk_pad + call->v_pad) * vka_dtype_size(p->cache_dtype);
    vka_status status =
        limits_check(caps, p->device, token, "K and V of one token", "use fewer KV heads a call", error);

    if (status != VKA_OK) {
        return status;
    }
    uint64_t fit = vka_caps_max_tensor(caps) / token;
    uint32_t size = p->kv_len < fit ? p->kv_len : (uint32_t)fit;
    size = size > 0 ? size : 1;
    call->planner.page_size = size;
    call->batch_pages = p->kv_len == 0 ? 0 : (p->kv_len - 1) / size + 1;
    call->planner.pages_per_slab = (uint32_t)(fit / size);
    call->page_elements = size * p->kv_heads * (call->qk_pad + call->v_pad);
    call->v_offset = size * p->kv_heads * call->qk_pad;
    if ((uint64_t)call->batch_pages * p->batch > UINT32_MAX) {
        return vka_fail(error, VKA_ERR_LIMIT, "%u batch entries of %u keys need more than 2^32 pages", p->batch,
                        p->kv_len);
    }
    return VKA_OK;
}

static vka_status create_slabs(attention_call *call, vka_error *error)
{
    const vka_allocator *allocator = &call->context->allocator;
    uint32_t pages = call->batch_pages * call->params.batch, per_slab = call->planner.pages_per_slab;
    vka_status status = VKA_OK;

    uint32_t slabs = pages == 0 ? 1 : (pages - 1) / per_slab + 1; /* one even without keys: kernels bind it */
    call->pages = vka_alloc(allocator, pages > 0 ? pages : 1, sizeof(*call->pages));
    call->slabs = vka_alloc(allocator, slabs, sizeof(*call->slabs));
    if (call->pages == NULL || call->slabs == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u pages of keys", pages);
    }
    call->slab_count = slabs;
    for (uint32_t i = 0; i < pages; i++) {
        call->pages[i] = i;
    }
    for (uint32_t i = 0; status == VKA_OK && i < slabs; i++) {
        uint32_t left = pages - i * per_slab, held = left < per_slab ? left : per_slab;
        uint64_t bytes =
            (uint64_t)(held > 0 ? held : 1) * call->page_elements * vka_dtype_size(call->params.cache_dtype);
        status =
            gpu_buffer_create(&call->slabs[i], call->device->gpu, bytes, GPU_MEMORY_DEVICE, "keys and values", error);
    }
    return status;
}

static uint32_t page_tokens(const attention_call *call, uint32_t page, uint32_t *first)
{
    *first = page % call->batch_pages * call->planner.page_size;
    uint32_t left = call->params.kv_len - *first;
    return left < call->planner.page_size ? left : call->planner.page_size;
}

/* Writes one part of one page from host memory. */
static void fill_part(const attention_call *call, const page_part *part, uint32_t page, unsigned char *out)
{
    const vka_attention_params *p = &call->params;
    uint32_t first, tokens = page_tokens(call, page, &first), batch = page / call->batch_pages;
    size_t in_size = vka_dtype_size(part->tensor->dtype), size = vka_dtype_size(p->cache_dtype);

    for (uint32_t h = 0; h < p->kv_heads; h++) {
        for (uint32_t t = 0; t < tokens; t++) {
            size_t row = ((size_t)batch * p->kv_len + first + t) * p->kv_heads + h;
            size_t cell = (size_t)part->offset + ((size_t)h * call->planner.page_size + t) * part->pad;
            vka_convert(out + cell * size, p->cache_dtype,
                        (const unsigned char *)part->tensor->host + row * part->dim * in_size, part->tensor->dtype,
                        part->dim);
        }
    }
}

typedef struct slab_fill {
    const attention_call *call;
    uint32_t first_page; /* of the slab */
} slab_fill;

/* Fills whole pages; parts that live in device buffers stay zero and are packed over afterwards. */
static void fill_pages(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const slab_fill *fill = user;
    const attention_call *call = fill->call;
    uint64_t page_bytes = (uint64_t)call->page_elements * vka_dtype_size(call->params.cache_dtype);
    uint32_t first = fill->first_page + (uint32_t)(offset / page_bytes);
    page_part parts[2];

    memset(target, 0, (size_t)bytes);
    page_parts(call, parts);
    for (uint32_t i = 0; i < bytes / page_bytes && call->batch_pages > 0; i++) {
        for (uint32_t part = 0; part < 2; part++) {
            if (parts[part].tensor->host != NULL) {
                fill_part(call, &parts[part], first + i, (unsigned char *)target + i * page_bytes);
            }
        }
    }
}

static vka_status pack_page(attention_call *call, recorder *rec, const page_part *part, uint32_t part_number,
                            uint32_t page, vka_error *error)
{
    const vka_attention_params *p = &call->params;
    uint32_t first, tokens = page_tokens(call, page, &first), batch = page / call->batch_pages;
    uint32_t slab = page / call->planner.pages_per_slab, local = page % call->planner.pages_per_slab;
    const pack_push push = {.batch = 1,
                            .tokens = tokens,
                            .heads = p->kv_heads,
                            .src_dim = part->dim,
                            .dst_dim = part->pad,
                            .src_offset = (uint32_t)(part->tensor->offset / sizeof(float)) +
                                          (batch * p->kv_len + first) * p->kv_heads * part->dim,
                            .src_length_stride = p->kv_heads * part->dim,
                            .src_head_stride = part->dim,
                            .dst_offset = local * call->page_elements + part->offset,
                            .dst_length_stride = part->pad,
                            .dst_head_stride = call->planner.page_size * part->pad};

    /* K and V parts of all pages of a slab are disjoint */
    return step_pack(rec, &call->pack_cache, &push, part->tensor->buffer->gpu, call->slabs[slab],
                     1 + 2 * local + part_number, error);
}

static vka_status pack_pages(attention_call *call, vka_error *error)
{
    recorder rec;
    page_part parts[2];
    vka_status status = recorder_begin(&rec, call->device->gpu, error);

    if (status != VKA_OK) {
        return status;
    }
    page_parts(call, parts);
    for (uint32_t page = 0; status == VKA_OK && page < call->batch_pages * call->params.batch; page++) {
        for (uint32_t i = 0; status == VKA_OK && i < 2; i++) {
            if (parts[i].tensor->buffer != NULL) {
                status = pack_page(call, &rec, &parts[i], i, page, error);
            }
        }
    }
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    status = recorder_submit(&rec, &call->device->pending, error);
    return status == VKA_OK ? exec_wait_all(call->context, error) : status;
}

vka_status attention_load_kv(attention_call *call, vka_error *error)
{
    uint64_t page_bytes;
    vka_status status = choose_pages(call, error);

    if (status == VKA_OK) {
        status = create_slabs(call, error);
    }
    page_bytes = (uint64_t)call->page_elements * vka_dtype_size(call->params.cache_dtype);
    for (uint32_t i = 0; status == VKA_OK && i < call->slab_count; i++) {
        slab_fill fill = {call, i * call->planner.pages_per_slab};
        status = staged_upload(call->device->gpu, call->slabs[i], 0, gpu_buffer_bytes(call->slabs[i]), page_bytes,
                               fill_pages, &fill, error);
    }
    if (status == VKA_OK && (call->params.k.buffer != NULL || call->params.v.buffer != NULL)) {
        status = pack_pages(call, error);
    }
    return status;
}
