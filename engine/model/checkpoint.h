/* What an open checkpoint is made of. */
#ifndef VKA_MODEL_CHECKPOINT_H
#define VKA_MODEL_CHECKPOINT_H

#include "model/config.h"
#include "model/gguf.h"
#include "model/weights.h"
#include "vkattn/model.h"

typedef struct vka_shard_file {
    char *path;
    vka_tensor_file *file; /* safetensors, or */
    vka_gguf *gguf;
} vka_shard_file;

typedef struct vka_slot {
    const vka_named_tensor *tensor;
    const vka_shard_file *shard;
    const vka_block_format *format; /* of a GGUF file, where NULL is a type that is not known; else NULL */
} vka_slot;

struct vka_model_layer {
    vka_layer_desc desc; /* resolved */
    vka_layer_weights weights;
    void *owned[VKA_WEIGHT_COUNT]; /* copies that the views point to; NULL where a view points into a file */
};

struct vka_model {
    vka_config config;
    vka_model_info info;
    char *config_path;
    vka_shard_file *shards;
    size_t shard_count;
    vka_slot *slots; /* in the order of names */
    size_t slot_count;
};

#endif
