/* A layer on the devices: weights, partition, placement. */
#ifndef VKATTN_LAYER_H
#define VKATTN_LAYER_H

#include "vkattn/context.h"
#include "vkattn/layout.h"
#include "vkattn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vka_layer vka_layer;

typedef struct vka_layer_params {
    uint32_t struct_size; /* sizeof(vka_layer_params) */
    const vka_layer_desc *desc;       /* resolved or not */
    const vka_layer_weights *weights; /* read during creation only */
    vka_grid grid;                    /* this release runs tp; cp and dp must be 0 or 1 */
    vka_kv_policy kv_policy;
    const char *place;      /* as vka_place(); NULL: balanced */
    vka_dtype weight_dtype; /* as stored on the device; default: the type of weights->q */
    uint32_t reproducible;  /* nonzero: the same grid gives the same bits on any placement over devices of one kind;
                               every rank's partial is exchanged on its own and summed in rank order */
} vka_layer_params;

/* Judges the layout before anything is allocated, then checks every tensor against the limits of every device
 * (VKA_ERR_LIMIT names the tensor, its size, the limit and what to do), then uploads each device's shard. A KV head
 * replicated on several ranks of one device is stored once. */
VKA_API vka_status vka_layer_create(vka_layer **out, vka_context *context, const vka_layer_params *params,
                                    vka_error *error);
VKA_API void vka_layer_destroy(vka_layer **layer);

VKA_API const vka_layer_desc *vka_layer_get_desc(const vka_layer *layer); /* resolved */
/* The placed rank table; *count entries, owned by the layer. */
VKA_API const vka_rank *vka_layer_ranks(const vka_layer *layer, uint32_t *count);
VKA_API vka_dtype vka_layer_weight_dtype(const vka_layer *layer);

#ifdef __cplusplus
}
#endif

#endif
