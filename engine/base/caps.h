/* What a device can do, as plain data: filled once per device by vk/, masked by quirks and by the user. */
#ifndef VKA_BASE_CAPS_H
#define VKA_BASE_CAPS_H

#include <stdint.h>

#include "vkattn/context.h"

/* X(BIT_NAME, number, "name as in --pretend no=name") */
#define VKA_CAP_LIST(X)                                                          \
    X(VKA_CAP_FP16, 0, "fp16")              /* shaderFloat16 */                  \
    X(VKA_CAP_STORAGE16, 1, "storage16")    /* storageBuffer16BitAccess */       \
    X(VKA_CAP_SUBGROUP_ADD, 2, "subgroup")  /* arithmetic + shuffle, compute */  \
    X(VKA_CAP_TEXEL, 3, "texel")            /* RGBA32F/UI uniform texel buffers */ \
    X(VKA_CAP_COOPMAT, 4, "coopmat")        /* VK_KHR_cooperative_matrix */      \
    X(VKA_CAP_MEMORY_BUDGET, 5, "budget")   /* VK_EXT_memory_budget */           \
    X(VKA_CAP_TIMESTAMPS, 6, "timestamps")  /* GPU timestamps on the queue */    \
    X(VKA_CAP_HOST_CACHED, 7, "hostcached") /* host-cached device memory: partials are added in place */ \
    X(VKA_CAP_SUBGROUP8, 8, "subgroup8")    /* subgroups have 8 invocations */   \
    X(VKA_CAP_QUADS, 9, "quads")            /* subgroups are quads: 4 invocations, quad operations, compute */

enum {
#define VKA_CAP_ENUM(name, number, text) name = number,
    VKA_CAP_LIST(VKA_CAP_ENUM)
#undef VKA_CAP_ENUM
    VKA_CAP_COUNT
};

#define VKA_CAP_BIT(cap) (1ull << (cap))

typedef struct vka_caps {
    uint64_t bits;
    vka_device_type type;
    uint32_t subgroup_size;
    uint32_t max_invocations;    /* per workgroup */
    uint32_t max_local_size[3];
    uint32_t max_groups[3];
    uint32_t shared_bytes;
    uint32_t storage_buffers;    /* per stage */
    uint32_t push_bytes;
    uint32_t texel_elements;
    uint32_t texel_alignment;    /* bytes */
    uint64_t max_range;          /* maxStorageBufferRange */
    uint64_t max_buffer;         /* maxBufferSize */
    uint64_t max_alloc;          /* maxMemoryAllocationSize less 64 KiB */
} vka_caps;

/* Largest single tensor that may be bound as one storage buffer: min of the three limits. */
static inline uint64_t vka_caps_max_tensor(const vka_caps *caps)
{
    uint64_t least = caps->max_range < caps->max_buffer ? caps->max_range : caps->max_buffer;
    return least < caps->max_alloc ? least : caps->max_alloc;
}

#endif
