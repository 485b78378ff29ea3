/* vkattn tune: measures the kernel variants of every device for a layer's shapes and keeps the fastest; lists or
 * forgets what is kept. */
#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "command.h"
#include "failure.h"
#include "layout_args.h"
#include "output.h"
#include "progress.h"
#include "vkattn/tune.h"

typedef struct tune_options {
    layout_args layout;
    const char *devices;
    uint32_t tokens, keys, budget_ms; /* 0: not given */
    bool list, forget, json;
} tune_options;

typedef struct tune_state {
    const tune_options *options;
    vka_context *context;
    layout_source source;
    uint32_t device; /* at hand */
    output_table *table;
    json_t *devices; /* all so far, or NULL: text is wanted */
    json_t *rows;    /* of the device at hand */
} tune_state;

static void print_warning(void *user, int level, const char *message)
{
    (void)user;
    if (level <= VKA_LOG_WARNING)
        fprintf(stderr, "vkattn: %s\n", message);
}

static vka_status check_options(const tune_options *options, vka_error *error)
{
    const layout_args *layout = &options->layout;

    if (options->list && options->forget)
        return vka_fail(error, VKA_ERR_ARGUMENT, "--list and --forget exclude each other");
    if ((options->list || options->forget) && (layout->model || layout->heads || layout->hidden))
        return vka_fail(error, VKA_ERR_ARGUMENT, "--%s is about devices, whatever the layer; leave out the layer",
                        options->list ? "list" : "forget");
    return VKA_OK;
}

static vka_status find_layer(tune_state *state, vka_error *error)
{
    layout_args layout = state->options->layout;
    vka_status status;

    if (!layout.model && layout.heads == 0 && layout.hidden == 0)
        layout.model = LAYOUT_DEFAULT_MODEL;
    status = layout_args_source(&layout, &state->source, error);
    return status == VKA_OK ? layout_args_runs(&state->source, error) : status;
}

static vka_status open_context(tune_state *state, vka_error *error)
{
    const vka_context_params params = {
        .struct_size = sizeof(params),
        .devices = state->options->devices,
        .log = print_warning,
    };

    return vka_context_create(&state->context, &params, error);
}

static const vka_device_info *device_info(const tune_state *state)
{
    return vka_context_device(state->context, state->device);
}

/* ---- one device: tuning ---- */

static void show_progress(void *user, uint32_t done, uint32_t total, const char *kernel, const char *shape)
{
    const tune_state *state = user;

    progress_show("device %u: %u of %u, %s %s", device_info(state)->index, done + 1, total, kernel, shape);
}

static void add_milliseconds(output_table *table, const vka_tune_result *result, double ms)
{
    if (result->samples > 0)
        output_cell(table, "%.4f", ms);
    else
        output_cell(table, "-");
}

static void add_result_cells(output_table *table, const vka_tune_result *result)
{
    output_cell(table, "%s", result->kernel);
    output_cell(table, "%s", result->dtype);
    output_cell(table, "%s", result->shape);
    output_cell(table, "%u", result->rows);
    if (result->keys > 0)
        output_cell(table, "%u", result->keys);
    else
        output_cell(table, "-");
    output_cell(table, "%s", result->variant);
    add_milliseconds(table, result, result->median_ms);
    add_milliseconds(table, result, result->min_ms);
    add_milliseconds(table, result, result->max_ms);
    output_cell(table, "%u", result->samples);
    output_cell(table, "%s", result->samples == 0 ? "-" : result->gpu_clock ? "gpu" : "host");
    output_cell(table, "%s%s", result->chosen ? "chosen" : "", result->standard ? " (default)" : "");
}

