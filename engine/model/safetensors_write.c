/* Writer of the safetensors format. Tensors of 4-byte elements come first and the header is padded with spaces, so that
 * every tensor of the file is aligned to its element size. */
#include "vkattn/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/files.h"
#include "model/json.h"

enum { LENGTH_BYTES = 8, MAX_DIMS = 8 };

typedef struct writer {
    vka_error *error;
    json_t *header;
    vka_piece *pieces; /* length, header, padding, then one per tensor */
    size_t count;
    uint64_t bytes; /* of data so far */
} writer;

static vka_status bad_tensor(const writer *w, const vka_named_tensor *tensor, const char *what)
{
    char name[VKA_PRINTABLE_BYTES];

    return vka_fail(w->error, VKA_ERR_ARGUMENT, "tensor '%s' %s",
                    vka_printable(tensor->name ? tensor->name : "(null)", name), what);
}

static vka_status tensor_bytes(const writer *w, const vka_named_tensor *tensor, uint64_t *bytes)
{
    *bytes = vka_dtype_size(tensor->dtype);
    if (*bytes == 0)
        return bad_tensor(w, tensor, "has no element type of F32, F16 or BF16");
    if (tensor->dims > MAX_DIMS)
        return bad_tensor(w, tensor, "has more than 8 dimensions");
    for (uint32_t i = 0; i < tensor->dims; i++) {
        uint64_t extent = tensor->shape[i];

        if (extent > INT64_MAX || (extent != 0 && *bytes > (uint64_t)INT64_MAX / extent))
            return bad_tensor(w, tensor, "has a shape whose size exceeds 63 bits");
        *bytes *= extent;
    }
    if (*bytes > 0 && !tensor->data)
        return bad_tensor(w, tensor, "has no data");
    if (w->bytes > (uint64_t)INT64_MAX - *bytes)
        return bad_tensor(w, tensor, "makes the file exceed 63 bits");
    return VKA_OK;
}

static json_t *describe(const vka_named_tensor *tensor, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();

    for (uint32_t i = 0; i < tensor->dims; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", vka_dtype_name(tensor->dtype), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

static vka_status add_tensor(writer *w, const vka_named_tensor *tensor)
{
    uint64_t bytes;
    vka_status status = tensor_bytes(w, tensor, &bytes);
    json_t *name;

    if (status != VKA_OK)
        return status;
    name = tensor->name ? json_string(tensor->name) : NULL; /* NULL, too, for what is not UTF-8 */
    json_decref(name);
    if (!name || strcmp(tensor->name, "__metadata__") == 0)
        return bad_tensor(w, tensor, "has a name that is not UTF-8 or is reserved");
    if (json_object_get(w->header, tensor->name))
        return bad_tensor(w, tensor, "is given twice");
    if (json_object_set_new(w->header, tensor->name, describe(tensor, w->bytes, w->bytes + bytes)) != 0)
        return vka_fail(w->error, VKA_ERR_HOST_MEMORY, "no memory for the header of a tensor file");
    w->pieces[w->count++] = (vka_piece){.data = tensor->data, .size = (size_t)bytes};
    w->bytes += bytes;
    return VKA_OK;
}

static vka_status add_all(writer *w, const vka_named_tensor *tensors, size_t count)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < count; i++) {
            bool is_narrow = vka_dtype_size(tensors[i].dtype) < 4;
            vka_status status = is_narrow == (narrow != 0) ? add_tensor(w, &tensors[i]) : VKA_OK;

            if (status != VKA_OK)
                return status;
        }
    return VKA_OK;
}

static vka_status write_pieces(writer *w, const char *path)
{
    static const char spaces[] = "        ";
    unsigned char length[LENGTH_BYTES];
    size_t size = json_dumpb(w->header, NULL, 0, JSON_COMPACT);
    size_t padding = (8 - size % 8) % 8;
    char *header = vka_alloc(NULL, size, 1);
    vka_status status;

    if (size == 0 || !header || json_dumpb(w->header, header, size, JSON_COMPACT) != size) {
        status = vka_fail(w->error, VKA_ERR_HOST_MEMORY, "no memory for the header of '%s'", path);
    } else if (size + padding > VKA_JSON_MAX_BYTES) {
        status = vka_fail(w->error, VKA_ERR_ARGUMENT, "the header of '%s' would have %zu bytes, at most %u are allowed",
                          path, size + padding, VKA_JSON_MAX_BYTES);
    } else {
        for (int i = 0; i < LENGTH_BYTES; i++)
            length[i] = (unsigned char)((uint64_t)(size + padding) >> 8 * i);
        w->pieces[0] = (vka_piece){.data = length, .size = sizeof(length)};
        w->pieces[1] = (vka_piece){.data = header, .size = size};
        w->pieces[2] = (vka_piece){.data = spaces, .size = padding};
        status = vka_write_file(path, w->pieces, w->count, w->error);
    }
    vka_free(NULL, header);
    return status;
}

vka_status vka_tensor_file_write(const char *path, const vka_named_tensor *tensors, size_t count, vka_error *error)
{
    writer w = {.error = error, .count = 3};
    vka_status status = VKA_OK;

    if (!path || (!tensors && count > 0))
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", path ? "tensors" : "path");
    w.header = json_object();
    w.pieces = count < SIZE_MAX - 3 ? vka_alloc(NULL, count + 3, sizeof(vka_piece)) : NULL;
    if (!w.header || !w.pieces)
        status = vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the header of '%s'", path);
    if (status == VKA_OK)
        status = add_all(&w, tensors, count);
    if (status == VKA_OK)
        status = write_pieces(&w, path);
    json_decref(w.header);
    vka_free(NULL, w.pieces);
    return status;
}
