/* Reader of GGUF files, versions 2 and 3, little-endian: typed metadata and a directory of tensors over one mapping.
 * The file is hostile: all of the directory is checked when it is opened, and views stay inside the file. */
#ifndef VKA_MODEL_GGUF_H
#define VKA_MODEL_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/dequant.h"
#include "vkattn/status.h"

typedef struct vka_gguf vka_gguf; /* immutable after opening */

/* As the format numbers them. */
typedef enum vka_gguf_kind {
    VKA_GGUF_U8,
    VKA_GGUF_I8,
    VKA_GGUF_U16,
    VKA_GGUF_I16,
    VKA_GGUF_U32,
    VKA_GGUF_I32,
    VKA_GGUF_F32,
    VKA_GGUF_BOOL,
    VKA_GGUF_STRING,
    VKA_GGUF_ARRAY,
    VKA_GGUF_U64,
    VKA_GGUF_I64,
    VKA_GGUF_F64,
    VKA_GGUF_KINDS
} vka_gguf_kind;

typedef struct vka_gguf_value {
    const char *key;
    bool is_array;
    vka_gguf_kind kind;        /* of the value, or of the elements of an array */
    uint64_t count;            /* 1, or elements of an array */
    const unsigned char *data; /* unaligned; a string is 8 bytes of length and its letters */
} vka_gguf_value;

typedef struct vka_gguf_tensor {
    const char *name;
    const vka_ggml_type *type; /* NULL: a number that is not known */
    uint32_t type_number;
    uint32_t dims;      /* 1 .. 4 */
    uint64_t extent[4]; /* fastest first, as in the file: extent[0] is a row; 1 past dims */
    uint64_t begin;     /* bytes from the start of the data */
    uint64_t bytes;     /* 0 with a type that is not known */
    const void *data;   /* maybe unaligned */
} vka_gguf_tensor;

/* Whether a regular file begins with the format's magic number. */
bool vka_gguf_recognise(const char *path);

vka_status vka_gguf_open(vka_gguf **out, const char *path, vka_error *error);
/* Parses a whole file image, which must outlive *out. `label` starts every message. */
vka_status vka_gguf_parse(vka_gguf **out, const void *data, size_t size, const char *label, vka_error *error);
void vka_gguf_close(vka_gguf **file);

const char *vka_gguf_label(const vka_gguf *file);

/* Both in the order of names; NULL past the end. */
const vka_gguf_value *vka_gguf_value_at(const vka_gguf *file, size_t index);
const vka_gguf_tensor *vka_gguf_tensor_at(const vka_gguf *file, size_t index);
const vka_gguf_value *vka_gguf_find(const vka_gguf *file, const char *key);          /* or NULL */
const vka_gguf_tensor *vka_gguf_find_tensor(const vka_gguf *file, const char *name); /* or NULL */

/* ---- typed reads (gguf_values.c): an absent key leaves *out as it is and is VKA_OK; a value of another type or out of
 * range is VKA_ERR_FORMAT. `index` is the element that is taken of an array; scalars serve every index. ---- */
vka_status vka_gguf_count(const vka_gguf *file, const char *key, uint64_t index, uint32_t least, uint32_t most,
                          uint32_t *out, vka_error *error);
vka_status vka_gguf_number(const vka_gguf *file, const char *key, double *out, vka_error *error); /* finite */
vka_status vka_gguf_flag(const vka_gguf *file, const char *key, uint64_t index, bool *out, vka_error *error);
/* *text is not terminated. */
vka_status vka_gguf_text(const vka_gguf *file, const char *key, const char **text, size_t *length, vka_error *error);

#endif
