/* See tiles.h. */
#include "exec/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Room for one more element; the array is moved when it is full. */
static vka_status reserve(const vka_allocator *allocator, void *array, uint32_t count, uint32_t *capacity, size_t size,
                          vka_error *error)
{
    void *old;

    if (count < *capacity) {
        return VKA_OK;
    }
    uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    memcpy(&old, array, sizeof(old));
    void *grown = vka_realloc(allocator, old, wanted, size);
    if (grown == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u attention tiles", wanted);
    }
    memcpy(array, &grown, sizeof(grown));
    *capacity = wanted;
    return VKA_OK;
}

static vka_status add_tile(tile_plan *plan, tile_launch key, attention_tile tile, vka_error *error)
{
    vka_status status =
        reserve(plan->allocator, &plan->tiles, plan->tile_count, &plan->tile_capacity, sizeof(*plan->tiles), error);

    if (status == VKA_OK) {
        plan->tiles[plan->tile_count] = (planned_tile){key, plan->tile_count, tile};
        plan->tile_count++;
    }
    return status;
}

static vka_status add_combine_rows(tile_plan *plan, uint32_t row, uint32_t rows, uint32_t slots, vka_error *error)
{
    for (uint32_t r = 0; r < rows; r++) {
        vka_status status =
            reserve(plan->allocator, &plan->rows, plan->row_count, &plan->row_capacity, sizeof(*plan->rows), error);
        if (status != VKA_OK) {
            return status;
        }
        plan->rows[plan->row_count++] = (combine_row){row + r, (uint32_t)plan->slots + r * slots, slots, 0};
    }
    plan->slots += (uint64_t)slots * rows;
    return VKA_OK;
}

static uint32_t limit_of(uint32_t window)
{
    return window == 0 || window > ATTENTION_NO_LIMIT ? ATTENTION_NO_LIMIT : window;
}

key_limits key_limits_of(bool causal, uint32_t window, uint32_t window_right)
{
    return (key_limits){limit_of(window), causal ? 1 : limit_of(window_right)};
}

typedef struct key_range {
    uint32_t begin, end;
} key_range;

/* Keys that any of `rows` rows from `first` on can see. */
static key_range visible(const tile_config *config, const tile_source *source, uint32_t first, uint32_t rows)
{
    int64_t top = (int64_t)source->position + first;
    int64_t end = top + rows - 1 + config->keys.right;
    int64_t begin = top + 1 - config->keys.left;

    end = end < 0 ? 0 : end;
    end = end > (int64_t)source->keys ? (int64_t)source->keys : end;
    begin = begin < 0 ? 0 : begin;
    begin = begin > end ? end : begin;
    return (key_range){(uint32_t)begin, (uint32_t)end};
}

static uint32_t slab_of(const tile_config *config, const tile_source *source, uint32_t key)
{
    return source->pages[key / config->page_size] / config->pages_per_slab;
}

/* End of the piece that starts at `key`: at most `length` keys, all in one slab. */
static uint32_t piece_end(const tile_config *config, const tile_source *source, uint32_t key, uint32_t end,
                          uint32_t length)
{
    uint32_t slab = slab_of(config, source, key);
    uint32_t stop = end - key > length ? key + length : end;
    uint32_t next = key;

    while (next < stop && slab_of(config, source, next) == slab) {
        uint32_t page_end = (next / config->page_size + 1) * config->page_size;
        next = page_end < stop ? page_end : stop;
    }
    return next;
}

static uint32_t count_pieces(const tile_config *config, const tile_source *source, key_range keys, uint32_t length)
{
    uint32_t count = 0;

    for (uint32_t key = keys.begin; key < keys.end; key = piece_end(config, source, key, keys.end, length)) {
        count++;
    }
    return count;
}

/* One group of rows over all its keys: one final tile, or several partial ones with their combine rows. */
static vka_status add_rows(tile_plan *plan, const tile_config *config, const tile_source *source, vka_kernel kernel,
                           uint32_t first, uint32_t rows, uint32_t splits, vka_error *error)
{
    key_range keys = visible(config, source, first, rows);
    uint32_t length = keys.end > keys.begin ? (keys.end - keys.begin - 1) / splits + 1 : 1;
    uint32_t pieces = count_pieces(config, source, keys, length);
    tile_launch key = {.kernel = kernel, .partial = pieces > 1};
    attention_tile tile = {.row = source->row + first,
                           .rows = rows,
                           .position = source->position + (int32_t)first,
                           .pages = source->pages_offset,
                           .slot = (uint32_t)plan->slots,
                           .slot_stride = pieces > 1 ? pieces : 0};

    if (pieces == 0) { /* nothing to see: the kernel writes zeros */
        return add_tile(plan, key, tile, error);
    }
    for (uint32_t begin = keys.begin; begin < keys.end; begin = tile.key_end, tile.slot++) {
        tile.key_begin = begin;
        tile.key_end = piece_end(config, source, begin, keys.end, length);
        key.slab = slab_of(config, source, begin);
        vka_status status = add_tile(plan, key, tile, error);
        if (status != VKA_OK) {
            return status;
        }
    }
    return pieces > 1 ? add_combine_rows(plan, tile.row, rows, pieces, error) : VKA_OK;
}

