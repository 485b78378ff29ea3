/* Cuts the weights of a layer by head and puts one device's part into its memory. */
#ifndef VKA_EXEC_SHARD_WEIGHTS_H
#define VKA_EXEC_SHARD_WEIGHTS_H

#include "exec/layer.h"

/* Fills qkv, output and constants of layer->devices[device] from host views of the whole layer. Only the rows and
 * columns of the device's own heads are read. */
vka_status shard_weights_create(vka_layer *layer, uint32_t device, const vka_layer_weights *weights, vka_error *error);

#endif
