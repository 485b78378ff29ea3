/* The mask of the attention step: see attention.h. On the device it is additive, dense in its own shape, and lies
 * behind the queries; strides of 0 spread what serves all. */
#include <math.h>

#include "base/error.h"
#include "base/half.h"
#include "exec/attention.h"
#include "exec/buffer.h"

static uint64_t mask_elements(const vka_attention_mask *mask)
{
    uint64_t elements = mask->rank > 0 ? 1 : 0;

    for (uint32_t i = 0; i < mask->rank; i++) {
        elements *= mask->shape[i];
    }
    return elements;
}

/* Size of dimension `d` of [batch, heads, q_len, kv_len]; 1 where the mask has fewer. */
static uint32_t mask_size(const vka_attention_mask *mask, uint32_t d)
{
    return d + mask->rank >= 4 ? mask->shape[d + mask->rank - 4] : 1;
}

static vka_status check_shape(const attention_call *call, vka_error *error)
{
    static const char *const names[4] = {"batch", "heads", "q_len", "kv_len"};
    const vka_attention_params *p = &call->params;
    const uint32_t whole[4] = {p->batch, p->heads, p->q_len, p->kv_len};
    uint64_t elements = 1;

    if (p->mask.rank > 4) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "the mask has rank %u, expected 1 to 4", p->mask.rank);
    }
    for (uint32_t d = 0; d < 4; d++) {
        uint32_t size = mask_size(&p->mask, d);
        if (size == 0 || (size != 1 && (d == 3 ? size > whole[d] : size != whole[d]))) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "the mask has size %u for %s, expected 1 or %s%u", size, names[d],
                            d == 3 ? "up to " : "", whole[d]);
        }
        elements *= size;
        if (elements > UINT32_MAX) {
            return vka_fail(error, VKA_ERR_ARGUMENT, "the mask has more than 2^32 - 1 elements");
        }
    }
    return VKA_OK;
}

vka_status attention_check_mask(attention_call *call, vka_error *error)
{
    vka_attention_mask *mask = &call->params.mask;

    bool given = mask->keep != NULL || mask->added.host != NULL || mask->added.buffer != NULL;

    if (mask->rank == 0 && given) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "there is a mask of rank 0, expected 1 to 4 and its shape");
    }
    if (mask->rank == 0) {
        return VKA_OK;
    }
    vka_status status = check_shape(call, error);
    if (status != VKA_OK) {
        return status;
    }
    if (mask->keep != NULL && (mask->added.host != NULL || mask->added.buffer != NULL)) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "the mask is both boolean (keep) and additive (added): set one");
    }
    return attention_check_tensor(call, &mask->added, "mask", mask_elements(mask), mask->keep == NULL, error);
}

uint64_t attention_mask_bytes(const attention_call *call)
{
    return (mask_elements(&call->params.mask) + 3) / 4 * 4 * sizeof(float); /* it is read in quads */
}

void attention_push_mask(const attention_call *call, uint32_t offset, attention_push *push)
{
    const vka_attention_mask *mask = &call->params.mask;
    uint32_t *const strides[4] = {&push->mask_batch_stride, &push->mask_head_stride, &push->mask_row_stride,
                                  &push->mask_key_stride};
    uint32_t stride = 1;

    for (uint32_t d = 4; d-- > 0;) {
        *strides[d] = mask_size(mask, d) > 1 ? stride : 0;
        stride *= mask_size(mask, d);
    }
    push->mask_offset = offset;
    push->mask_keys = mask_size(mask, 3) > 1 ? mask_size(mask, 3) : call->params.kv_len;
    push->mask_queries = call->params.q_len;
    push->mask_first_row = call->planner.begin.total;
}

static void fill_mask(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    const vka_attention_mask *mask = user;
    uint64_t first = offset / sizeof(float), elements = mask_elements(mask);
    uint64_t count = bytes / sizeof(float), left = elements > first ? elements - first : 0;
    float *out = target;

    for (uint64_t i = 0; i < count; i++) {
        out[i] = mask->keep != NULL && i < left && mask->keep[first + i] == 0 ? -INFINITY : 0;
    }
    if (mask->keep == NULL) {
        const unsigned char *from = mask->added.host;
        vka_convert(out, VKA_F32, from + first * vka_dtype_size(mask->added.dtype), mask->added.dtype,
                    (size_t)(left < count ? left : count));
    }
}

vka_status attention_upload_mask(attention_call *call, gpu_buffer *target, uint64_t offset, vka_error *error)
{
    vka_attention_mask *mask = &call->params.mask;

    if (mask->rank == 0 || mask->added.buffer != NULL) {
        return VKA_OK;
    }
    return staged_upload(call->device->gpu, target, offset, attention_mask_bytes(call), sizeof(float), fill_mask, mask,
                         error);
}

void attention_copy_mask(const attention_call *call, recorder *rec, gpu_buffer *target, uint64_t offset)
{
    const vka_attention_mask *mask = &call->params.mask;

    if (mask->added.buffer != NULL) {
        recorder_copy(rec, mask->added.buffer->gpu, mask->added.offset, target, offset,
                      mask_elements(mask) * sizeof(float));
    }
}
