/* The file: "GGUF", version, number of tensors, number of values; the values; the directory of tensors; the data, which
 * begins at a multiple of the alignment. Facts: the format's specification (ggml/docs/gguf.md) and its reader in ggml:
 * names are unique, a name of a tensor has at most 63 letters, 1 .. 4 extents, rows are whole blocks, the tensors
 * follow each other with padding to the alignment only.
 *
 * Counts are bounded by the least size of an entry before anything is allocated. A type of element that is not known
 * has no known size, so nothing is said about where such a tensor ends; it is refused only when asked for as a weight.
 */
#include "model/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/files.h"
#include "model/gguf_cursor.h"
#include "model/json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "views into the file need a little-endian host");

enum {
    MAGIC_BYTES = 4,
    LEAST_VALUE = 8 + 1 + 4 + 1,          /* length, name, type, value */
    LEAST_TENSOR = 8 + 1 + 4 + 8 + 4 + 8, /* length, name, dims, extent, type, offset */
    MAX_KEY = 65535,                      /* of the specification */
    MAX_NAME = 63,                        /* of ggml */
    MAX_DIMS = 4,
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20,
};

static const char magic[] = "GGUF";

#define RECORD "the record of a tensor"

struct vka_gguf {
    vka_mapping mapping; /* empty when parsed from memory */
    char *label;
    char *names; /* one block behind all keys and names */
    vka_gguf_value *values;
    vka_gguf_tensor *tensors; /* both in the order of names once parsed */
    size_t value_count, tensor_count;
};

static vka_status bad_tensor(const vka_gguf_cursor *c, const vka_gguf_tensor *t, const char *what, uint64_t value,
                             const char *expected)
{
    char name[VKA_PRINTABLE_BYTES];

    return vka_fail(c->error, VKA_ERR_FORMAT, "%s: tensor '%s' has %s %llu, expected %s", c->label,
                    vka_printable(t->name, name), what, (unsigned long long)value, expected);
}

/* ---- header ---- */

static vka_status read_header(vka_gguf_cursor *c, uint64_t *tensors, uint64_t *values)
{
    char found[MAGIC_BYTES] = {0};
    uint32_t version = 0;
    vka_status status = vka_gguf_read(c, found, sizeof(found), "the magic number");

    if (status == VKA_OK && memcmp(found, magic, MAGIC_BYTES) != 0)
        return vka_fail(c->error, VKA_ERR_FORMAT, "%s: does not begin with 'GGUF'", c->label);
    if (status == VKA_OK)
        status = vka_gguf_read(c, &version, sizeof(version), "the version");
    if (status == VKA_OK && version != 2 && version != 3)
        return vka_fail(c->error, VKA_ERR_UNSUPPORTED, "%s: GGUF version %u%s, expected 2 or 3", c->label, version,
                        (version & 0xffff) == 0 ? " (a big-endian file?)" : "");
    if (status == VKA_OK)
        status = vka_gguf_read(c, tensors, sizeof(*tensors), "the number of tensors");
    if (status == VKA_OK)
        status = vka_gguf_read(c, values, sizeof(*values), "the number of values");
    if (status != VKA_OK)
        return status;
    if (*values > (c->size - c->at) / LEAST_VALUE ||
        *tensors > (c->size - c->at - *values * LEAST_VALUE) / LEAST_TENSOR)
        return vka_fail(c->error, VKA_ERR_FORMAT, "%s: %llu values and %llu tensors in a file of %llu bytes", c->label,
                        (unsigned long long)*values, (unsigned long long)*tensors, (unsigned long long)c->size);
    return VKA_OK;
}

/* ---- values ---- */

static int value_by_key(const void *a, const void *b)
{
    return strcmp(((const vka_gguf_value *)a)->key, ((const vka_gguf_value *)b)->key);
}

static vka_status read_values(vka_gguf_cursor *c, vka_gguf *file, uint64_t count, char **names)
{
    char text[VKA_PRINTABLE_BYTES];

    for (uint64_t i = 0; i < count; i++) {
        vka_gguf_value *value = &file->values[i];
        vka_status status;

        value->key = *names;
        status = vka_gguf_read_name(c, names, MAX_KEY, "a key");
        if (status == VKA_OK)
            status = vka_gguf_read_value(c, value);
        if (status != VKA_OK)
            return status;
        file->value_count++;
    }
    qsort(file->values, file->value_count, sizeof(file->values[0]), value_by_key);
    for (size_t i = 1; i < file->value_count; i++)
        if (strcmp(file->values[i - 1].key, file->values[i].key) == 0)
            return vka_fail(c->error, VKA_ERR_FORMAT, "%s: the key '%s' is there twice", c->label,
                            vka_printable(file->values[i].key, text));
    return VKA_OK;
}

/* ---- tensors ---- */

