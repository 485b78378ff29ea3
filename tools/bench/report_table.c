/* The table, and the command that repeats a line of it. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "bench/report.h"

output_table *bench_table_new(void)
{
    static const char *const headings[] = {"case", "device",  "GPU ms", "wall ms", "spread",
                                           "n",    "GFLOP/s", "GB/s",   "peak",    "variant"};

    return output_table_new(headings, "lrrrrrrrrl");
}

/* About three significant digits, or "-". */
static void add_number(output_table *table, double value)
{
    if (value > 0)
        output_cell(table, "%.*f", value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0, value);
    else
        output_cell(table, "-");
}

/* The interquartile range beside the median, of the times that rates refer to. */
static void add_spread(output_table *table, const bench_samples *samples)
{
    bench_stats gpu = bench_stats_of(samples->gpu_ms, samples->count);
    bench_stats stats = gpu.count > 0 ? gpu : bench_stats_of(samples->wall_ms, samples->count);

    if (stats.count > 1 && stats.median > 0)
        output_cell(table, "%.0f %%", 100 * (stats.q3 - stats.q1) / stats.median);
    else
        output_cell(table, "-");
}

static void add_measured(output_table *table, const bench_result *result)
{
    const bench_samples *samples = &result->samples;
    double percent = bench_result_percent(result);

    add_number(table, bench_stats_of(samples->gpu_ms, samples->count).median);
    add_number(table, bench_stats_of(samples->wall_ms, samples->count).median);
    add_spread(table, samples);
    output_cell(table, "%zu", samples->count);
    add_number(table, bench_result_gflops(result));
    add_number(table, bench_result_gbytes(result));
    if (percent >= 0)
        output_cell(table, "%.1f %%", percent);
    else
        output_cell(table, "-");
}

static void add_notes(output_table *table, const bench_result *result)
{
    char notes[512];
    vka_text text = {notes, sizeof(notes), 0};

    vka_append(&text, "%s", result->variant);
    for (size_t i = 0; i < result->extra_count; i++)
        vka_append(&text, "%s%s %.3g", text.used ? ", " : "", result->extras[i].name, result->extras[i].value);
    output_cell(table, "%s", notes);
}

void bench_table_add(output_table *table, const bench_session *session, const bench_result *result)
{
    output_cell(table, "%s", result->of->name);
    if (result->device == BENCH_HOST)
        output_cell(table, "-");
    else
        output_cell(table, "%u", session->info[result->device].index);
    if (result->status == BENCH_OK) {
        add_measured(table, result);
        add_notes(table, result);
        return;
    }
    for (int i = 0; i < 7; i++)
        output_cell(table, "-");
    output_cell(table, "%s: %s", bench_status_name(result->status), result->reason);
}

void bench_command(const bench_session *session, const bench_result *result, char *out, size_t size)
{
    const bench_options *options = &session->options;
    uint32_t first = result->device == BENCH_HOST ? 0 : (uint32_t)result->device;
    uint32_t count = result->device == BENCH_HOST ? session->devices : 1;
    vka_text text = {out, size, 0};

    vka_append(&text, "vkattn bench --devices");
    for (uint32_t d = first; d < first + count; d++)
        vka_append(&text, "%c%u", d == first ? ' ' : ',', session->info[d].index);
    vka_append(&text, " --filter %s --samples %u", result->of->name, options->limits.samples);
    if (options->quick)
        vka_append(&text, " --quick");
    else
        vka_append(&text, " --max-time %.0f", options->limits.max_ms / 1e3);
    if (options->variants)
        vka_append(&text, " --variants '%s'", options->variants);
    if (options->pretend)
        vka_append(&text, " --pretend '%s'", options->pretend);
}