static void take_result(void *user, const vka_tune_result *result)
{
    tune_state *state = user;

    if (!state->devices) {
        add_result_cells(state->table, result);
        return;
    }
    json_array_append_new(state->rows,
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:b, s:b}", "kernel",
                                    result->kernel, "dtype", result->dtype, "shape", result->shape, "variant",
                                    result->variant, "rows", (int)result->rows, "keys", (int)result->keys, "samples",
                                    (int)result->samples, "clock", result->gpu_clock ? "gpu" : "host", "median_ms",
                                    result->median_ms, "min_ms", result->min_ms, "max_ms", result->max_ms, "default",
                                    (int)result->standard, "chosen", (int)result->chosen));
}

static vka_status tune_device(tune_state *state, vka_error *error)
{
    static const char *const headings[] = {"kernel",    "dtype",  "shape",  "rows",    "keys",  "variant",
                                           "median ms", "min ms", "max ms", "samples", "clock", "choice"};
    const vka_layer_desc *desc = &state->source.desc;
    bool latent = desc->kv_lora_rank > 0; /* attention over latents, which all heads share */
    const vka_tune_params params = {
        .struct_size = sizeof(params),
        .device = state->device,
        .heads = desc->heads,
        .kv_heads = latent ? 1 : desc->kv_heads,
        .head_dim = latent ? desc->kv_lora_rank + desc->rotary_dim : desc->head_dim,
        .v_head_dim = latent ? desc->kv_lora_rank : desc->v_head_dim,
        .hidden_size = desc->hidden_size,
        .rows = state->options->tokens,
        .keys = state->options->keys,
        .weight_dtype = (vka_dtype)state->options->layout.weight_dtype,
        .cache_dtype = (vka_dtype)state->options->layout.cache_dtype,
        .budget_ms = state->options->budget_ms,
        .progress = show_progress,
        .progress_user = state,
    };

    state->table = state->devices ? NULL : output_table_new(headings, "lllrrlrrrrll");
    vka_status status = vka_tune(state->context, &params, take_result, state, error);
    progress_end();
    output_table_end(state->table);
    if (status == VKA_OK && !state->devices)
        printf("kept in %s\n", vka_tuning_file(state->context, state->device));
    return status;
}

/* ---- one device: what is kept ---- */

static void take_choice(tune_state *state, const vka_tuned_info *choice)
{
    if (state->devices) {
        json_array_append_new(state->rows,
                              json_pack("{s:s, s:s, s:s, s:s, s:b}", "kernel", choice->kernel, "dtype", choice->dtype,
                                        "shape", choice->shape, "variant", choice->variant, "runs", (int)choice->runs));
        return;
    }
    output_cell(state->table, "%s", choice->kernel);
    output_cell(state->table, "%s", choice->dtype);
    output_cell(state->table, "%s", choice->shape);
    output_cell(state->table, "%s", choice->variant);
}

static vka_status list_device(tune_state *state, vka_error *error)
{
    static const char *const headings[] = {"kernel", "dtype", "shape", "variant"};
    vka_tuned_info choices[256];
    const uint32_t capacity = sizeof(choices) / sizeof(choices[0]);
    uint32_t count = 0;
    vka_status status = vka_tuned_list(state->context, state->device, choices, capacity, &count, error);

    if (status != VKA_OK)
        return status;
    state->table = state->devices || count == 0 ? NULL : output_table_new(headings, "llll");
    for (uint32_t i = 0; i < count && i < capacity; i++)
        take_choice(state, &choices[i]);
    output_table_end(state->table);
    if (!state->devices)
        printf("%s in %s\n", count > 0 ? "kept" : "nothing is kept", vka_tuning_file(state->context, state->device));
    return VKA_OK;
}

static vka_status forget_device(tune_state *state, vka_error *error)
{
    vka_status status = vka_tune_forget(state->context, state->device, error);

    if (status == VKA_OK && !state->devices)
        printf("forgotten: %s\n", vka_tuning_file(state->context, state->device));
    return status;
}

/* ---- all devices ---- */

