/* The report of vkattn run for machines: one object. */
#include <math.h>

#include "device_output.h"
#include "failure.h"
#include "layout_output.h"
#include "output.h"
#include "run_report.h"

/* JSON has no infinity and no NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *devices(const run_engine *engine)
{
    json_t *array = json_array();

    for (uint32_t d = 0; d < engine->devices; d++)
        json_array_append_new(array, output_json_device(vka_context_device(engine->context, d)));
    return array;
}

static json_t *phase(const vka_stage_time *time, uint32_t calls)
{
    double ms = run_stage_ms(time) / calls;

    return json_pack("{s:o, s:o, s:o, s:o}", "ms", number(ms), "flops", number(time->flops / calls), "bytes",
                     number(time->bytes / calls), "gflops", number(time->flops / calls / ms * 1e-6));
}

/* {"qkv": [{"device": 0, "clock": "gpu", "prefill": {...}, "decode": {... per step}}], ...} */
static json_t *stages(const run_result *result)
{
    json_t *object = json_object();

    for (uint32_t s = 0; s < VKA_STAGE_COUNT; s++) {
        json_t *array = json_array();

        for (uint32_t d = 0; d < result->engine->devices; d++) {
            const vka_stage_time *prefill = &result->times->prefill[d][s];
            json_t *entry;

            if (!run_stage_ran(result, s, d))
                continue;
            entry = json_pack("{s:s, s:o}", "clock", run_stage_clock(prefill), "prefill", phase(prefill, 1));
            if (s != VKA_STAGE_ADD)
                json_object_set_new(entry, "device", json_integer(d));
            if (result->rows->decode > 0)
                json_object_set_new(entry, "decode", phase(&result->times->decode[d][s], result->rows->decode));
            json_array_append_new(array, entry);
        }
        json_object_set_new(object, vka_stage_name((vka_stage)s), array);
    }
    return object;
}

static json_t *verify(const run_result *result)
{
    const run_verdict *verdict = result->verdict;
    json_t *checks = json_object();

    for (uint32_t c = 0; c < RUN_CHECK_COUNT; c++) {
        const run_worst *worst = &verdict->worst[c];

        json_object_set_new(checks, run_check_name((run_check)c),
                            json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:s, s:I, s:I}", "elements",
                                      (json_int_t)verdict->elements[c], "error_over_bound", number(worst->ratio), "got",
                                      number(worst->got), "want", number(worst->want), "bound", number(worst->bound),
                                      "device", (json_int_t)worst->device, "phase",
                                      worst->decoding ? "decode" : "prefill", "row", (json_int_t)worst->row, "column",
                                      (json_int_t)worst->column));
    }
    return json_pack("{s:b, s:o, s:o, s:o}", "pass", verdict->max_error_over_bound <= 1, "max_error_over_bound",
                     number(verdict->max_error_over_bound), "nmse", number(verdict->nmse), "stages", checks);
}

int run_report_json(const run_result *result)
{
    const run_options *options = result->options;
    const run_rows *rows = result->rows;
    uint32_t rank_count;
    const vka_rank *ranks = vka_layer_ranks(result->engine->layer, &rank_count);
    bool passed = run_passed(result);
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:I, s:b, s:I}", "status", passed ? "ok" : "failed", "version",
                  vka_version(), "layer", output_json_layer(&result->layer->source), "grid",
                  output_json_grid(layout_args_grid(&options->layout)), "kv_policy",
                  output_policy_name((vka_kv_policy)options->layout.kv_policy, &result->layer->source.desc),
                  "weight_dtype", vka_dtype_name(vka_layer_weight_dtype(result->engine->layer)), "cache_dtype",
                  vka_dtype_name(vka_cache_dtype(result->engine->cache)), "page_size", (json_int_t)options->page_size,
                  "reproducible", options->reproducible, "seed", (json_int_t)options->seed);
    int status;

    json_object_set_new(object, "devices", devices(result->engine));
    json_object_set_new(object, "ranks", output_json_ranks(ranks, rank_count));
    json_object_set_new(object, "prefill_tokens", json_integer(rows->prefill_rows));
    json_object_set_new(object, "sequences", json_integer(rows->sequences));
    json_object_set_new(object, "decode_steps", json_integer(rows->decode));
    json_object_set_new(object, "chunks", json_integer(result->times->chunks));
    json_object_set_new(object, "first_call_ms", number(result->first_ms));
    json_object_set_new(object, "prefill_ms", number(result->times->prefill_ms));
    json_object_set_new(object, "decode_ms_per_token",
                        rows->decode > 0 ? number(result->times->decode_ms / rows->decode) : json_null());
    json_object_set_new(object, "stages", stages(result));
    json_object_set_new(object, "repeated", json_boolean(result->repeated));
    json_object_set_new(object, "error_messages", json_integer(result->engine->validation_messages));
    json_object_set_new(object, "verify", result->verdict ? verify(result) : json_null());
    status = output_json(object);
    return status != EXIT_STATUS_OK ? status : passed ? EXIT_STATUS_OK : EXIT_STATUS_FAILED;
}
