/* vkattn bench: how fast the parts of a layer are, beside what the device can do at best. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/catalogue.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "command.h"
#include "failure.h"
#include "output.h"
#include "progress.h"

enum { DEFAULT_SAMPLES = 10, DEFAULT_SECONDS = 3, QUICK_SAMPLES = 3, QUICK_MAX_MS = 300 };

typedef struct command_options {
    const char *filter, *jsonl, *devices, *variants, *pretend;
    uint32_t samples, max_seconds; /* 0: not given */
    bool list, quick;
} command_options;

typedef struct bench_run {
    bench_session session;
    bench_case cases[BENCH_MAX_CASES];
    size_t count;
    FILE *jsonl;         /* NULL: not wanted */
    output_table *table; /* NULL: stdout is for JSON */
    bool failed;         /* a case ended with an error, or a line could not be written */
    bool lost;           /* a device was lost */
} bench_run;

typedef struct measure_row {
    bench_measure_fn measure;
    bool on_host; /* once, not once for every device */
} measure_row;

static measure_row measure_of(bench_kind kind)
{
    switch (kind) {
    case BENCH_ATTENTION_PREFILL:
    case BENCH_ATTENTION_DECODE:
        return (measure_row){bench_measure_attention, false};
    case BENCH_GEMM:
    case BENCH_GEMV:
        return (measure_row){bench_measure_projection, false};
    case BENCH_LAYER_DECODE:
    case BENCH_LAYER_PREFILL:
        return (measure_row){bench_measure_layer, false};
    case BENCH_LAYER_FIRST:
        return (measure_row){bench_measure_first, false};
    case BENCH_EXCHANGE:
        return (measure_row){bench_measure_exchange, true};
    case BENCH_MEMCPY:
        return (measure_row){bench_measure_memcpy, true};
    case BENCH_PEAK:
        break;
    }
    return (measure_row){bench_measure_peak, false};
}

/* What the device cannot do is no error of the benchmark. */
static bench_status status_of(vka_status status)
{
    switch (status) {
    case VKA_OK:
        return BENCH_OK;
    case VKA_ERR_UNSUPPORTED:
    case VKA_ERR_LIMIT:
    case VKA_ERR_LAYOUT:
        return BENCH_UNSUPPORTED;
    default:
        return BENCH_ERROR;
    }
}

static void report(bench_run *run, const bench_result *result)
{
    progress_end();
    if (run->jsonl && !bench_json_write(run->jsonl, bench_json_result(&run->session, result)))
        run->failed = true;
    if (run->table)
        bench_table_add(run->table, &run->session, result);
    if (result->status == BENCH_ERROR) {
        fprintf(stderr, "vkattn: %s: %s\n", result->of->name, result->reason);
        run->failed = true;
    }
}

static void run_case(bench_run *run, const bench_case *of, int device, bench_result *result)
{
    vka_error error = {0};
    vka_status status;

    memset(result, 0, sizeof(*result));
    result->of = of;
    result->device = device;
    result->peak = BENCH_NO_PEAK;
    if (run->lost) {
        result->status = BENCH_SKIPPED;
        snprintf(result->reason, sizeof(result->reason), "a device was lost before");
        report(run, result);
        return;
    }
    progress_show("%s", of->name);
    status = measure_of(of->kind).measure(&run->session, result, &error);
    if (status == VKA_OK && result->peak != BENCH_NO_PEAK)
        status =
            bench_peak_rate(&run->session, (uint32_t)device, (vka_peak_kind)result->peak, &result->peak_rate, &error);
    result->status = status_of(status);
    if (status != VKA_OK) {
        snprintf(result->reason, sizeof(result->reason), "%s", error.message);
        result->vk_result = error.vk_result;
        result->samples.count = 0;
        run->lost = status == VKA_ERR_DEVICE_LOST;
    }
    report(run, result);
}

static vka_status run_cases(bench_run *run, vka_error *error)
{
    bench_result *result = malloc(sizeof(*result));

    if (!result)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for a result");
    for (size_t i = 0; i < run->count; i++) {
        bool on_host = measure_of(run->cases[i].kind).on_host;

        for (uint32_t d = 0; d < (on_host ? 1 : run->session.devices); d++)
            run_case(run, &run->cases[i], on_host ? BENCH_HOST : (int)d, result);
    }
    free(result);
    return VKA_OK;
}

static vka_status open_output(bench_run *run, const command_options *options, vka_error *error)
{
    bool to_stdout = options->jsonl && strcmp(options->jsonl, "-") == 0;

    if (options->jsonl)
        run->jsonl = to_stdout ? stdout : fopen(options->jsonl, "w");
    if (options->jsonl && !run->jsonl)
        return vka_fail(error, VKA_ERR_IO, "--jsonl: '%s' cannot be written: %s", options->jsonl, strerror(errno));
    if (!to_stdout)
        run->table = bench_table_new();
    return VKA_OK;
}

