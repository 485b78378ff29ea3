/* vkattn plan: the rank table of a layout and what it costs, or the refusal. Arithmetic only: no device is opened. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "command.h"
#include "failure.h"
#include "layout_args.h"
#include "layout_output.h"
#include "output.h"

typedef struct plan_options {
    layout_args layout;
    const char *devices;
    bool valid;
    bool json;
} plan_options;

typedef struct plan {
    layout_source source;
    vka_grid grid;
    vka_kv_policy kv_policy;
    const char *place;
    vka_dtype weight_dtype, cache_dtype;
    vka_verdict verdict;
    uint32_t rank_count, device_count;
    vka_rank *ranks;        /* [rank_count] */
    vka_device_cost *costs; /* [device_count] */
} plan;

/* "3" is three devices, "0,1,name:arc" is three as well, "all" or nothing is one. */
static vka_status count_devices(const char *text, uint32_t *count, vka_error *error)
{
    uint32_t terms = 1;
    uint32_t number = 0;

    if (!text || strcmp(text, "all") == 0) {
        *count = 1;
        return VKA_OK;
    }
    for (const char *at = text; *at != '\0'; at++) {
        terms += *at == ',';
        if (*at == ',' && (at == text || at[1] == ',' || at[1] == '\0'))
            return vka_fail(error, VKA_ERR_ARGUMENT, "--devices '%s' has an empty entry", text);
    }
    if (text[strspn(text, "0123456789")] != '\0') {
        *count = terms;
        return VKA_OK;
    }
    for (const char *at = text; *at != '\0' && number <= VKA_MAX_RANKS; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    if (number == 0 || number > VKA_MAX_RANKS)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "--devices is '%s'; for plan a single number counts devices: expected 1 .. %u, or a list", text,
                        VKA_MAX_RANKS);
    *count = number;
    return VKA_OK;
}

static vka_status make_plan(plan *out, const plan_options *options, vka_error *error)
{
    vka_status status = layout_args_source(&options->layout, &out->source, error);

    out->grid = layout_args_grid(&options->layout);
    out->kv_policy = (vka_kv_policy)options->layout.kv_policy;
    out->place = options->layout.place;
    out->weight_dtype = (vka_dtype)options->layout.weight_dtype;
    out->cache_dtype = (vka_dtype)options->layout.cache_dtype;
    if (status == VKA_OK)
        status = count_devices(options->devices, &out->device_count, error);
    if (status == VKA_OK)
        status = vka_layout_judge(&out->source.desc, out->grid, out->kv_policy, &out->verdict, error);
    if (status != VKA_OK)
        return status;
    out->rank_count = vka_grid_ranks(out->grid);
    out->ranks = vka_alloc(NULL, out->rank_count, sizeof(*out->ranks));
    out->costs = vka_alloc(NULL, out->device_count, sizeof(*out->costs));
    if (!out->ranks || !out->costs)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a table of %u ranks", out->rank_count);
    status = vka_partition(&out->source.desc, out->grid, out->kv_policy, out->ranks, out->rank_count, error);
    if (status == VKA_OK)
        status = vka_place(out->ranks, out->rank_count, out->device_count, out->place, error);
    if (status == VKA_OK)
        status = vka_placement_cost(&out->source.desc, out->ranks, out->rank_count, out->device_count,
                                    out->weight_dtype, out->cache_dtype, out->costs, error);
    return status;
}

/* Bytes that cross between host and devices per token. */
static uint64_t exchanged(const plan *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < of->device_count; i++)
        bytes += of->costs[i].upload_bytes_per_token + of->costs[i].download_bytes_per_token +
                 of->costs[i].norm_bytes_per_token;
    return bytes;
}

/* Of them, those of a QK-norm over the full width. */
static uint64_t norm_bytes(const plan *of)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < of->device_count; i++)
        bytes += of->costs[i].norm_bytes_per_token;
    return bytes;
}

static uint64_t exchanges(const plan *of)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < of->device_count; i++)
        most = of->costs[i].exchanges > most ? of->costs[i].exchanges : most;
    return most;
}

static void print_exchanges(const plan *of)
{
    printf("\nexchanged per token and layer: %s, in %llu exchange%s a call", output_bytes(exchanged(of)).text,
           (unsigned long long)exchanges(of), exchanges(of) == 1 ? "" : "s");
    if (norm_bytes(of) > 0)
        printf(" (%s of it for the QK-norm)", output_bytes(norm_bytes(of)).text);
    printf("\n");
}

static void print_costs(const plan *of)
{
    static const char *const headings[] = {"device",  "ranks",       "query heads", "KV heads",
                                           "weights", "cache/token", "up/token",    "down/token"};
    output_table *table = output_table_new(headings, "rrrrrrrr");

    for (uint32_t i = 0; i < of->device_count; i++) {
        const vka_device_cost *cost = &of->costs[i];

        output_cell(table, "%u", cost->device);
        output_cell(table, "%u", cost->ranks);
        output_cell(table, "%u", cost->q_heads);
        output_cell(table, "%u", cost->kv_heads);
        output_cell(table, "%s", output_bytes(cost->weight_bytes).text);
        output_cell(table, "%s", output_bytes(cost->cache_bytes_per_token).text);
        output_cell(table, "%s", output_bytes(cost->upload_bytes_per_token).text);
        output_cell(table, "%s", output_bytes(cost->download_bytes_per_token).text);
    }
    output_table_end(table);
}

