/* Reader of the safetensors format: 8 bytes of header length (little-endian), a JSON header that begins with '{', then
 * the data. Facts from the format's README and its reference implementation in Rust: the header has at most 100,000,000
 * bytes; byte ranges count from the end of the header; sorted, they follow each other without overlap or gap and end
 * with the file; "__metadata__" maps text to text; a shape may be empty (a scalar) or hold zeros.
 *
 * The file is hostile: each entry is checked alone (type, shape, product, range), then all ranges together. An element
 * type that is not known here keeps its byte range and is only refused when asked for as a weight, since a checkpoint
 * may carry other things than we read. */
#include "model/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/files.h"
#include "model/json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "views into the file need a little-endian host");

enum { LENGTH_BYTES = 8, MAX_DIMS = 8, TYPE_BYTES = 16 };

typedef struct entry {
    vka_named_tensor tensor; /* first: vka_tensor_type_name() goes from one to the other */
    char type[TYPE_BYTES];
    uint64_t begin, end; /* bytes from the end of the header */
} entry;

struct vka_tensor_file {
    vka_mapping mapping; /* empty when parsed from memory */
    entry *entries;      /* in the order of names */
    size_t count;
    char *names; /* one block behind all names */
};

typedef struct parser {
    const char *label;
    vka_error *error;
    const unsigned char *data; /* after the header */
    uint64_t data_size;
} parser;

typedef struct type_row {
    const char *name;
    unsigned bits;
    vka_dtype dtype;
} type_row;

#define OTHER VKA_DTYPE_DEFAULT /* known to the format, not computed with */

static const type_row types[] = {
    {"F32", 32, VKA_F32},  {"F16", 16, VKA_F16},  {"BF16", 16, VKA_BF16}, {"BOOL", 8, OTHER},    {"U8", 8, OTHER},
    {"I8", 8, OTHER},      {"U16", 16, OTHER},    {"I16", 16, OTHER},     {"U32", 32, OTHER},    {"I32", 32, OTHER},
    {"U64", 64, OTHER},    {"I64", 64, OTHER},    {"F64", 64, OTHER},     {"C64", 64, OTHER},    {"F8_E4M3", 8, OTHER},
    {"F8_E5M2", 8, OTHER}, {"F8_E8M0", 8, OTHER}, {"F6_E2M3", 6, OTHER},  {"F6_E3M2", 6, OTHER}, {"F4", 4, OTHER},
};

static const type_row *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static vka_status bad_entry(const parser *p, const entry *e, const char *what)
{
    char name[VKA_PRINTABLE_BYTES];

    return vka_fail(p->error, VKA_ERR_FORMAT, "%s: tensor '%s' %s", p->label, vka_printable(e->tensor.name, name),
                    what);
}

static bool read_size(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static vka_status parse_shape(const parser *p, entry *e, const json_t *shape)
{
    if (!json_is_array(shape) || json_array_size(shape) > MAX_DIMS)
        return bad_entry(p, e, "has a shape that is not an array of at most 8 numbers");
    e->tensor.dims = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < e->tensor.dims; i++)
        if (!read_size(json_array_get(shape, i), &e->tensor.shape[i]))
            return bad_entry(p, e, "has a dimension that is not an integer from 0 to 2^63 - 1");
    return VKA_OK;
}

static vka_status parse_range(const parser *p, entry *e, const json_t *range)
{
    if (!json_is_array(range) || json_array_size(range) != 2 || !read_size(json_array_get(range, 0), &e->begin) ||
        !read_size(json_array_get(range, 1), &e->end))
        return bad_entry(p, e, "has data_offsets that are not two integers from 0 to 2^63 - 1");
    if (e->begin > e->end)
        return bad_entry(p, e, "has data_offsets that end before they begin");
    if (e->end > p->data_size)
        return bad_entry(p, e, "lies beyond the end of the file (is the file cut short?)");
    e->tensor.data = p->data + e->begin;
    return VKA_OK;
}

