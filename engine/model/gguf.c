/* The container: "GGUF", version, number of tensors, number of keys; the keys; for each tensor name, dimensions, type
 * and offset; then, aligned, the data. Facts: the specification of the format (ggml) and the gguf package of PyPI
 * (0.19). The file is hostile: no count is believed before the bytes that it promises are there. */
#include "model/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/files.h"
#include "model/gguf_cursor.h"
#include "model/json.h"

enum { MAX_DIMS = 4, NAME_BYTES = 128, DEFAULT_ALIGNMENT = 32, LEAST_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 };

static const unsigned char magic[4] = {'G', 'G', 'U', 'F'};

typedef struct entry {
    vka_gguf_tensor of; /* first: tables of both are searched alike */
    char name[NAME_BYTES];
    uint64_t offset, bytes; /* from the beginning of the data */
} entry;

struct vka_gguf {
    vka_mapping mapping; /* empty when parsed from memory */
    json_t *metadata;
    entry *entries; /* in the order of names */
    size_t count;
};

bool vka_gguf_recognise(const char *path)
{
    vka_mapping mapping = {0};
    bool is_gguf;

    if (!vka_is_file(path) || vka_map_file(&mapping, path, NULL) != VKA_OK)
        return false;
    is_gguf = mapping.size >= sizeof(magic) && memcmp(mapping.data, magic, sizeof(magic)) == 0;
    vka_unmap_file(&mapping);
    return is_gguf;
}

static vka_status bad_tensor(const gguf_cursor *cursor, const entry *e, const char *what)
{
    char name[VKA_PRINTABLE_BYTES];

    return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: tensor '%s' %s", cursor->label, vka_printable(e->name, name),
                    what);
}

static vka_status read_counts(gguf_cursor *cursor, uint64_t *tensors, uint64_t *keys)
{
    uint64_t version = 0;
    vka_status status;

    if (cursor->size < sizeof(magic) || memcmp(cursor->data, magic, sizeof(magic)) != 0)
        return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s does not begin with 'GGUF'", cursor->label);
    cursor->at = sizeof(magic);
    status = gguf_unsigned(cursor, 4, &version, "the version");
    if (status == VKA_OK && version != 2 && version != 3)
        return vka_fail(cursor->error, VKA_ERR_UNSUPPORTED, "%s: GGUF version %llu%s, expected 2 or 3", cursor->label,
                        (unsigned long long)version, version != 0 && version % 65536 == 0 ? " (big-endian?)" : "");
    if (status == VKA_OK)
        status = gguf_unsigned(cursor, 8, tensors, "the number of tensors");
    return status == VKA_OK ? gguf_unsigned(cursor, 8, keys, "the number of keys") : status;
}

/* Sets the shape and the size in bytes. */
static vka_status read_shape(gguf_cursor *cursor, entry *e, uint64_t *first)
{
    uint64_t dims = 0;
    vka_status status = gguf_unsigned(cursor, 4, &dims, e->name);

    if (status == VKA_OK && (dims < 1 || dims > MAX_DIMS))
        status = bad_tensor(cursor, e, "has another number of dimensions than 1 to 4");
    for (uint64_t i = 0; i < dims && status == VKA_OK; i++) {
        uint64_t extent = 0;

        status = gguf_unsigned(cursor, 8, &extent, e->name);
        if (status == VKA_OK && (extent == 0 || extent > INT64_MAX))
            status = bad_tensor(cursor, e, "has a dimension of 0 or above 2^63 - 1");
        e->of.tensor.shape[dims - 1 - i] = extent;
        if (i == 0)
            *first = extent;
    }
    e->of.tensor.dims = (uint32_t)dims;
    return status;
}

static vka_status set_bytes(const gguf_cursor *cursor, entry *e, uint64_t first)
{
    const vka_block_format *format = e->of.format;
    uint64_t elements = 1;

    if (!format)
        return VKA_OK; /* its size is not known: refused when it is asked for */
    for (uint32_t i = 0; i < e->of.tensor.dims; i++) {
        if (elements > INT64_MAX / 1024 / e->of.tensor.shape[i])
            return bad_tensor(cursor, e, "has more elements than fit in 63 bits");
        elements *= e->of.tensor.shape[i];
    }
    if (first % format->elements != 0)
        return bad_tensor(cursor, e, "has rows that are not whole blocks of its type");
    e->bytes = elements / format->elements * format->bytes;
    return VKA_OK;
}

static vka_status read_tensor(gguf_cursor *cursor, entry *e)
{
    uint64_t type = 0, first = 0;
    vka_status status = gguf_read_name(cursor, e->name, sizeof(e->name), "the name of a tensor");

    e->of.tensor.name = e->name;
    if (status == VKA_OK)
        status = read_shape(cursor, e, &first);
    if (status == VKA_OK)
        status = gguf_unsigned(cursor, 4, &type, e->name);
    if (status == VKA_OK)
        status = gguf_unsigned(cursor, 8, &e->offset, e->name);
    if (status != VKA_OK)
        return status;
    e->of.format = vka_block_format_find((uint32_t)type);
    e->of.tensor.dtype = e->of.format ? e->of.format->dtype : VKA_DTYPE_DEFAULT;
    return set_bytes(cursor, e, first);
}

