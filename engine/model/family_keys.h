/* Names of geometry keys that several families share. */
#ifndef VKA_MODEL_FAMILY_KEYS_H
#define VKA_MODEL_FAMILY_KEYS_H

#include "model/family.h"

extern const vka_geometry_keys vka_keys_llama; /* hidden_size, num_hidden_layers, ... */
extern const vka_geometry_keys vka_keys_heads; /* the same without num_key_value_heads and head_dim */
extern const vka_geometry_keys vka_keys_gpt;   /* n_embd, n_layer, n_head */
extern const vka_geometry_keys vka_keys_mpt;   /* d_model, n_layers, n_heads */

#endif
