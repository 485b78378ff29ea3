/* The devices of a run, and passes of all its rows over them: one call for prefill, one call per decoding step. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "progress.h"
#include "run.h"

/* Messages of level 0 are the validation layer's, or errors that come back as a status anyway. */
static void log_message(void *user, int level, const char *message)
{
    static const char *const names[] = {"error", "warning", "info"};
    run_engine *engine = user;

    if (level == VKA_LOG_ERROR)
        engine->validation_messages++;
    if (level <= VKA_LOG_WARNING)
        fprintf(stderr, "vkattn: %s: %s\n", names[level], message);
}

static uint32_t pages_needed(const run_rows *rows, uint32_t page_size)
{
    uint32_t pages = 0;

    for (uint32_t s = 0; s < rows->sequences; s++)
        pages += (rows->prefill[s] + rows->decode + page_size - 1) / page_size;
    return pages;
}

static vka_status open_layer(run_engine *engine, const run_options *options, const run_layer *layer, vka_error *error)
{
    vka_layer_params params = {
        .struct_size = sizeof(params),
        .desc = &layer->source.desc,
        .weights = &layer->weights,
        .grid = layout_args_grid(&options->layout),
        .kv_policy = (vka_kv_policy)options->layout.kv_policy,
        .place = options->layout.place,
        .weight_dtype = (vka_dtype)options->layout.weight_dtype,
        .reproducible = options->reproducible,
    };

    return vka_layer_create(&engine->layer, engine->context, &params, error);
}

static vka_status open_cache(run_engine *engine, const run_options *options, const run_rows *rows, vka_error *error)
{
    vka_cache_params params = {
        .struct_size = sizeof(params),
        .page_size = options->page_size,
        .pages = pages_needed(rows, options->page_size),
        .dtype = (vka_dtype)options->layout.cache_dtype,
    };

    return vka_cache_create(&engine->cache, engine->layer, &params, error);
}

vka_status run_engine_open(run_engine *out, const run_options *options, const run_layer *layer, const run_rows *rows,
                           vka_error *error)
{
    vka_context_params params = {
        .struct_size = sizeof(params),
        .devices = options->devices,
        .pretend = options->pretend,
        .variants = options->variants,
        .validation = options->validation,
        .no_tuning_cache = options->no_tuning,
        .log = log_message,
        .log_user = out,
    };
    vka_status status;
    double start;

    *out = (run_engine){0};
    progress_show("opening devices");
    status = vka_context_create(&out->context, &params, error);
    if (!status) {
        out->devices = vka_context_device_count(out->context);
        progress_show("uploading weights");
        status = open_layer(out, options, layer, error);
    }
    if (!status)
        status = open_cache(out, options, rows, error);
    if (status)
        return status;
    progress_show("making pipelines");
    start = vka_clock_ms();
    status = vka_forward_prewarm(out->layer, out->cache, error);
    out->prewarm_ms = vka_clock_ms() - start;
    return status;
}

void run_engine_close(run_engine *engine)
{
    vka_cache_destroy(&engine->cache);
    vka_layer_destroy(&engine->layer);
    vka_context_destroy(&engine->context);
}

/* ---- times ---- */

vka_status run_times_make(run_times *out, uint32_t devices, vka_error *error)
{
    *out = (run_times){.storage = vka_alloc(NULL, 2 * (size_t)devices, sizeof(vka_stage_time[VKA_STAGE_COUNT]))};
    if (!out->storage)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the times of %u devices", devices);
    out->prefill = out->storage;
    out->decode = out->prefill + devices;
    return VKA_OK;
}

void run_times_free(run_times *times)
{
    vka_free(NULL, times->storage);
    *times = (run_times){0};
}

static void add_times(vka_stage_time (*sum)[VKA_STAGE_COUNT], vka_stage_time (*one)[VKA_STAGE_COUNT], uint32_t devices)
{
    for (uint32_t d = 0; d < devices; d++)
        for (uint32_t s = 0; s < VKA_STAGE_COUNT; s++) {
            vka_stage_time *to = &sum[d][s];
            const vka_stage_time *from = &one[d][s];

            to->wall_ms += from->wall_ms;
            to->gpu_ms = from->gpu_ms < 0 || to->gpu_ms < 0 ? -1 : to->gpu_ms + from->gpu_ms;
            to->flops += from->flops;
            to->bytes += from->bytes;
        }
}

/* ---- passes ---- */

typedef struct pass_state {
    run_engine *engine;
    const run_rows *rows;
    float *output;
    const run_observer *observer;
    run_times *times;
    vka_batch_entry *entries; /* [sequences] */
    uint32_t *past;           /* [sequences] */
    uint32_t opened;          /* sequences made so far */
    run_times call;           /* of one call; only `prefill` is used */
} pass_state;

