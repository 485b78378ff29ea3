/* Parts of resolving a layer description. */
#ifndef VKA_MODEL_LAYER_DESC_H
#define VKA_MODEL_LAYER_DESC_H

#include "vkattn/layer_desc.h"

/* VKA_ERR_ARGUMENT names the field, its value and what was expected. */
vka_status vka_desc_count(const char *field, uint32_t value, uint32_t most, vka_error *error);
vka_status vka_desc_positive(const char *field, double value, vka_error *error);

/* RoPE's fields; head_dim is resolved already. */
vka_status vka_desc_resolve_rope(vka_layer_desc *desc, vka_error *error);

#endif
