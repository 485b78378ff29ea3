/* vkattn devices: every Vulkan device and, when asked, which kernels it runs and why not others. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "command.h"
#include "device_output.h"
#include "failure.h"
#include "output.h"

typedef struct devices_options {
    const char *devices, *pretend, *variants; /* of --explain */
    bool explain;
    bool no_tuning;
    bool json;
} devices_options;

typedef struct devices_state {
    uint32_t count;
    vka_device_info *info; /* [count] */
    vka_context *context;  /* NULL: not asked to explain */
} devices_state;

static vka_status list(devices_state *out, vka_error *error)
{
    vka_status status = vka_device_list(NULL, NULL, 0, &out->count, error);

    if (status)
        return status;
    out->info = vka_alloc(NULL, out->count, sizeof(*out->info));
    if (!out->info)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a list of %u devices", out->count);
    return vka_device_list(NULL, out->info, out->count, &out->count, error);
}

static vka_status open_context(devices_state *out, const devices_options *options, vka_error *error)
{
    const vka_context_params params = {
        .struct_size = sizeof(params),
        .devices = options->devices,
        .pretend = options->pretend,
        .variants = options->variants,
        .no_pipeline_cache = 1, /* nothing is compiled */
        .no_tuning_cache = options->no_tuning,
    };

    if (!options->explain && (options->devices || options->pretend || options->variants || options->no_tuning))
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "--devices, --pretend, --variants and --no-tuning say what --explain is about; "
                        "add --explain");
    return options->explain ? vka_context_create(&out->context, &params, error) : VKA_OK;
}

/* ---- as text ---- */

static void print_devices(const devices_state *state)
{
    static const char *const headings[] = {"index", "name", "type", "driver", "version", "Vulkan", "memory", "PCI"};
    output_table *table = output_table_new(headings, "rlllllrl");

    for (uint32_t i = 0; i < state->count; i++) {
        const vka_device_info *device = &state->info[i];

        output_cell(table, "%u", device->index);
        output_cell(table, "%s", device->name);
        output_cell(table, "%s", output_device_type(device->type));
        output_cell(table, "%s", device->driver_name);
        output_cell(table, "%s", output_driver_version(device).text);
        output_cell(table, "%s", output_vulkan_version(device->api_version).text);
        output_cell(table, "%s", output_bytes(device->memory_bytes).text);
        output_cell(table, "%s", output_device_pci(device).text);
    }
    output_table_end(table);
}

static output_size bytes_or_dash(uint64_t bytes)
{
    return bytes == UINT64_MAX ? (output_size){"-"} : output_bytes(bytes);
}

static void print_limits(const devices_state *state)
{
    static const char *const headings[] = {"index",    "storage range", "buffer",        "allocation",
                                           "subgroup", "invocations",   "shared memory", "UUID"};
    output_table *table = output_table_new(headings, "rrrrrrrl");

    for (uint32_t i = 0; i < state->count; i++) {
        const vka_device_info *device = &state->info[i];

        output_cell(table, "%u", device->index);
        output_cell(table, "%s", output_bytes(device->max_storage_range).text);
        output_cell(table, "%s", bytes_or_dash(device->max_buffer_bytes).text);
        output_cell(table, "%s", output_bytes(device->max_allocation_bytes).text);
        output_cell(table, "%u", device->subgroup_size);
        output_cell(table, "%u", device->max_workgroup_invocations);
        output_cell(table, "%s", output_bytes(device->shared_memory_bytes).text);
        output_cell(table, "%s", output_device_uuid(device->device_uuid).text);
    }
    output_table_end(table);
}

static void print_notes(const devices_state *state)
{
    for (uint32_t i = 0; i < state->count; i++) {
        const vka_device_info *device = &state->info[i];

        if (!device->usable)
            printf("\ndevice %u cannot be used: %s\n", device->index, device->note);
        else if (device->duplicate_of >= 0)
            printf("\ndevice %u is left out of 'all': %s\n", device->index, device->note);
    }
}

static void print_capabilities(const vka_context *context, uint32_t position)
{
    const char *name;

    printf("  capabilities:");
    for (uint32_t i = 0; (name = vka_capability_name(i)); i++)
        printf(" %s%s", vka_context_has_capability(context, position, i) ? "" : "no-", name);
    printf("\n");
}