static uint32_t decode_splits(const tile_config *config, uint32_t decode_rows, key_range keys)
{
    uint32_t busy = decode_rows * config->decode_records;
    uint32_t wanted = busy > 0 ? (config->decode_workgroups + busy - 1) / busy : 1;
    uint32_t most = (keys.end - keys.begin) / TILE_SPLIT_MIN_KEYS;

    most = most < config->max_splits ? most : config->max_splits;

    wanted = wanted < most ? wanted : most;
    return wanted > 1 ? wanted : 1;
}

static uint32_t count_decode_rows(const tile_source *sources, uint32_t count)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; i < count; i++) {
        rows += sources[i].rows < TILE_PREFILL_MIN_ROWS ? sources[i].rows : 0;
    }
    return rows;
}

static vka_status add_source(tile_plan *plan, const tile_config *config, const tile_source *source,
                             uint32_t decode_rows, vka_error *error)
{
    bool prefill = source->rows >= TILE_PREFILL_MIN_ROWS;
    uint32_t step = prefill ? config->prefill_rows : 1;
    vka_status status = VKA_OK;

    for (uint32_t first = 0; status == VKA_OK && first < source->rows; first += step) {
        uint32_t rows = source->rows - first < step ? source->rows - first : step;
        uint32_t splits = prefill ? 1 : decode_splits(config, decode_rows, visible(config, source, first, 1));
        status = add_rows(plan, config, source, prefill ? VKA_KERNEL_PREFILL : VKA_KERNEL_DECODE, first, rows, splits,
                          error);
    }
    return status;
}

static int same_launch(const tile_launch *a, const tile_launch *b)
{
    return a->kernel == b->kernel && a->slab == b->slab && a->partial == b->partial;
}

static int compare_tiles(const void *left, const void *right)
{
    const planned_tile *a = left, *b = right;

    if (a->key.kernel != b->key.kernel) {
        return a->key.kernel < b->key.kernel ? -1 : 1;
    }
    if (a->key.slab != b->key.slab) {
        return a->key.slab < b->key.slab ? -1 : 1;
    }
    if (a->key.partial != b->key.partial) {
        return a->key.partial ? 1 : -1;
    }
    return a->order < b->order ? -1 : 1;
}

static vka_status group_launches(tile_plan *plan, vka_error *error)
{
    if (plan->tile_count > 0) {
        qsort(plan->tiles, plan->tile_count, sizeof(*plan->tiles), compare_tiles);
    }
    for (uint32_t i = 0; i < plan->tile_count; i++) {
        tile_launch *last = plan->launch_count > 0 ? &plan->launches[plan->launch_count - 1] : NULL;
        if (last != NULL && last->count < TILE_LAUNCH_MAX && same_launch(last, &plan->tiles[i].key)) {
            last->count++;
            continue;
        }
        vka_status status = reserve(plan->allocator, &plan->launches, plan->launch_count, &plan->launch_capacity,
                                    sizeof(*plan->launches), error);
        if (status != VKA_OK) {
            return status;
        }
        plan->launches[plan->launch_count] = plan->tiles[i].key;
        plan->launches[plan->launch_count].first = i;
        plan->launches[plan->launch_count].count = 1;
        plan->launch_count++;
    }
    return VKA_OK;
}

vka_status tile_plan_build(tile_plan *plan, const tile_config *config, const tile_source *sources, uint32_t count,
                           vka_error *error)
{
    uint32_t decode_rows = count_decode_rows(sources, count);
    vka_status status = VKA_OK;

    plan->tile_count = plan->launch_count = plan->row_count = 0;
    plan->slots = 0;
    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        status = add_source(plan, config, &sources[i], decode_rows, error);
    }
    return status == VKA_OK ? group_launches(plan, error) : status;
}

void tile_plan_destroy(tile_plan *plan)
{
    vka_free(plan->allocator, plan->tiles);
    vka_free(plan->allocator, plan->launches);
    vka_free(plan->allocator, plan->rows);
    memset(plan, 0, sizeof(*plan));
}

uint32_t tile_head_records(uint32_t kv_heads, const uint32_t *kv_q_begin, uint32_t pack, attention_heads *out)
{
    uint32_t count = 0;

    for (uint32_t kv = 0; kv < kv_heads; kv++) {
        for (uint32_t q = kv_q_begin[kv]; q < kv_q_begin[kv + 1]; q += pack) {
            uint32_t left = kv_q_begin[kv + 1] - q;
            if (out != NULL) {
                out[count] = (attention_heads){kv, q, left < pack ? left : pack, 0};
            }
            count++;
        }
    }
    return count;
}
