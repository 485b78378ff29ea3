/* From options to a layer description and a grid. */
#include "layout_args.h"

#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "vkattn/model.h"

static const args_choice policies[] = {
    {"default", VKA_KV_DEFAULT}, {"replicate", VKA_KV_REPLICATE}, {"strict", VKA_KV_STRICT}, {NULL, 0}};
static const args_choice blocks[] = {
    {"self", VKA_BLOCK_SELF}, {"cross", VKA_BLOCK_CROSS}, {"encoder", VKA_BLOCK_ENCODER}, {NULL, 0}};
static const args_choice weight_dtypes[] = {{"f32", VKA_F32}, {"f16", VKA_F16}, {"bf16", VKA_BF16}, {NULL, 0}};
static const args_choice cache_dtypes[] = {{"f32", VKA_F32}, {"f16", VKA_F16}, {NULL, 0}};

#define AT(member) offsetof(layout_args, member)

const args_option layout_args_options[LAYOUT_ARGS_COUNT] = {
    {"model", ARGS_TEXT, AT(model), .value = "NAME|DIR|FILE",
     .help = "A preset, a checkpoint's folder, or a config.json.\nA preset's name wins; write ./NAME for a folder."},
    {"layer", ARGS_U32, AT(layer), .value = "N", .help = "Layer of the checkpoint (default: 0)."},
    {"block", ARGS_CHOICE, AT(block), .choices = blocks,
     .help = "Which attention of the layer (default: self; encoder:\nwhere there is a decoder too)."},
    {"heads", ARGS_U32, AT(heads), .value = "N", .least = 1, .help = "Instead of --model: query heads."},
    {"kv-heads", ARGS_U32, AT(kv_heads), .value = "N", .least = 1, .help = "KV heads (default: as many)."},
    {"head-dim", ARGS_U32, AT(head_dim), .value = "N", .least = 1,
     .help = "Size of a Q or K head (default: hidden / heads)."},
    {"v-head-dim", ARGS_U32, AT(v_head_dim), .value = "N", .least = 1,
     .help = "Size of a V head (default: as --head-dim)."},
    {"hidden", ARGS_U32, AT(hidden), .value = "N", .least = 1, .help = "Size of a hidden state."},
    {"tp", ARGS_U32, AT(tp), .value = "N", .least = 1, .help = "Shards of the heads (tensor parallelism)."},
    {"cp", ARGS_U32, AT(cp), .value = "N", .least = 1, .help = "Shards of the KV sequence (default: 1)."},
    {"dp", ARGS_U32, AT(dp), .value = "N", .least = 1, .help = "Shards of the batch (default: 1)."},
    {"kv-policy", ARGS_CHOICE, AT(kv_policy), .choices = policies,
     .help = "May a KV head live on several ranks?\n(default: as the family does, else replicate)"},
    {"place", ARGS_TEXT, AT(place), .value = "DEVICE*COUNT,...",
     .help = "Ranks to devices, in the order of ranks; DEVICE is a\nposition in the list of chosen devices (default:\n"
             "balanced). Example: 0*3,1*1"},
    {"weight-dtype", ARGS_CHOICE, AT(weight_dtype), .choices = weight_dtypes, .help = "Weights on the devices."},
    {"cache-dtype", ARGS_CHOICE, AT(cache_dtype), .choices = cache_dtypes, .help = "KV cache (default: f16)."},
};

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);

    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static vka_status read_geometry(const layout_args *args, layout_source *source, vka_error *error)
{
    if (args->heads == 0 || args->hidden == 0)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "which layer? Give --model NAME|DIR|FILE, or at least --heads and --hidden");
    source->desc = (vka_layer_desc){
        .struct_size = sizeof(vka_layer_desc),
        .hidden_size = args->hidden,
        .heads = args->heads,
        .kv_heads = args->kv_heads ? args->kv_heads : args->heads,
        .head_dim = args->head_dim,
        .v_head_dim = args->v_head_dim,
    };
    return vka_layer_desc_resolve(&source->desc, error);
}

static vka_status read_config(const layout_args *args, layout_source *source, vka_error *error)
{
    vka_model_info info;
    vka_status status =
        vka_model_read_config(args->model, (vka_block)args->block, args->layer, &source->desc, &info, error);

    if (status != VKA_OK)
        return status;
    source->layers = info.layers;
    source->has_weights = info.has_weights;
    source->not_run = info.not_run;
    return VKA_OK;
}

static vka_status read_model(const layout_args *args, layout_source *source, vka_error *error)
{
    const char *model = args->model;
    bool path = strchr(model, '/') || has_suffix(model, ".json") || has_suffix(model, ".gguf");
    const vka_preset *preset = NULL;
    vka_status status;

    if (args->heads || args->kv_heads || args->head_dim || args->v_head_dim || args->hidden)
        return vka_fail(
            error, VKA_ERR_ARGUMENT,
            "--model gives the geometry; leave out --heads, --kv-heads, --head-dim, --v-head-dim, --hidden");
    source->name = model;
    if (!path) {
        status = vka_preset_find(model, &preset, error);
        if (status != VKA_OK && !vka_is_directory(model))
            return status;
    }
    if (!preset)
        return read_config(args, source, error);
    if (args->layer != 0 || args->block != VKA_BLOCK_SELF)
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "--layer and --block choose from a checkpoint, but preset '%s' describes a single layer",
                        model);
    source->desc = preset->desc;
    source->note = preset->note;
    return VKA_OK;
}

vka_status layout_args_source(const layout_args *args, layout_source *source, vka_error *error)
{
    layout_source found = {.layers = 0};
    vka_status status = args->model ? read_model(args, &found, error) : read_geometry(args, &found, error);

    if (status == VKA_OK)
        *source = found;
    return status;
}

vka_status layout_args_runs(const layout_source *source, vka_error *error)
{
    if (!source->not_run)
        return VKA_OK;
    return vka_fail(error, VKA_ERR_UNSUPPORTED, "%s: laid out, not run: %s ('vkattn plan' shows the layout)",
                    source->name, source->not_run);
}

vka_grid layout_args_grid(const layout_args *args)
{
    return (vka_grid){args->tp ? args->tp : 1, args->cp ? args->cp : 1, args->dp ? args->dp : 1};
}