static vka_status read_tensors(gguf_cursor *cursor, vka_gguf *file, uint64_t count)
{
    vka_status status = VKA_OK;

    if (count > gguf_left(cursor) / LEAST_TENSOR)
        return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: %llu tensors cannot be in the %zu bytes that follow",
                        cursor->label, (unsigned long long)count, gguf_left(cursor));
    file->entries = vka_alloc(NULL, count > 0 ? (size_t)count : 1, sizeof(entry));
    if (!file->entries)
        return vka_fail(cursor->error, VKA_ERR_HOST_MEMORY, "%s: no memory for %llu tensor records", cursor->label,
                        (unsigned long long)count);
    for (; file->count < count && status == VKA_OK; file->count++)
        status = read_tensor(cursor, &file->entries[file->count]);
    return status;
}

static int by_offset(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static int name_to_entry(const void *name, const void *e)
{
    return strcmp(name, ((const entry *)e)->name);
}

/* Entries stand in the order of offsets. */
static vka_status place_tensor(const gguf_cursor *cursor, entry *e, uint64_t begin, uint64_t alignment, uint64_t *next)
{
    uint64_t left = cursor->size - begin;

    if (e->offset % alignment != 0)
        return bad_tensor(cursor, e, "does not begin at a multiple of general.alignment");
    if (e->offset > left || e->bytes > left - e->offset)
        return bad_tensor(cursor, e, "lies beyond the end of the file (is the file cut short?)");
    if (e->offset < *next)
        return bad_tensor(cursor, e, "overlaps the tensor before it");
    *next = e->offset + e->bytes;
    e->of.tensor.data = cursor->data + begin + e->offset;
    return VKA_OK;
}

static vka_status place_tensors(const gguf_cursor *cursor, vka_gguf *file)
{
    uint32_t alignment = DEFAULT_ALIGNMENT;
    vka_status status =
        vka_json_count(file->metadata, "general.alignment", 1, 1u << 30, &alignment, cursor->label, cursor->error);
    uint64_t begin = (cursor->at + (uint64_t)alignment - 1) / alignment * alignment, next = 0;

    if (status != VKA_OK || file->count == 0)
        return status;
    if ((alignment & (alignment - 1)) != 0)
        return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: general.alignment is %u, expected a power of two",
                        cursor->label, alignment);
    if (begin > cursor->size)
        return vka_fail(cursor->error, VKA_ERR_FORMAT, "%s: the file ends before its data (is it cut short?)",
                        cursor->label);
    qsort(file->entries, file->count, sizeof(entry), by_offset);
    for (size_t i = 0; i < file->count && status == VKA_OK; i++)
        status = place_tensor(cursor, &file->entries[i], begin, alignment, &next);
    return status;
}

/* Sorts by name, with pointers to names moved along. */
static vka_status sort_tensors(const gguf_cursor *cursor, vka_gguf *file)
{
    qsort(file->entries, file->count, sizeof(entry), by_name);
    for (size_t i = 0; i < file->count; i++) {
        file->entries[i].of.tensor.name = file->entries[i].name;
        if (i > 0 && strcmp(file->entries[i - 1].name, file->entries[i].name) == 0)
            return bad_tensor(cursor, &file->entries[i], "is there twice");
    }
    return VKA_OK;
}

static vka_status read_all(gguf_cursor *cursor, vka_gguf *file)
{
    uint64_t tensors = 0, keys = 0;
    vka_status status = read_counts(cursor, &tensors, &keys);

    if (status == VKA_OK)
        status = gguf_read_metadata(cursor, keys, &file->metadata);
    if (status == VKA_OK)
        status = read_tensors(cursor, file, tensors);
    if (status == VKA_OK)
        status = place_tensors(cursor, file);
    return status == VKA_OK ? sort_tensors(cursor, file) : status;
}

vka_status vka_gguf_parse(vka_gguf **out, const void *data, size_t size, const char *label, vka_error *error)
{
    gguf_cursor cursor = {.data = data, .size = size, .label = label, .error = error};
    vka_gguf *file = vka_alloc(NULL, 1, sizeof(*file));
    vka_status status;

    if (!file)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "%s: no memory for a GGUF file", label);
    status = read_all(&cursor, file);
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
    if (status == VKA_OK)
        (*out)->mapping = mapping;
    else
        vka_unmap_file(&mapping);
    return status;
}

void vka_gguf_close(vka_gguf **file)
{
    if (!file || !*file)
        return;
    vka_unmap_file(&(*file)->mapping);
    json_decref((*file)->metadata);
    vka_free(NULL, (*file)->entries);
    vka_free(NULL, *file);
    *file = NULL;
}

const json_t *vka_gguf_metadata(const vka_gguf *file)
{
    return file->metadata;
}

size_t vka_gguf_count(const vka_gguf *file)
{
    return file->count;
}

const vka_gguf_tensor *vka_gguf_at(const vka_gguf *file, size_t index)
{
    return index < file->count ? &file->entries[index].of : NULL;
}

const vka_gguf_tensor *vka_gguf_find(const vka_gguf *file, const char *name)
{
    const entry *found = bsearch(name, file->entries, file->count, sizeof(entry), name_to_entry);

    return found ? &found->of : NULL;
}
