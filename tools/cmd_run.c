/* vkattn run: one layer over the devices, prefill and decoding, timed and checked.
 *
 * All rows go through twice. The first pass makes what only a first pass has to make, and is traced and verified when
 * that is wanted. The second pass is timed, with nothing else going on, and must give the same bits as the first: so
 * what was verified is what was timed. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "command.h"
#include "failure.h"
#include "progress.h"
#include "run_report.h"

enum { DEFAULT_TOKENS = 64, DEFAULT_DECODE = 8, NOT_GIVEN = -1 };

typedef struct run_state {
    run_layer layer;
    run_rows rows;
    run_engine engine;
    run_verifier *verifier;
    run_times first, timed;
    run_verdict verdict;
    float *first_output, *output; /* [rows, hidden] */
} run_state;

/* Fills in what was not given. */
static vka_status settle_options(run_options *options, vka_error *error)
{
    if (!options->layout.model && options->layout.heads == 0 && options->layout.hidden == 0)
        options->layout.model = LAYOUT_DEFAULT_MODEL;
    if (options->decode == (uint32_t)NOT_GIVEN)
        options->decode = options->input ? 0 : DEFAULT_DECODE;
    if (options->input && (options->sequences > 0 || options->tokens > 0))
        return vka_fail(error, VKA_ERR_ARGUMENT, "--input is a single sequence with tokens of its own; leave out --%s",
                        options->tokens > 0 ? "tokens" : "sequences");
    if (options->tokens == 0)
        options->tokens = DEFAULT_TOKENS;
    if (options->sequences == 0)
        options->sequences = 1;
    if (options->sequences > options->tokens)
        return vka_fail(error, VKA_ERR_ARGUMENT, "--sequences is %u, but --tokens %u would leave some of them empty",
                        options->sequences, options->tokens);
    return VKA_OK;
}

/* The engine says so too, but only once devices are open. */
static vka_status check_runs(const run_options *options, const vka_layer_desc *desc, vka_grid grid, vka_error *error)
{
    if (options->verify && desc->attend == VKA_ATTEND_CROSS)
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "--verify does not judge cross attention: run it without");
    if (grid.cp > 1 || grid.dp > 1)
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "--cp %u --dp %u: this release lays out cp and dp (vkattn plan shows them) but runs tp only; "
                        "leave them at 1",
                        grid.cp, grid.dp);
    return VKA_OK;
}

/* Everything that needs no device, the verdict on the layout first. */
static vka_status prepare(run_state *state, const run_options *options, vka_error *error)
{
    vka_grid grid = layout_args_grid(&options->layout);
    uint32_t rank_count = vka_grid_ranks(grid);
    vka_rank *ranks = vka_alloc(NULL, rank_count ? rank_count : 1, sizeof(*ranks));
    vka_status status = layout_args_source(&options->layout, &state->layer.source, error);

    if (!status && !ranks)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a table of %u ranks", rank_count);
    if (!status)
        status = vka_partition(&state->layer.source.desc, grid, (vka_kv_policy)options->layout.kv_policy, ranks,
                               rank_count, error);
    vka_free(NULL, ranks);
    if (!status)
        status = layout_args_runs(&state->layer.source, error);
    if (!status)
        status = check_runs(options, &state->layer.source.desc, grid, error);
    if (!status)
        status = run_rows_make(&state->rows, options, &state->layer.source.desc, error);
    if (!status)
        status = run_layer_load(&state->layer, options, error);
    return status;
}

static vka_status allocate_outputs(run_state *state, vka_error *error)
{
    size_t row_bytes = sizeof(float) * state->rows.hidden;

    state->first_output = vka_alloc(NULL, state->rows.rows, row_bytes);
    state->output = vka_alloc(NULL, state->rows.rows, row_bytes);
    if (!state->first_output || !state->output)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the results of %u rows", state->rows.rows);
    return VKA_OK;
}

static vka_status first_pass(run_state *state, bool verify, vka_error *error)
{
    run_observer observer;
    vka_status status;

    progress_show("first pass");
    if (!verify)
        return run_pass(&state->engine, &state->rows, state->first_output, NULL, &state->first, error);
    status = run_verifier_create(&state->verifier, &state->layer, &state->engine, error);
    if (status)
        return status;
    observer = run_verifier_observer(state->verifier);
    status = run_pass(&state->engine, &state->rows, state->first_output, &observer, &state->first, error);
    if (!status)
        status = run_verifier_verdict(state->verifier, &state->rows, state->first_output, &state->verdict, error);
    return status;
}

static vka_status execute(run_state *state, run_options *options, vka_error *error)
{
    vka_status status = settle_options(options, error);

    if (!status)
        status = prepare(state, options, error);
    if (!status)
        status = allocate_outputs(state, error);
    if (!status)
        status = run_engine_open(&state->engine, options, &state->layer, &state->rows, error);
    if (!status)
        status = run_times_make(&state->first, state->engine.devices, error);
    if (!status)
        status = run_times_make(&state->timed, state->engine.devices, error);
    if (!status)
        status = first_pass(state, options->verify, error);
    progress_show("timed pass");
    if (!status)
        status = run_pass(&state->engine, &state->rows, state->output, NULL, &state->timed, error);
    if (!status && options->output)
        status = run_rows_write(&state->rows, state->output, options->output, error);
    return status;
}