/* Blocks in all, and bytes; both fit 63 bits. */
static vka_status measure(const vka_gguf_cursor *c, vka_gguf_tensor *t)
{
    uint64_t elements = 1;

    for (int i = 0; i < MAX_DIMS; i++) {
        if (t->extent[i] > 0 && elements > INT64_MAX / t->extent[i])
            return bad_tensor(c, t, "an extent", t->extent[i], "a product of at most 63 bits");
        elements *= t->extent[i];
    }
    if (!t->type)
        return VKA_OK;
    if (t->extent[0] % t->type->block != 0)
        return bad_tensor(c, t, "rows of", t->extent[0], "whole blocks (of 32 or 256 elements) of its type");
    if (elements / t->type->block > INT64_MAX / t->type->block_bytes)
        return bad_tensor(c, t, "elements in all of", elements, "a size of at most 63 bits");
    t->bytes = elements / t->type->block * t->type->block_bytes;
    return VKA_OK;
}

static vka_status read_tensor(vka_gguf_cursor *c, vka_gguf_tensor *t, char **names, uint32_t alignment)
{
    vka_status status;

    t->name = *names;
    status = vka_gguf_read_name(c, names, MAX_NAME, "a tensor's name");
    if (status == VKA_OK)
        status = vka_gguf_read(c, &t->dims, sizeof(t->dims), RECORD);
    if (status == VKA_OK && (t->dims < 1 || t->dims > MAX_DIMS))
        status = bad_tensor(c, t, "dimensions", t->dims, "1 .. 4");
    for (uint32_t i = 0; i < MAX_DIMS && status == VKA_OK; i++) {
        t->extent[i] = 1;
        if (i < t->dims)
            status = vka_gguf_read(c, &t->extent[i], sizeof(t->extent[i]), RECORD);
    }
    if (status == VKA_OK)
        status = vka_gguf_read(c, &t->type_number, sizeof(t->type_number), RECORD);
    if (status == VKA_OK)
        status = vka_gguf_read(c, &t->begin, sizeof(t->begin), RECORD);
    if (status == VKA_OK && t->begin % alignment != 0)
        status = bad_tensor(c, t, "the offset", t->begin, "a multiple of general.alignment");
    if (status != VKA_OK)
        return status;
    t->type = vka_ggml_type_of(t->type_number);
    return measure(c, t);
}

static int tensor_by_begin(const void *a, const void *b)
{
    const vka_gguf_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int tensor_by_name(const void *a, const void *b)
{
    return strcmp(((const vka_gguf_tensor *)a)->name, ((const vka_gguf_tensor *)b)->name);
}

static uint64_t align(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

/* Sorts by offset: each tensor begins where the one before it ends and is padded, the last ends in the file. */
static vka_status place_tensors(const vka_gguf_cursor *c, vka_gguf *file, uint32_t alignment)
{
    uint64_t first = align(c->at, alignment), size = c->size > first ? c->size - first : 0, next = 0;
    bool is_known = true; /* where the tensor before ends */

    qsort(file->tensors, file->tensor_count, sizeof(file->tensors[0]), tensor_by_begin);
    for (size_t i = 0; i < file->tensor_count; i++) {
        vka_gguf_tensor *t = &file->tensors[i];

        if (t->begin < next)
            return bad_tensor(c, t, "the offset", t->begin, "no overlap with the tensor before it");
        if (is_known && t->begin > next)
            return bad_tensor(c, t, "the offset", t->begin, "no gap after the tensor before it");
        if (t->begin > size || t->bytes > size - t->begin)
            return bad_tensor(c, t, "the offset", t->begin, "its end inside the file (is it cut short?)");
        t->data = c->data + first + t->begin;
        next = align(t->begin + t->bytes, alignment);
        is_known = t->type != NULL;
    }
    return VKA_OK;
}

static vka_status read_tensors(vka_gguf_cursor *c, vka_gguf *file, uint64_t count, char **names)
{
    uint32_t alignment = DEFAULT_ALIGNMENT;
    char text[VKA_PRINTABLE_BYTES];
    vka_status status = vka_gguf_count(file, "general.alignment", 0, 1, MAX_ALIGNMENT, &alignment, c->error);

    if (status == VKA_OK && (alignment & (alignment - 1)) != 0)
        status = vka_fail(c->error, VKA_ERR_FORMAT, "%s: general.alignment is %u, expected a power of two", c->label,
                          alignment);
    for (uint64_t i = 0; i < count && status == VKA_OK; i++) {
        status = read_tensor(c, &file->tensors[i], names, alignment);
        file->tensor_count++;
    }
    if (status == VKA_OK)
        status = place_tensors(c, file, alignment);
    if (status != VKA_OK)
        return status;
    qsort(file->tensors, file->tensor_count, sizeof(file->tensors[0]), tensor_by_name);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) == 0)
            return vka_fail(c->error, VKA_ERR_FORMAT, "%s: the tensor '%s' is there twice", c->label,
                            vka_printable(file->tensors[i].name, text));
    return VKA_OK;
}

/* ---- the whole ---- */

