/* See planner.h. */
#include "exec/planner.h"

#include "base/error.h"

#define MAX_SPLITS 64u

uint64_t exec_slot_bytes(uint32_t q_heads, uint32_t v_pad)
{
    return (uint64_t)q_heads * (v_pad + 8) * sizeof(float);
}

/* Workgroups of attention that keep a device of a type busy. */
static uint32_t busy_workgroups(vka_device_type type)
{
    switch (type) {
    case VKA_DEVICE_DISCRETE:
        return 512;
    case VKA_DEVICE_INTEGRATED:
    case VKA_DEVICE_VIRTUAL:
        return 64;
    default:
        return 16;
    }
}

tile_config exec_tile_config(const exec_device *device, const pipeline_set *set, uint32_t decode_records,
                             uint64_t slot_bytes)
{
    const vka_caps *caps = gpu_device_caps(device->gpu);
    uint64_t fit = vka_caps_max_tensor(caps) / slot_bytes / 8; /* one row takes an eighth of the split buffer at most */

    fit = fit > 0 ? fit : 1;
    return (tile_config){.prefill_rows = set->kernel[VKA_KERNEL_PREFILL].variant->tile_rows,
                         .decode_workgroups = busy_workgroups(caps->type),
                         .decode_records = decode_records,
                         .max_splits = fit < MAX_SPLITS ? (uint32_t)fit : MAX_SPLITS};
}

/* *fits is false when one device's split buffer or parameters would pass its limits. */
static vka_status plan_devices(chunk_planner *planner, bool *fits, vka_error *error)
{
    vka_status status = VKA_OK;

    *fits = true;
    for (uint32_t d = 0; status == VKA_OK && d < planner->context->device_count; d++) {
        planned_device *planned = &planner->devices[d];
        if (planned->device == NULL) {
            continue;
        }
        tile_plan *plan = &planned->device->plan;
        status = tile_plan_build(plan, &planned->tiles, planner->context->call.sources,
                                 planner->append_only ? 0 : planner->source_count, error);
        uint64_t most = vka_caps_max_tensor(gpu_device_caps(planned->device->gpu));
        *fits = *fits && plan->slots <= most / planned->slot_bytes &&
                call_device_bytes(planned->device, &planned->heads, planner->shared_words) <= most;
    }
    return status;
}

static vka_status plan_rows(chunk_planner *planner, uint32_t max_rows, bool *fits, vka_error *error)
{
    tile_source *sources = planner->context->call.sources;

    planner->rows = chunk_next(planner->context->call.sequences, planner->sequence_count, &planner->limits, max_rows,
                               &planner->cursor, sources, &planner->source_count);
    if (planner->rows == 0) {
        *fits = true;
        return VKA_OK;
    }
    planner->records.first_row = planner->begin.total;
    vka_status status =
        call_build_shared(planner->context, &planner->records, planner->page_size, planner->pages_per_slab, sources,
                          planner->source_count, &planner->shared_words, error);
    return status == VKA_OK ? plan_devices(planner, fits, error) : status;
}

vka_status planner_next(chunk_planner *planner, vka_error *error)
{
    const chunk_cursor start = planner->cursor;
    uint32_t max_rows = planner->limits.max_rows;
    bool fits = false;

    planner->begin = start;
    while (!fits) {
        planner->cursor = start;
        vka_status status = plan_rows(planner, max_rows, &fits, error);
        if (status != VKA_OK) {
            return status;
        }
        if (!fits && planner->rows == 1) {
            return vka_fail(error, VKA_ERR_LIMIT,
                            "the page table or the split attention of one row passes a buffer limit of a device: use "
                            "larger pages, or raise tp");
        }
        max_rows = planner->rows / 2;
    }
    return VKA_OK;
}
