/* What a GGUF file says of its model, in the words of a config.json. */
#ifndef VKA_MODEL_GGUF_CONFIG_H
#define VKA_MODEL_GGUF_CONFIG_H

#include "model/config.h"
#include "model/gguf.h"

/* Reads the metadata, and the tensors of RoPE factors, as a configuration. An architecture or a key about attention
 * that is not understood is VKA_ERR_UNSUPPORTED. `label` is the file. vka_config_free() frees *out. */
vka_status vka_gguf_config(vka_config *out, const vka_gguf *file, const char *label, vka_error *error);

#endif