static int report(const run_state *state, const run_options *options)
{
    size_t bytes = sizeof(float) * state->rows.rows * state->rows.hidden;
    run_result result = {
        .options = options,
        .layer = &state->layer,
        .rows = &state->rows,
        .engine = &state->engine,
        .times = &state->timed,
        .first_ms = state->engine.prewarm_ms + state->first.first_ms,
        .verdict = options->verify ? &state->verdict : NULL,
        .repeated = memcmp(state->first_output, state->output, bytes) == 0,
    };

    return options->json ? run_report_json(&result) : run_report_text(&result);
}

static void release(run_state *state)
{
    run_verifier_destroy(&state->verifier);
    run_times_free(&state->first);
    run_times_free(&state->timed);
    run_engine_close(&state->engine);
    run_layer_close(&state->layer);
    run_rows_free(&state->rows);
    vka_free(NULL, state->first_output);
    vka_free(NULL, state->output);
}

static int run(int argc, char **argv)
{
    run_options options = {
        .layout = {.tp = 2}, .decode = (uint32_t)NOT_GIVEN, .page_size = 16, .seed = 1, .verify = argc == 0};
    run_state state = {0};
    vka_error error;
    vka_status status;
    int exit_status = args_parse(&command_run, argc, argv, &options);

    if (exit_status >= 0)
        return exit_status;
    status = execute(&state, &options, &error);
    progress_end();
    if (!status)
        exit_status = report(&state, &options);
    else
        exit_status = failure_report(&error, options.json,
                                     &(failure_layout){&state.layer.source.desc, layout_args_grid(&options.layout),
                                                       (vka_kv_policy)options.layout.kv_policy});
    release(&state);
    return exit_status;
}

#define AT(member) offsetof(run_options, member)

static const args_option own_options[] = {
    {"devices", ARGS_TEXT, AT(devices), .value = "LIST",
     .help = "Which devices, separated by commas (default: all):\nN, uuid:HEX, pci:DDDD:BB:DD.F, name:TEXT,\n"
             "type:discrete|integrated|cpu, all. N may be repeated\nto open a device twice."},
    {"tokens", ARGS_U32, AT(tokens), .value = "N", .least = 1, .help = "Tokens of the prefill (default: 64)."},
    {"decode", ARGS_U32, AT(decode), .value = "N", .help = "Decoding steps after it (default: 8)."},
    {"sequences", ARGS_U32, AT(sequences), .value = "N", .least = 1,
     .help =
         "Sequences in the batch (default: 1). The first has\nall tokens of the prefill, the others fewer and fewer."},
    {"page-size", ARGS_U32, AT(page_size), .value = "N", .least = 1, .most = 65536,
     .help = "Tokens per page of the KV cache (default: 16)."},
    {"seed", ARGS_U64, AT(seed), .value = "N", .help = "Of generated weights and inputs (default: 1)."},
    {"input", ARGS_TEXT, AT(input), .value = "FILE",
     .help = "Hidden states [tokens, hidden]: the tensor 'hidden' of a\nsafetensors file, or its only one. --decode N "
             "takes the\nlast N rows one by one (default here: 0)."},
    {"output", ARGS_TEXT, AT(output), .value = "FILE", .help = "Where to write the result, F32, as safetensors."},
    {"reproducible", ARGS_FLAG, AT(reproducible),
     .help = "The same bits for the same grid on any placement over\ndevices of one kind."},
    {"variants", ARGS_TEXT, AT(variants), .value = "NAME,...",
     .help = "Force kernel variants; 'vkattn devices --explain' lists\nthem."},
    {"no-tuning", ARGS_FLAG, AT(no_tuning), .help = "Do not use what 'vkattn tune' found."},
    {"pretend", ARGS_TEXT, AT(pretend), .value = "LIMITS",
     .help = "Pretend lesser devices: floor, max_alloc=BYTES,\nmax_range=BYTES, max_buffer=BYTES, max_invocations=N,\n"
             "shared=BYTES, no=CAP+CAP; separated by commas."},
    {"validation", ARGS_FLAG, AT(validation),
     .help = "Enable the Khronos validation layer; any message of it\nis a failure."},
    {"verify", ARGS_FLAG, AT(verify), .help = "Check every element of every stage against float64."},
    {"json", ARGS_FLAG, AT(json), .help = "Print one JSON object."},
};

const command command_run = {
    .name = "run",
    .summary = "Run one layer over the devices: prefill and decoding, timed, and checked against float64",
    .groups = {{layout_args_options, LAYOUT_ARGS_COUNT, AT(layout)},
               {own_options, sizeof(own_options) / sizeof(own_options[0]), 0}},
    .details = "Without any option: --model qwen3-0.6b --tp 2 --tokens 64 --decode 8 --verify. Weights are generated\n"
               "unless --model is the folder of a checkpoint. Times are those of a second pass, which is not traced;\n"
               "verification looks at the first, and the results of both must be equal bit by bit. Cross attention\n"
               "looks at other sequences, generated and as long as the prompts; it is not verified.",
    .run = run,
};