/* The byte range must hold exactly what type and shape say. */
static vka_status check_size(const parser *p, const entry *e, unsigned bits)
{
    uint64_t elements = 1;

    for (uint32_t i = 0; i < e->tensor.dims; i++) {
        uint64_t extent = e->tensor.shape[i];

        if (extent != 0 && elements > UINT64_MAX / extent)
            return bad_entry(p, e, "has a shape whose product exceeds 64 bits");
        elements *= extent;
    }
    if (elements > UINT64_MAX / bits)
        return bad_entry(p, e, "has a shape whose size exceeds 64 bits");
    if (elements * bits % 8 != 0 || elements * bits / 8 != e->end - e->begin)
        return bad_entry(p, e, "has data_offsets that do not fit its shape and type");
    return VKA_OK;
}

static vka_status parse_entry(const parser *p, entry *e, const json_t *info)
{
    const char *type = json_string_value(json_object_get(info, "dtype"));
    const type_row *row;
    vka_status status;

    if (!json_is_object(info) || !type || type[0] == '\0' || strlen(type) >= TYPE_BYTES)
        return bad_entry(p, e, "is not an object with a dtype of at most 15 letters");
    memcpy(e->type, type, strlen(type) + 1);
    status = parse_shape(p, e, json_object_get(info, "shape"));
    if (status == VKA_OK)
        status = parse_range(p, e, json_object_get(info, "data_offsets"));
    row = find_type(type);
    if (status != VKA_OK || !row)
        return status;
    e->tensor.dtype = row->dtype;
    return check_size(p, e, row->bits);
}

static int by_range(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->tensor.name, ((const entry *)b)->tensor.name);
}

static int name_to_entry(const void *name, const void *e)
{
    return strcmp(name, ((const entry *)e)->tensor.name);
}

/* Sorts by range: the ranges must tile the data. */
static vka_status check_tiling(const parser *p, vka_tensor_file *file)
{
    uint64_t next = 0;

    qsort(file->entries, file->count, sizeof(entry), by_range);
    for (size_t i = 0; i < file->count; i++) {
        const entry *e = &file->entries[i];

        if (e->begin < next)
            return bad_entry(p, e, "overlaps the tensor before it");
        if (e->begin > next)
            return bad_entry(p, e, "leaves a gap after the tensor before it");
        next = e->end;
    }
    if (next != p->data_size)
        return vka_fail(p->error, VKA_ERR_FORMAT, "%s: the tensors end at byte %llu of the data, the file at %llu",
                        p->label, (unsigned long long)next, (unsigned long long)p->data_size);
    return VKA_OK;
}

static vka_status check_metadata(const parser *p, json_t *metadata)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return vka_fail(p->error, VKA_ERR_FORMAT, "%s: __metadata__ is not an object", p->label);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return vka_fail(p->error, VKA_ERR_FORMAT, "%s: __metadata__ has a value that is not text", p->label);
    }
    return VKA_OK;
}

/* Room for every tensor of the header, and for all names in one block. */
static vka_status reserve(const parser *p, vka_tensor_file *file, json_t *header)
{
    size_t bytes = 0;
    const char *key;
    json_t *value;

    json_object_foreach(header, key, value) bytes += strlen(key) + 1;
    file->entries = vka_alloc(NULL, json_object_size(header), sizeof(entry));
    file->names = vka_alloc(NULL, bytes, 1);
    if (!file->entries || !file->names)
        return vka_fail(p->error, VKA_ERR_HOST_MEMORY, "%s: no memory for %zu tensor records", p->label,
                        json_object_size(header));
    return VKA_OK;
}

static vka_status parse_header(const parser *p, vka_tensor_file *file, json_t *header)
{
    vka_status status = reserve(p, file, header);
    char *name = file->names;
    const char *key;
    json_t *value;

    if (status != VKA_OK)
        return status;
    json_object_foreach(header, key, value)
    {
        if (strcmp(key, "__metadata__") == 0) {
            status = check_metadata(p, value);
        } else {
            entry *e = &file->entries[file->count++];

            e->tensor.name = name;
            memcpy(name, key, strlen(key) + 1);
            name += strlen(key) + 1;
            status = parse_entry(p, e, value);
        }
        if (status != VKA_OK)
            return status;
    }
    status = check_tiling(p, file);
    qsort(file->entries, file->count, sizeof(entry), by_name);
    return status;
}

