/* The weights of a run: one layer of a checkpoint, or generated for a preset, a geometry or a bare configuration. */
#include "run.h"

static vka_status load_checkpoint(run_layer *layer, const layout_args *args, vka_error *error)
{
    vka_status status = vka_model_open(&layer->checkpoint, args->model, error);

    if (status)
        return status;
    status = vka_model_layer_load(&layer->loaded, layer->checkpoint, (vka_block)args->block, args->layer, error);
    if (status)
        return status;
    layer->source.desc = *vka_model_layer_desc(layer->loaded);
    layer->weights = *vka_model_layer_weights(layer->loaded);
    return VKA_OK;
}

vka_status run_layer_load(run_layer *layer, const run_options *options, vka_error *error)
{
    vka_generate_params params = {
        .struct_size = sizeof(params), .dtype = (vka_dtype)options->layout.weight_dtype, .seed = options->seed};
    vka_status status;

    if (layer->source.has_weights)
        return load_checkpoint(layer, &options->layout, error);
    status = vka_weights_generate(&layer->generated, &layer->source.desc, &params, error);
    if (!status)
        layer->weights = *vka_weights_view(layer->generated);
    return status;
}

void run_layer_close(run_layer *layer)
{
    vka_weights_free(&layer->generated);
    vka_model_layer_free(&layer->loaded);
    vka_model_close(&layer->checkpoint);
}
