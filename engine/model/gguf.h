/* Reader of GGUF files, versions 2 and 3, little-endian: metadata, a list of tensors, their data. */
#ifndef VKA_MODEL_GGUF_H
#define VKA_MODEL_GGUF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/blocks.h"
#include "vkattn/model.h"

typedef struct vka_gguf vka_gguf; /* immutable after opening */

typedef struct vka_gguf_tensor {
    vka_named_tensor tensor;        /* shape row-major, as everywhere here: the reverse of the file's */
    const vka_block_format *format; /* NULL: an element type that is not known */
} vka_gguf_tensor;

/* Does the file begin as GGUF files do? False when it cannot be read. */
bool vka_gguf_recognise(const char *path);

/* Maps the file and checks all of it but the values of the tensors. */
vka_status vka_gguf_open(vka_gguf **out, const char *path, vka_error *error);
/* The same of an image in memory, which must outlive *out. `label` starts every message. */
vka_status vka_gguf_parse(vka_gguf **out, const void *data, size_t size, const char *label, vka_error *error);
void vka_gguf_close(vka_gguf **file);

/* An object: numbers, text, true or false, and arrays of them. Left out are keys of the tokenizer and those that only describe the file, arrays of text
 * or of more than 65536 values. */
const json_t *vka_gguf_metadata(const vka_gguf *file);

size_t vka_gguf_count(const vka_gguf *file);
const vka_gguf_tensor *vka_gguf_at(const vka_gguf *file, size_t index); /* in the order of names; NULL past the end */
const vka_gguf_tensor *vka_gguf_find(const vka_gguf *file, const char *name); /* or NULL */

#endif