/* A file that could not be written to the end is a failure. */
static void close_output(bench_run *run)
{
    output_table_end(run->table);
    if (run->jsonl && run->jsonl != stdout && fclose(run->jsonl) != 0)
        run->failed = true;
}

static bench_options session_options(const command_options *options)
{
    uint32_t samples = options->quick ? QUICK_SAMPLES : DEFAULT_SAMPLES;
    double max_ms = options->quick ? QUICK_MAX_MS : DEFAULT_SECONDS * 1e3;

    return (bench_options){.devices = options->devices,
                           .variants = options->variants,
                           .pretend = options->pretend,
                           .quick = options->quick && options->max_seconds == 0,
                           .limits = {.samples = options->samples ? options->samples : samples,
                                      .max_ms = options->max_seconds ? options->max_seconds * 1e3 : max_ms}};
}

static vka_status execute(bench_run *run, const command_options *options, int argc, char **argv, vka_error *error)
{
    const bench_options chosen = session_options(options);
    vka_status status = bench_select(options->filter, run->cases, &run->count, error);

    if (status == VKA_OK)
        status = bench_session_open(&run->session, &chosen, error);
    if (status == VKA_OK)
        status = open_output(run, options, error);
    if (status != VKA_OK)
        return status;
    if (run->jsonl && !bench_json_write(run->jsonl, bench_json_environment(&run->session, argc, argv)))
        run->failed = true;
    return run_cases(run, error);
}

static int list_cases(const char *filter)
{
    bench_case cases[BENCH_MAX_CASES];
    size_t count = 0;
    vka_error error;

    if (bench_select(filter, cases, &count, &error) != VKA_OK)
        return failure_report(&error, false, NULL);
    for (size_t i = 0; i < count; i++)
        printf("%s\n", cases[i].name);
    return EXIT_STATUS_OK;
}

static int run(int argc, char **argv)
{
    command_options options = {.filter = NULL};
    bench_run *state;
    vka_error error;
    vka_status status;
    int exit_status = args_parse(&command_bench, argc, argv, &options);

    if (exit_status >= 0)
        return exit_status;
    if (options.list)
        return list_cases(options.filter);
    state = calloc(1, sizeof(*state));
    if (!state) {
        vka_fail(&error, VKA_ERR_HOST_MEMORY, "no host memory for a list of cases");
        return failure_report(&error, false, NULL);
    }
    status = execute(state, &options, argc, argv, &error);
    progress_end();
    close_output(state);
    if (status != VKA_OK)
        exit_status = failure_report(&error, false, NULL);
    else
        exit_status = state->lost ? EXIT_STATUS_LOST : state->failed ? EXIT_STATUS_FAILED : EXIT_STATUS_OK;
    bench_session_close(&state->session);
    free(state);
    return exit_status;
}

#define AT(member) offsetof(command_options, member)

static const args_option own_options[] = {
    {"filter", ARGS_TEXT, AT(filter), .value = "GLOB,...",
     .help =
         "Which cases: names in which * and ? stand for other\ncharacters (default: all that --list shows). A full\n"
         "name of that form with other sizes is run as well."},
    {"list", ARGS_FLAG, AT(list), .help = "Only list the names of the cases."},
    {"devices", ARGS_TEXT, AT(devices), .value = "LIST", .help = "As for 'vkattn run' (default: all)."},
    {"samples", ARGS_U32, AT(samples), .value = "N", .least = 1, .most = BENCH_MAX_SAMPLES,
     .help = "Samples of a case (default: 10)."},
    {"max-time", ARGS_U32, AT(max_seconds), .value = "S", .least = 1, .most = 3600,
     .help = "No new sample of a case after S seconds, but always one\n(default: 3)."},
    {"quick", ARGS_FLAG, AT(quick), .help = "By default 3 samples and 0.3 seconds."},
    {"variants", ARGS_TEXT, AT(variants), .value = "NAME,...", .help = "Force kernel variants, as for 'vkattn run'."},
    {"pretend", ARGS_TEXT, AT(pretend), .value = "LIMITS", .help = "Pretend lesser devices, as for 'vkattn run'."},
    {"jsonl", ARGS_TEXT, AT(jsonl), .value = "FILE|-",
     .help =
         "Write one JSON object a line, one per case and device,\nthe first about the machine; '-' prints them instead "
         "of\nthe table."},
};

const command command_bench = {
    .name = "bench",
    .summary = "Measure kernels, layers and the exchange, beside the device's own measured peaks",
    .groups = {{own_options, sizeof(own_options) / sizeof(own_options[0]), 0}},
    .details = "Times are medians; 'spread' is the interquartile range beside the median. Work is counted by\n"
               "definition: attention by the visible pairs of query and key, operands and results once. 'peak' is\n"
               "the share of the FMA peak for prefill and GEMM, of the read peak for decoding and GEMV.\n"
               "layer.first opens everything anew, but a driver may keep compiled shaders of its own (Mesa does,\n"
               "unless MESA_SHADER_CACHE_DISABLE=true).\n"
               "A case that cannot run says why; only an error makes the command fail.",
    .run = run,
};