static vka_status print_explanation(const vka_context *context, uint32_t position, vka_error *error)
{
    static const char *const headings[] = {"kernel", "dtype", "variant", "used"};
    const vka_device_info *device = vka_context_device(context, position);
    output_table *table;

    printf("\ndevice %u, %s:\n", device->index, device->name);
    print_capabilities(context, position);
    table = output_table_new(headings, "llll");
    for (uint32_t i = 0; i < vka_variant_count(); i++) {
        vka_variant_info info;
        vka_status status = vka_context_variant(context, position, i, &info, error);

        if (status) {
            output_table_end(table);
            return status;
        }
        output_cell(table, "%s", info.kernel);
        output_cell(table, "%s", info.dtype);
        output_cell(table, "%s", info.name);
        output_cell(table, "%s%s%s", info.selected ? "yes" : "no", info.reason[0] ? ": " : "", info.reason);
    }
    output_table_end(table);
    return VKA_OK;
}

static vka_status print_text(const devices_state *state, vka_error *error)
{
    vka_status status = VKA_OK;

    print_devices(state);
    printf("\n");
    print_limits(state);
    print_notes(state);
    for (uint32_t i = 0; state->context && i < vka_context_device_count(state->context) && !status; i++)
        status = print_explanation(state->context, i, error);
    return status;
}

/* ---- as JSON ---- */

static json_t *json_capabilities(const vka_context *context, uint32_t position)
{
    json_t *object = json_object();
    const char *name;

    for (uint32_t i = 0; (name = vka_capability_name(i)); i++)
        json_object_set_new(object, name, json_boolean(vka_context_has_capability(context, position, i)));
    return object;
}

/* NULL with *error when a variant cannot be told. */
static json_t *json_variants(const vka_context *context, uint32_t position, vka_error *error)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < vka_variant_count(); i++) {
        vka_variant_info info;

        if (vka_context_variant(context, position, i, &info, error)) {
            json_decref(array);
            return NULL;
        }
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:b, s:s}", "name", info.name, "kernel", info.kernel, "dtype",
                                        info.dtype, "selected", (int)info.selected, "reason", info.reason));
    }
    return array;
}

static vka_status print_json(const devices_state *state, int *exit_status, vka_error *error)
{
    json_t *object = json_pack("{s:s, s:[]}", "status", "ok", "devices");
    json_t *explained = state->context ? json_array() : NULL;

    for (uint32_t i = 0; i < state->count; i++)
        json_array_append_new(json_object_get(object, "devices"), output_json_device(&state->info[i]));
    for (uint32_t i = 0; explained && i < vka_context_device_count(state->context); i++) {
        json_t *variants = json_variants(state->context, i, error);

        if (!variants) {
            json_decref(explained);
            json_decref(object);
            return error->status;
        }
        json_array_append_new(
            explained, json_pack("{s:I, s:o, s:o}", "index", (json_int_t)vka_context_device(state->context, i)->index,
                                 "capabilities", json_capabilities(state->context, i), "variants", variants));
    }
    if (explained)
        json_object_set_new(object, "explained", explained);
    *exit_status = output_json(object);
    return VKA_OK;
}

static int run(int argc, char **argv)
{
    devices_options options = {0};
    devices_state state = {0};
    vka_error error;
    vka_status status;
    int exit_status = args_parse(&command_devices, argc, argv, &options);

    if (exit_status >= 0)
        return exit_status;
    exit_status = EXIT_STATUS_OK;
    status = open_context(&state, &options, &error);
    if (!status)
        status = list(&state, &error);
    if (!status)
        status = options.json ? print_json(&state, &exit_status, &error) : print_text(&state, &error);
    if (status)
        exit_status = failure_report(&error, options.json, NULL);
    vka_context_destroy(&state.context);
    vka_free(NULL, state.info);
    return exit_status;
}

#define AT(member) offsetof(devices_options, member)

static const args_option own_options[] = {
    {"explain", ARGS_FLAG, AT(explain), .help = "Also list every kernel variant, and why it is not used."},
    {"devices", ARGS_TEXT, AT(devices), .value = "LIST",
     .help = "Which devices to explain, as for 'vkattn run'\n(default: all)."},
    {"pretend", ARGS_TEXT, AT(pretend), .value = "LIMITS", .help = "Explain lesser devices, as for 'vkattn run'."},
    {"variants", ARGS_TEXT, AT(variants), .value = "NAME,...", .help = "Explain with these variants forced."},
    {"no-tuning", ARGS_FLAG, AT(no_tuning), .help = "Explain without what 'vkattn tune' found."},
    {"json", ARGS_FLAG, AT(json), .help = "Print one JSON object."},
};

const command command_devices = {
    .name = "devices",
    .summary = "List the Vulkan devices and, with --explain, which kernels each one runs and why",
    .groups = {{own_options, sizeof(own_options) / sizeof(own_options[0]), 0}},
    .details = "The index, UUID and PCI address are what --devices of the other commands takes: 0, uuid:HEX,\n"
               "pci:0000:03:00.0. A GPU that two drivers show is opened once by 'all'; naming the other entry\n"
               "opens it all the same.",
    .run = run,
};
