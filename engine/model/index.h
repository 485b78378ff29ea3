/* model.safetensors.index.json: which file of the folder holds which tensor. */
#ifndef VKA_MODEL_INDEX_H
#define VKA_MODEL_INDEX_H

#include <jansson.h>
#include <stddef.h>

#include "vkattn/status.h"

typedef struct vka_index_entry {
    const char *tensor;
    size_t file; /* into files */
} vka_index_entry;

typedef struct vka_index {
    json_t *root; /* owns the text */
    vka_index_entry *entries;
    size_t count;
    const char **files; /* distinct plain file names, in order */
    size_t file_count;
} vka_index;

/* File names are checked to be plain: they cannot lead out of the folder. vka_index_free() takes a zeroed or half-built
 * object. */
vka_status vka_index_parse(vka_index *out, const void *data, size_t size, const char *label, vka_error *error);
vka_status vka_index_read(vka_index *out, const char *path, vka_error *error);
void vka_index_free(vka_index *index);

#endif