static vka_status open_pass(pass_state *pass, vka_error *error)
{
    uint32_t sequences = pass->rows->sequences;
    vka_status status = run_times_make(&pass->call, pass->engine->devices, error);

    if (status)
        return status;
    pass->entries = vka_alloc(NULL, sequences, sizeof(pass->entries[0]));
    pass->past = vka_alloc(NULL, sequences, sizeof(pass->past[0]));
    if (!pass->entries || !pass->past)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a batch of %u sequences", sequences);
    for (; pass->opened < sequences; pass->opened++) {
        vka_batch_entry *entry = &pass->entries[pass->opened];

        status = vka_cache_sequence_new(pass->engine->cache, &entry->sequence, error);
        if (status)
            return status;
        entry->new_tokens = pass->rows->prefill[pass->opened];
    }
    return VKA_OK;
}

/* Frees what open_pass made; the sequences too, so that the next pass starts from an empty cache. */
static vka_status close_pass(pass_state *pass, vka_status status, vka_error *error)
{
    for (uint32_t s = 0; s < pass->opened; s++) {
        vka_status freed =
            vka_cache_sequence_free(pass->engine->cache, pass->entries[s].sequence, status ? NULL : error);

        status = status ? status : freed;
    }
    vka_free(NULL, pass->entries);
    vka_free(NULL, pass->past);
    run_times_free(&pass->call);
    return status;
}

/* One call over rows first .. first + count - 1, timed into `sum` and *wall_ms. */
static vka_status call_rows(pass_state *pass, uint32_t first, uint32_t count, vka_stage_time (*sum)[VKA_STAGE_COUNT],
                            double *wall_ms, vka_error *error)
{
    uint32_t hidden = pass->rows->hidden;
    const float *input = pass->rows->input + (size_t)first * hidden;
    float *output = pass->output + (size_t)first * hidden;
    vka_timing timing = {.devices = pass->call.prefill};
    vka_forward_params params = {
        .struct_size = sizeof(params),
        .layer = pass->engine->layer,
        .cache = pass->engine->cache,
        .batch = {.entries = pass->entries, .count = pass->rows->sequences},
        .input = {.data = input, .dtype = VKA_F32, .rows = count, .cols = hidden},
        .output = {.data = output, .dtype = VKA_F32, .rows = count, .cols = hidden},
        .trace = pass->observer ? pass->observer->trace : NULL,
        .trace_user = pass->observer ? pass->observer->user : NULL,
        .timing = &timing,
    };
    vka_status status;

    if (first == 0 && pass->rows->kv_input) { /* the prefill brings the other sequences; decoding finds them cached */
        params.kv_input =
            (vka_tensor){.data = pass->rows->kv_input, .dtype = VKA_F32, .rows = count, .cols = pass->rows->kv_hidden};
        params.kv_tokens = pass->rows->prefill;
    }
    status = vka_forward(&params, error);
    if (status)
        return status;
    add_times(sum, timing.devices, pass->engine->devices);
    *wall_ms += timing.wall_ms;
    pass->times->first_ms += timing.first_ms;
    pass->times->chunks += timing.chunks;
    if (pass->observer && pass->observer->done) {
        run_call call = {.engine = pass->engine,
                         .entries = pass->entries,
                         .sequences = pass->rows->sequences,
                         .past = pass->past,
                         .input = input,
                         .output = output,
                         .rows = count};

        status = pass->observer->done(pass->observer->user, &call, error);
    }
    for (uint32_t s = 0; s < pass->rows->sequences; s++) {
        pass->past[s] += pass->entries[s].new_tokens;
        pass->entries[s].new_tokens = 1;
    }
    return status;
}

vka_status run_pass(run_engine *engine, const run_rows *rows, float *output, const run_observer *observer,
                    run_times *times, vka_error *error)
{
    pass_state pass = {.engine = engine, .rows = rows, .output = output, .observer = observer, .times = times};
    uint32_t row = rows->prefill_rows;
    vka_status status = open_pass(&pass, error);

    if (!status)
        status = call_rows(&pass, 0, rows->prefill_rows, times->prefill, &times->prefill_ms, error);
    for (uint32_t step = 0; step < rows->decode && !status; step++) {
        progress_show("decoding step %u of %u", step + 1, rows->decode);
        status = call_rows(&pass, row, rows->sequences, times->decode, &times->decode_ms, error);
        row += rows->sequences;
    }
    return close_pass(&pass, status, error);
}