/* Steps over one value and adds what its key takes as a C string. */
static vka_status scout_value(vka_gguf_cursor *c, uint64_t *bytes)
{
    char key[VKA_PRINTABLE_BYTES] = ""; /* its beginning, for messages */
    vka_gguf_value value = {.key = key};
    uint64_t length = 0;
    vka_status status = vka_gguf_read(c, &length, sizeof(length), "a key");

    if (status == VKA_OK)
        status = vka_gguf_skip(c, length, 1, "a key");
    if (status != VKA_OK)
        return status;
    memcpy(key, c->data + c->at - length, length < sizeof(key) ? (size_t)length : sizeof(key) - 1);
    *bytes += length + 1;
    return vka_gguf_read_value(c, &value);
}

/* Room for all names: those of the values are measured by a first pass, those of tensors are short. */
static vka_status reserve_names(const vka_gguf_cursor *c, vka_gguf *file, uint64_t values, uint64_t tensors)
{
    vka_gguf_cursor scout = *c;
    uint64_t bytes = tensors * (MAX_NAME + 1);
    vka_status status = VKA_OK;

    for (uint64_t i = 0; i < values && status == VKA_OK; i++)
        status = scout_value(&scout, &bytes);
    if (status != VKA_OK)
        return status;
    file->names = vka_alloc(NULL, (size_t)bytes, 1);
    if (bytes > 0 && !file->names)
        return vka_fail(c->error, VKA_ERR_HOST_MEMORY, "%s: no memory for %llu bytes of names", c->label,
                        (unsigned long long)bytes);
    return VKA_OK;
}

static vka_status parse(vka_gguf_cursor *c, vka_gguf *file)
{
    uint64_t tensors = 0, values = 0;
    vka_status status = read_header(c, &tensors, &values);
    char *names;

    if (status == VKA_OK)
        status = reserve_names(c, file, values, tensors);
    if (status != VKA_OK)
        return status;
    file->values = vka_alloc(NULL, (size_t)values, sizeof(file->values[0]));
    file->tensors = vka_alloc(NULL, (size_t)tensors, sizeof(file->tensors[0]));
    if ((values > 0 && !file->values) || (tensors > 0 && !file->tensors))
        return vka_fail(c->error, VKA_ERR_HOST_MEMORY, "%s: no memory for %llu values and %llu tensors", c->label,
                        (unsigned long long)values, (unsigned long long)tensors);
    names = file->names;
    status = read_values(c, file, values, &names);
    return status == VKA_OK ? read_tensors(c, file, tensors, &names) : status;
}

vka_status vka_gguf_parse(vka_gguf **out, const void *data, size_t size, const char *label, vka_error *error)
{
    vka_gguf_cursor cursor = {.data = data, .size = size, .label = label, .error = error};
    vka_gguf *file = vka_alloc(NULL, 1, sizeof(*file));
    vka_status status;

    if (file)
        file->label = vka_copy_text(NULL, label);
    if (!file || !file->label)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "%s: no memory for a GGUF file", label);
    else
        status = parse(&cursor, file);
    if (status == VKA_OK)
        *out = file;
    else
        vka_gguf_close(&file);
    return status;
}

vka_status vka_gguf_open(vka_gguf **out, const char *path, vka_error *error)
{
    vka_mapping mapping = {0};
    vka_status status = vka_map_file(&mapping, path, error);

    if (status == VKA_OK)
        status = vka_gguf_parse(out, mapping.data, mapping.size, path, error);
    if (status != VKA_OK)
        vka_unmap_file(&mapping);
    else
        (*out)->mapping = mapping;
    return status;
}

void vka_gguf_close(vka_gguf **file)
{
    if (!file || !*file)
        return;
    vka_unmap_file(&(*file)->mapping);
    vka_free(NULL, (*file)->label);
    vka_free(NULL, (*file)->names);
    vka_free(NULL, (*file)->values);
    vka_free(NULL, (*file)->tensors);
    vka_free(NULL, *file);
    *file = NULL;
}

bool vka_gguf_recognise(const char *path)
{
    vka_mapping mapping = {0};
    bool is_gguf = vka_is_file(path) && vka_map_file(&mapping, path, NULL) == VKA_OK && mapping.size >= MAGIC_BYTES &&
                   memcmp(mapping.data, magic, MAGIC_BYTES) == 0;

    vka_unmap_file(&mapping);
    return is_gguf;
}

const char *vka_gguf_label(const vka_gguf *file)
{
    return file->label;
}

const vka_gguf_value *vka_gguf_value_at(const vka_gguf *file, size_t index)
{
    return index < file->value_count ? &file->values[index] : NULL;
}

const vka_gguf_tensor *vka_gguf_tensor_at(const vka_gguf *file, size_t index)
{
    return index < file->tensor_count ? &file->tensors[index] : NULL;
}

const vka_gguf_value *vka_gguf_find(const vka_gguf *file, const char *key)
{
    const vka_gguf_value wanted = {.key = key};

    return file->value_count == 0 ? NULL
                                  : bsearch(&wanted, file->values, file->value_count, sizeof(wanted), value_by_key);
}

const vka_gguf_tensor *vka_gguf_find_tensor(const vka_gguf *file, const char *name)
{
    const vka_gguf_tensor wanted = {.name = name};

    return file->tensor_count == 0
               ? NULL
               : bsearch(&wanted, file->tensors, file->tensor_count, sizeof(wanted), tensor_by_name);
}
