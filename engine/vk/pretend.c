/* `pretend`: makes a device look lesser than it is, so that the limits of other devices can be tested on this one. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "vk/gpu.h"
#include "vk/text.h"

/* The least that the engine runs on. */
enum {
    FLOOR_INVOCATIONS = 128,
    FLOOR_LOCAL_Z = 64, /* Vulkan's own minimum of maxComputeWorkGroupSize[2] */
    FLOOR_SHARED_BYTES = 16384,
    FLOOR_STORAGE_BUFFERS = 4,
    FLOOR_PUSH_BYTES = 128,
    FLOOR_GROUPS = 65535,
};

const char *vka_capability_name(uint32_t index)
{
    static const char *const names[VKA_CAP_COUNT] = {
#define CAP_NAME(name, number, text) [number] = text,
        VKA_CAP_LIST(CAP_NAME)
#undef CAP_NAME
    };

    return index < VKA_CAP_COUNT ? names[index] : NULL;
}

static void lower(uint32_t *value, uint32_t limit)
{
    if (*value > limit)
        *value = limit;
}

static void apply_floor(vka_caps *caps)
{
    caps->bits = 0;
    lower(&caps->max_invocations, FLOOR_INVOCATIONS);
    lower(&caps->max_local_size[0], FLOOR_INVOCATIONS);
    lower(&caps->max_local_size[1], FLOOR_INVOCATIONS);
    lower(&caps->max_local_size[2], FLOOR_LOCAL_Z);
    lower(&caps->shared_bytes, FLOOR_SHARED_BYTES);
    lower(&caps->storage_buffers, FLOOR_STORAGE_BUFFERS);
    lower(&caps->push_bytes, FLOOR_PUSH_BYTES);
    for (int axis = 0; axis < 3; axis++)
        lower(&caps->max_groups[axis], FLOOR_GROUPS);
}

/* A number with KiB, MiB, GiB or nothing after it. */
static bool parse_bytes(gpu_text text, uint64_t *value)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};

    for (uint32_t i = 0; i < 3; i++) {
        uint32_t shift = 10 * (i + 1);
        gpu_text number = text;

        if (text.length <= 3 || memcmp(text.start + text.length - 3, units[i], 3) != 0)
            continue;
        number.length -= 3;
        if (!gpu_text_number(number, 10, value) || *value > UINT64_MAX >> shift)
            return false;
        *value <<= shift;
        return true;
    }
    return gpu_text_number(text, 10, value);
}

static vka_status refuse_value(gpu_text item, uint64_t value, uint64_t own, vka_error *error)
{
    return vka_fail_at(error, VKA_ERR_ARGUMENT, "gpu_pretend",
                       "pretend '%.*s': %" PRIu64 " is not between 1 and the device's own %" PRIu64, (int)item.length,
                       item.start, value, own);
}

static vka_status set_limit(uint64_t *limit, gpu_text item, gpu_text text, vka_error *error)
{
    uint64_t value;

    if (!parse_bytes(text, &value))
        return vka_fail_at(error, VKA_ERR_ARGUMENT, "gpu_pretend",
                           "pretend '%.*s': expected a number, with KiB, MiB, GiB or nothing after it",
                           (int)item.length, item.start);
    if (value == 0 || value > *limit)
        return refuse_value(item, value, *limit, error);
    *limit = value;
    return VKA_OK;
}

static vka_status set_limit32(uint32_t *limit, gpu_text item, gpu_text text, vka_error *error)
{
    uint64_t wide = *limit;
    vka_status status = set_limit(&wide, item, text, error);

    *limit = (uint32_t)wide;
    return status;
}

static vka_status clear_caps(uint64_t *bits, gpu_text names, vka_error *error)
{
    gpu_text name;

    while (gpu_text_next(&names, '+', &name)) {
        uint32_t i = 0;

        while (i < VKA_CAP_COUNT && !gpu_text_is(name, vka_capability_name(i)))
            i++;
        if (i == VKA_CAP_COUNT)
            return vka_fail_at(error, VKA_ERR_ARGUMENT, "gpu_pretend",
                               "pretend 'no=%.*s': no such capability; there are:"
#define CAP_LISTED(cap, number, text) " " text
                               VKA_CAP_LIST(CAP_LISTED)
#undef CAP_LISTED
                                   ,
                               (int)name.length, name.start);
        *bits &= ~VKA_CAP_BIT(i);
    }
    return VKA_OK;
}

static vka_status apply_item(vka_caps *caps, gpu_text item, vka_error *error)
{
    gpu_text value = item;

    if (gpu_text_is(item, "floor")) {
        apply_floor(caps);
        return VKA_OK;
    }
    if (gpu_text_skip(&value, "max_alloc="))
        return set_limit(&caps->max_alloc, item, value, error);
    if (gpu_text_skip(&value, "max_range="))
        return set_limit(&caps->max_range, item, value, error);
    if (gpu_text_skip(&value, "max_buffer="))
        return set_limit(&caps->max_buffer, item, value, error);
    if (gpu_text_skip(&value, "max_invocations="))
        return set_limit32(&caps->max_invocations, item, value, error);
    if (gpu_text_skip(&value, "shared="))
        return set_limit32(&caps->shared_bytes, item, value, error);
    if (gpu_text_skip(&value, "no="))
        return clear_caps(&caps->bits, value, error);
    return vka_fail_at(error, VKA_ERR_ARGUMENT, "gpu_pretend",
                       "pretend '%.*s': expected floor, max_alloc=, max_range=, max_buffer=, max_invocations=, "
                       "shared= or no=",
                       (int)item.length, item.start);
}

vka_status gpu_pretend(vka_caps *caps, const char *text, vka_error *error)
{
    vka_caps lesser = *caps;
    gpu_text rest = {0};
    gpu_text item;

    if (text && text[0])
        rest = gpu_text_of(text);
    while (gpu_text_next(&rest, ',', &item)) {
        vka_status status = apply_item(&lesser, item, error);

        if (status != VKA_OK)
            return status;
    }
    *caps = lesser;
    return VKA_OK;
}
