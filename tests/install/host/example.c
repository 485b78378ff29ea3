#include <stdio.h>
#include <vkattn/vkattn.h>

enum { TOKENS = 5, HIDDEN = 1024 };

int main(void)
{
    static float hidden[TOKENS * HIDDEN], result[TOKENS * HIDDEN];
    vka_context_params devices = {.struct_size = sizeof(devices), .devices = "all"};
    vka_generate_params generate = {.struct_size = sizeof(generate), .seed = 1};
    vka_layer_params layer_params = {.struct_size = sizeof(layer_params), .grid = {.tp = 4}};
    vka_cache_params pages = {.struct_size = sizeof(pages), .pages = 64};
    vka_forward_params call = {.struct_size = sizeof(call)};
    vka_batch_entry entry = {.new_tokens = TOKENS};
    const vka_preset *preset;
    vka_generated_weights *weights = NULL;
    vka_context *context = NULL;
    vka_layer *layer = NULL;
    vka_cache *cache = NULL;
    vka_error error;
    int status = 1;

    vka_random_fill(hidden, TOKENS * HIDDEN, 1.0, 1, 1000, 0);
    if (vka_preset_find("qwen3-0.6b", &preset, &error) ||
        vka_weights_generate(&weights, &preset->desc, &generate, &error) ||
        vka_context_create(&context, &devices, &error))
        goto done;
    layer_params.desc = &preset->desc;
    layer_params.weights = vka_weights_view(weights);
    if (vka_layer_create(&layer, context, &layer_params, &error) || vka_cache_create(&cache, layer, &pages, &error) ||
        vka_cache_sequence_new(cache, &entry.sequence, &error))
        goto done;
    call.layer = layer;
    call.cache = cache;
    call.batch = (vka_batch){.entries = &entry, .count = 1};
    call.input = (vka_tensor){.data = hidden, .dtype = VKA_F32, .rows = TOKENS, .cols = HIDDEN};
    call.output = (vka_tensor_out){.data = result, .dtype = VKA_F32, .rows = TOKENS, .cols = HIDDEN};
    if (vka_forward(&call, &error))
        goto done;
    printf("%d tokens over %u devices, result[0] = %f\n", TOKENS, vka_context_device_count(context), result[0]);
    status = 0;
done:
    if (status != 0)
        fprintf(stderr, "%s\n", error.message);
    vka_cache_destroy(&cache);
    vka_layer_destroy(&layer);
    vka_context_destroy(&context);
    vka_weights_free(&weights);
    return status;
}