/* Splits the image into header and data. */
static vka_status find_header(parser *p, const unsigned char *image, size_t size, size_t *header_size)
{
    uint64_t length = 0;

    if (size < LENGTH_BYTES)
        return vka_fail(p->error, VKA_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file", p->label, size);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | image[i];
    if (length > VKA_JSON_MAX_BYTES)
        return vka_fail(p->error, VKA_ERR_FORMAT,
                        "%s: a header of %llu bytes, expected at most %u (is it a safetensors file?)", p->label,
                        (unsigned long long)length, VKA_JSON_MAX_BYTES);
    if (length > size - LENGTH_BYTES)
        return vka_fail(p->error, VKA_ERR_FORMAT,
                        "%s: a header of %llu bytes in a file of %zu (is the file cut short?)", p->label,
                        (unsigned long long)length, size);
    if (length == 0 || image[LENGTH_BYTES] != '{')
        return vka_fail(p->error, VKA_ERR_FORMAT, "%s: the header does not begin with '{'", p->label);
    p->data = image + LENGTH_BYTES + length;
    p->data_size = size - LENGTH_BYTES - length;
    *header_size = (size_t)length;
    return VKA_OK;
}

vka_status vka_tensor_file_parse(vka_tensor_file **out, const void *data, size_t size, const char *label,
                                 vka_error *error)
{
    parser p = {.label = label, .error = error};
    vka_tensor_file *file = NULL;
    json_t *header = NULL;
    size_t header_size = 0;
    vka_status status = find_header(&p, data, size, &header_size);

    if (status == VKA_OK)
        status = vka_json_parse(&header, (const char *)data + LENGTH_BYTES, header_size, label, error);
    if (status != VKA_OK)
        return status;
    file = vka_alloc(NULL, 1, sizeof(*file));
    if (!file)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "%s: no memory for a tensor file", label);
    else
        status = parse_header(&p, file, header);
    json_decref(header);
    if (status != VKA_OK)
        vka_tensor_file_close(&file);
    else
        *out = file;
    return status;
}

vka_status vka_tensor_file_open(vka_tensor_file **out, const char *path, vka_error *error)
{
    vka_mapping mapping = {0};
    vka_status status;

    if (!out || !path)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out ? "path" : "out");
    status = vka_map_file(&mapping, path, error);
    if (status == VKA_OK)
        status = vka_tensor_file_parse(out, mapping.data, mapping.size, path, error);
    if (status != VKA_OK)
        vka_unmap_file(&mapping);
    else
        (*out)->mapping = mapping;
    return status;
}

void vka_tensor_file_close(vka_tensor_file **file)
{
    if (!file || !*file)
        return;
    vka_unmap_file(&(*file)->mapping);
    vka_free(NULL, (*file)->entries);
    vka_free(NULL, (*file)->names);
    vka_free(NULL, *file);
    *file = NULL;
}

size_t vka_tensor_file_count(const vka_tensor_file *file)
{
    return file ? file->count : 0;
}

const vka_named_tensor *vka_tensor_file_at(const vka_tensor_file *file, size_t index)
{
    return index < vka_tensor_file_count(file) ? &file->entries[index].tensor : NULL;
}

const vka_named_tensor *vka_tensor_file_find(const vka_tensor_file *file, const char *name)
{
    const entry *found = NULL;

    if (file && name)
        found = bsearch(name, file->entries, file->count, sizeof(entry), name_to_entry);
    return found ? &found->tensor : NULL;
}

const char *vka_tensor_type_name(const vka_named_tensor *tensor)
{
    return ((const entry *)(const void *)tensor)->type;
}

vka_status vka_tensor_as_matrix(vka_tensor *out, const vka_named_tensor *tensor, const char *label, vka_error *error)
{
    char name[VKA_PRINTABLE_BYTES];

    vka_printable(tensor->name, name);
    if (tensor->dtype == VKA_DTYPE_DEFAULT)
        return vka_fail(error, VKA_ERR_UNSUPPORTED,
                        "%s: tensor '%s' has the element type %s, expected F32, F16 or BF16", label, name,
                        vka_tensor_type_name(tensor));
    if (tensor->dims != 1 && tensor->dims != 2)
        return vka_fail(error, VKA_ERR_FORMAT, "%s: tensor '%s' has %u dimensions, expected a matrix or a vector",
                        label, name, tensor->dims);
    *out = (vka_tensor){
        .data = tensor->data,
        .dtype = tensor->dtype,
        .rows = tensor->dims == 2 ? tensor->shape[0] : 1,
        .cols = tensor->shape[tensor->dims - 1],
    };
    return VKA_OK;
}
