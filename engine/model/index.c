/* The index of a checkpoint in several files. It is hostile: names of files are the only text in a checkpoint that is
 * opened, so nothing but a plain "NAME.safetensors" passes. Sorting finds the distinct names, whose number is bounded
 * by the size of the text only. */
#include "model/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/json.h"

enum { MAX_FILE_NAME = 255 };

static bool is_plain_name(const char *name)
{
    static const char suffix[] = ".safetensors";
    size_t length = strlen(name), tail = sizeof(suffix) - 1;

    return name[0] != '.' && length > tail && length <= MAX_FILE_NAME && !strpbrk(name, "/\\") &&
           strcmp(name + length - tail, suffix) == 0;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* files[0 .. count) -> sorted and distinct */
static size_t sort_distinct(const char **files, size_t count)
{
    size_t kept = 0;

    qsort(files, count, sizeof(files[0]), compare_text);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(files[kept - 1], files[i]) != 0)
            files[kept++] = files[i];
    return kept;
}

static vka_status collect(vka_index *index, json_t *map, const char *label, vka_error *error)
{
    char name[VKA_PRINTABLE_BYTES], text[VKA_PRINTABLE_BYTES];
    const char *key;
    json_t *value;

    index->entries = vka_alloc(NULL, json_object_size(map), sizeof(index->entries[0]));
    index->files = vka_alloc(NULL, json_object_size(map), sizeof(index->files[0]));
    if (!index->entries || !index->files)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "%s: no memory for %zu tensors", label, json_object_size(map));
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value) || !is_plain_name(json_string_value(value)))
            return vka_fail(error, VKA_ERR_FORMAT,
                            "%s: tensor '%s' is in file '%s', expected a plain name ending in .safetensors", label,
                            vka_printable(key, name), vka_json_describe(value, text));
        index->files[index->count] = json_string_value(value);
        index->entries[index->count++].tensor = key;
    }
    return VKA_OK;
}

static void number_files(vka_index *index, const json_t *map)
{
    index->file_count = sort_distinct(index->files, index->count);
    for (size_t i = 0; i < index->count; i++) {
        const char *name = json_string_value(json_object_get(map, index->entries[i].tensor));
        const char **file = bsearch(&name, index->files, index->file_count, sizeof(name), compare_text);

        index->entries[i].file = (size_t)(file - index->files);
    }
}

/* Takes `root` over. */
static vka_status from_json(vka_index *out, json_t *root, const char *label, vka_error *error)
{
    vka_index index = {.root = root};
    json_t *map = json_object_get(root, "weight_map");
    vka_status status;

    if (!json_is_object(map) || json_object_size(map) == 0)
        status = vka_fail(error, VKA_ERR_FORMAT, "%s: there is no weight_map, or it is empty", label);
    else
        status = collect(&index, map, label, error);
    if (status != VKA_OK) {
        vka_index_free(&index);
        return status;
    }
    number_files(&index, map);
    *out = index;
    return VKA_OK;
}

vka_status vka_index_parse(vka_index *out, const void *data, size_t size, const char *label, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_parse(&root, data, size, label, error);

    return status == VKA_OK ? from_json(out, root, label, error) : status;
}

vka_status vka_index_read(vka_index *out, const char *path, vka_error *error)
{
    json_t *root = NULL;
    vka_status status = vka_json_read(&root, path, error);

    return status == VKA_OK ? from_json(out, root, path, error) : status;
}

void vka_index_free(vka_index *index)
{
    if (!index)
        return;
    vka_free(NULL, index->entries);
    vka_free(NULL, (void *)index->files);
    json_decref(index->root);
    *index = (vka_index){0};
}
