/* RoPE as a GGUF file says it. */
#ifndef VKA_MODEL_GGUF_ROPE_H
#define VKA_MODEL_GGUF_ROPE_H

#include "model/gguf.h"

typedef struct vka_gguf_rope_source {
    const vka_gguf *file;
    const char *architecture;
    json_t *out; /* the configuration that is made */
    const char *label;
    vka_error *error;
} vka_gguf_rope_source;

/* Adds rope_scaling (and original_max_position_embeddings) to source->out. */
vka_status vka_gguf_rope(const vka_gguf_rope_source *source);

#endif