static vka_status do_device(tune_state *state, vka_error *error)
{
    const tune_options *options = state->options;
    const vka_device_info *device = device_info(state);
    const char *path = vka_tuning_file(state->context, state->device);
    vka_status status;

    if (!path)
        return vka_fail(error, VKA_ERR_IO, "there is no folder for what tuning finds: set HOME or XDG_CACHE_HOME");
    state->rows = state->devices ? json_array() : NULL;
    if (!state->devices)
        printf("%sdevice %u, %s:\n", state->device > 0 ? "\n" : "", device->index, device->name);
    if (options->list)
        status = list_device(state, error);
    else
        status = options->forget ? forget_device(state, error) : tune_device(state, error);
    if (state->devices)
        json_array_append_new(state->devices, json_pack("{s:i, s:o, s:o, s:o}", "index", (int)device->index, "name",
                                                        output_json_text(device->name), "file", output_json_text(path),
                                                        options->list ? "choices" : "results", state->rows));
    return status;
}

static vka_status do_all(tune_state *state, vka_error *error)
{
    bool tunes = !state->options->list && !state->options->forget;
    vka_status status = check_options(state->options, error);

    if (status == VKA_OK && tunes)
        status = find_layer(state, error);
    if (status == VKA_OK)
        status = open_context(state, error);
    if (status != VKA_OK)
        return status;
    for (; status == VKA_OK && state->device < vka_context_device_count(state->context); state->device++)
        status = do_device(state, error);
    return status;
}

static int run(int argc, char **argv)
{
    tune_options options = {0};
    tune_state state = {.options = &options};
    vka_error error;
    int exit_status = args_parse(&command_tune, argc, argv, &options);

    if (exit_status >= 0)
        return exit_status;
    state.devices = options.json ? json_array() : NULL;
    if (do_all(&state, &error) != VKA_OK) {
        exit_status = failure_report(&error, options.json, NULL);
        json_decref(state.devices);
    } else if (options.json) {
        exit_status = output_json(json_pack("{s:s, s:o}", "status", "ok", "devices", state.devices));
    } else {
        exit_status = EXIT_STATUS_OK;
    }
    vka_context_destroy(&state.context);
    return exit_status;
}

#define AT(member) offsetof(tune_options, member)

static const args_option own_options[] = {
    {"devices", ARGS_TEXT, AT(devices), .value = "LIST", .help = "Which devices, as for 'vkattn run' (default: all)."},
    {"tokens", ARGS_U32, AT(tokens), .value = "N", .least = 1,
     .help = "Most rows of a call that matter (default: 256)."},
    {"keys", ARGS_U32, AT(keys), .value = "N", .least = 1, .help = "Keys in the cache when decoding (default: 1024)."},
    {"budget-ms", ARGS_U32, AT(budget_ms), .value = "N", .least = 1,
     .help = "Time for each device, about (default: 5000). Every\nvariant runs twice at least."},
    {"list", ARGS_FLAG, AT(list), .help = "Do not measure: print what is kept for the devices."},
    {"forget", ARGS_FLAG, AT(forget), .help = "Do not measure: remove what is kept for the devices."},
    {"json", ARGS_FLAG, AT(json), .help = "Print one JSON object."},
};

const command command_tune = {
    .name = "tune",
    .summary = "Measure the kernel variants of each device for a layer, and keep the fastest",
    .groups = {{layout_args_options, LAYOUT_ARGS_LAYER, AT(layout)},
               {layout_args_options + LAYOUT_ARGS_COUNT - LAYOUT_ARGS_TYPES, LAYOUT_ARGS_TYPES, AT(layout)},
               {own_options, sizeof(own_options) / sizeof(own_options[0]), 0}},
    .details =
        "Without a layer: --model " LAYOUT_DEFAULT_MODEL ". A variant is kept when it is faster than the default\n"
        "by 3 % or more, for its class of shapes (rows of a call, size of a head); every later run on that\n"
        "device, driver and version of vkattn uses it. Results stay within the same bounds. 'vkattn devices\n"
        "--explain' shows where a tuned variant runs; 'vkattn run --reproducible' never runs one.",
    .run = run,
};