static void print_list(const char *policy, const uint32_t *values, uint32_t count)
{
    printf("valid tp, %s:", policy);
    for (uint32_t i = 0; i < count; i++)
        printf("%s %u", i == 0 ? "" : ",", values[i]);
    printf("\n");
}

static void print_valid(const plan *of)
{
    print_list("strict", of->verdict.valid_strict, of->verdict.valid_strict_count);
    print_list("replicate", of->verdict.valid_replicate, of->verdict.valid_replicate_count);
}

static void print_plan(const plan *of)
{
    output_layer(&of->source);
    output_options(&of->source);
    printf("grid tp=%u cp=%u dp=%u, ranks %u, devices %u, KV policy %s, weights %s, KV cache %s\n\n", of->grid.tp,
           of->grid.cp, of->grid.dp, of->rank_count, of->device_count,
           output_policy_name(of->kv_policy, &of->source.desc), vka_dtype_name(of->weight_dtype),
           vka_dtype_name(of->cache_dtype));
    if (of->source.desc.kv_lora_rank > 0)
        printf(
            "latent replicated on every device, heads sharded: a device holds its heads' parts of q, kv_b and o, and "
            "all of q_a, kv_a and the cached latents\n\n");
    output_ranks(of->ranks, of->rank_count);
    printf("\n");
    print_costs(of);
    print_exchanges(of);
}

static json_t *json_costs(const plan *of)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < of->device_count; i++) {
        const vka_device_cost *cost = &of->costs[i];

        json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "device",
                                               (json_int_t)cost->device, "ranks", (json_int_t)cost->ranks, "q_heads",
                                               (json_int_t)cost->q_heads, "kv_heads", (json_int_t)cost->kv_heads,
                                               "weight_bytes", (json_int_t)cost->weight_bytes, "cache_bytes_per_token",
                                               (json_int_t)cost->cache_bytes_per_token, "upload_bytes_per_token",
                                               (json_int_t)cost->upload_bytes_per_token, "download_bytes_per_token",
                                               (json_int_t)cost->download_bytes_per_token));
    }
    return array;
}

static int report(const plan *of, const plan_options *options)
{
    json_t *object;

    if (!options->json) {
        if (options->valid) {
            output_layer(&of->source);
            print_valid(of);
        } else {
            print_plan(of);
        }
        return EXIT_STATUS_OK;
    }
    object = json_pack("{s:s, s:o, s:o}", "status", "ok", "layer", output_json_layer(&of->source), "valid_tp",
                       output_json_valid(&of->verdict));
    if (!options->valid) {
        json_object_set_new(object, "grid", output_json_grid(of->grid));
        json_object_set_new(object, "kv_policy", json_string(output_policy_name(of->kv_policy, &of->source.desc)));
        json_object_set_new(object, "weight_dtype", json_string(vka_dtype_name(of->weight_dtype)));
        json_object_set_new(object, "cache_dtype", json_string(vka_dtype_name(of->cache_dtype)));
        json_object_set_new(object, "ranks", output_json_ranks(of->ranks, of->rank_count));
        json_object_set_new(object, "devices", json_costs(of));
        json_object_set_new(object, "exchange_bytes_per_token", json_integer((json_int_t)exchanged(of)));
        json_object_set_new(object, "norm_exchange_bytes_per_token", json_integer((json_int_t)norm_bytes(of)));
        json_object_set_new(object, "exchanges", json_integer((json_int_t)exchanges(of)));
    }
    return output_json(object);
}

static int run(int argc, char **argv)
{
    plan_options options = {.layout = {.weight_dtype = VKA_F16, .cache_dtype = VKA_F16}};
    plan made = {.rank_count = 0};
    vka_error error;
    int exit_status = args_parse(&command_plan, argc, argv, &options);

    if (exit_status >= 0)
        return exit_status;
    if (options.valid) { /* the list does not depend on the grid; what cannot run at any tp is still refused */
        options.layout.tp = options.layout.cp = options.layout.dp = 1;
        options.layout.place = NULL;
    }
    if (make_plan(&made, &options, &error) == VKA_OK)
        exit_status = report(&made, &options);
    else
        exit_status =
            failure_report(&error, options.json, &(failure_layout){&made.source.desc, made.grid, made.kv_policy});
    vka_free(NULL, made.ranks);
    vka_free(NULL, made.costs);
    return exit_status;
}

static const args_option own_options[] = {
    {"devices", ARGS_TEXT, offsetof(plan_options, devices), .value = "N|LIST",
     .help = "How many devices to plan for: a number, or a list as\n'vkattn run' takes it, whose entries are counted\n"
             "(default, and for 'all': 1). No device is opened."},
    {"valid", ARGS_FLAG, offsetof(plan_options, valid), .help = "Only list the tp that this layer can have."},
    {"json", ARGS_FLAG, offsetof(plan_options, json), .help = "Print one JSON object."},
};

const command command_plan = {
    .name = "plan",
    .summary = "Show which rank owns which heads and what that costs, or why a layout is refused",
    .groups = {{layout_args_options, LAYOUT_ARGS_COUNT, offsetof(plan_options, layout)},
               {own_options, sizeof(own_options) / sizeof(own_options[0]), 0}},
    .details = "Bytes are those of one attention block, with weights in f16 by default. A refused layout ends with\n"
               "status 3; with --json the refusal is an object with the failed rule and the valid sizes.",
    .run = run,
};
