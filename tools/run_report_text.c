/* The report of vkattn run for people. */
#include <stdio.h>

#include "device_output.h"
#include "failure.h"
#include "layout_output.h"
#include "output.h"
#include "run_report.h"

static void print_devices(const run_engine *engine)
{
    static const char *const headings[] = {"device", "index", "name", "driver", "version", "type"};
    output_table *table = output_table_new(headings, "rrllll");

    for (uint32_t d = 0; d < engine->devices; d++) {
        const vka_device_info *info = vka_context_device(engine->context, d);

        output_cell(table, "%u", d);
        output_cell(table, "%u", info->index);
        output_cell(table, "%s", info->name);
        output_cell(table, "%s", info->driver_name);
        output_cell(table, "%s", output_driver_version(info).text);
        output_cell(table, "%s", output_device_type(info->type));
    }
    output_table_end(table);
}

/* "-" for what did not run or has no rate. */
static void rate_cell(output_table *table, double amount, double ms)
{
    if (ms > 0 && amount > 0)
        output_cell(table, "%.2f", amount / ms * 1e-6);
    else
        output_cell(table, "-");
}

static void phase_cells(output_table *table, const vka_stage_time *time, uint32_t calls)
{
    double ms = run_stage_ms(time) / calls;

    output_cell(table, "%.3f", ms);
    rate_cell(table, time->flops / calls, ms);
    output_cell(table, "%s", output_bytes((uint64_t)(time->bytes / calls)).text);
}

static void print_stages(const run_result *result)
{
    static const char *const headings[] = {"stage", "device",    "clock",   "prefill ms", "GFLOP/s",
                                           "bytes", "decode ms", "GFLOP/s", "bytes"};
    bool decoded = result->rows->decode > 0;
    output_table *table = decoded ? output_table_new(headings, "lrlrrrrrr") : output_table_new(headings, "lrlrrr");

    for (uint32_t s = 0; s < VKA_STAGE_COUNT; s++)
        for (uint32_t d = 0; d < result->engine->devices; d++) {
            const vka_stage_time *prefill = &result->times->prefill[d][s];

            if (!run_stage_ran(result, s, d))
                continue;
            output_cell(table, "%s", vka_stage_name((vka_stage)s));
            if (s == VKA_STAGE_ADD)
                output_cell(table, "all");
            else
                output_cell(table, "%u", d);
            output_cell(table, "%s", run_stage_clock(prefill));
            phase_cells(table, prefill, 1);
            if (decoded)
                phase_cells(table, &result->times->decode[d][s], result->rows->decode);
        }
    output_table_end(table);
}

static void print_times(const run_result *result)
{
    const run_rows *rows = result->rows;

    printf("first call: %.0f ms more, to make pipelines and scratch memory\n", result->first_ms);
    printf("prefill: %u tokens in %.2f ms, %.0f tokens/s\n", rows->prefill_rows, result->times->prefill_ms,
           rows->prefill_rows / result->times->prefill_ms * 1e3);
    if (rows->decode > 0)
        printf("decode: %u steps of %u %s, %.2f ms per step, %.1f tokens/s\n", rows->decode, rows->sequences,
               rows->sequences == 1 ? "token" : "tokens", result->times->decode_ms / rows->decode,
               (double)rows->decode * rows->sequences / result->times->decode_ms * 1e3);
}

static void print_verdict(const run_verdict *verdict)
{
    static const char *const headings[] = {"stage", "elements", "error/bound", "got", "want", "bound", "where"};
    output_table *table = output_table_new(headings, "lrrrrrl");

    printf("every element of every stage against float64 from the device's own input to that stage:\n");
    for (uint32_t c = 0; c < RUN_CHECK_COUNT; c++) {
        const run_worst *worst = &verdict->worst[c];

        output_cell(table, "%s", run_check_name((run_check)c));
        output_cell(table, "%llu", (unsigned long long)verdict->elements[c]);
        output_cell(table, "%.3f", worst->ratio);
        output_cell(table, "%.6g", worst->got);
        output_cell(table, "%.6g", worst->want);
        output_cell(table, "%.2g", worst->bound);
        output_cell(table, "device %u, %s row %u, column %u", worst->device, worst->decoding ? "decode" : "prefill",
                    worst->row, worst->column);
    }
    output_table_end(table);
    printf("end to end: normalised mean square error %.2g (informative)\n", verdict->nmse);
}

static void print_conclusion(const run_result *result)
{
    if (!result->repeated)
        printf("FAILED: two passes over the same rows gave different bits\n");
    if (result->engine->validation_messages > 0)
        printf("FAILED: %u error messages, see above\n", result->engine->validation_messages);
    if (!result->verdict)
        printf("not verified; --verify checks every element against float64\n");
    else
        printf("%s: largest error/bound %.3f\n", result->verdict->max_error_over_bound <= 1 ? "PASSED" : "FAILED",
               result->verdict->max_error_over_bound);
}

int run_report_text(const run_result *result)
{
    const run_options *options = result->options;
    uint32_t rank_count;
    const vka_rank *ranks = vka_layer_ranks(result->engine->layer, &rank_count);

    output_layer(&result->layer->source);
    printf("tp=%u on %u devices, KV policy %s, %s weights, %s KV cache in pages of %u%s\n\n", rank_count,
           result->engine->devices,
           output_policy_name((vka_kv_policy)options->layout.kv_policy, &result->layer->source.desc),
           vka_dtype_name(vka_layer_weight_dtype(result->engine->layer)),
           vka_dtype_name(vka_cache_dtype(result->engine->cache)), options->page_size,
           options->reproducible ? ", reproducible" : "");
    print_devices(result->engine);
    printf("\n");
    output_ranks(ranks, rank_count);
    printf("\n");
    print_times(result);
    print_stages(result);
    printf("\n");
    if (result->verdict)
        print_verdict(result->verdict);
    print_conclusion(result);
    return run_passed(result) ? EXIT_STATUS_OK : EXIT_STATUS_FAILED;
}
