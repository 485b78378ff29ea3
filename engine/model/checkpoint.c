/* A checkpoint: a folder with config.json and model.safetensors, or model.safetensors.index.json and its shards; or a
 * GGUF file.
 * Opening maps every file and reads headers only. All tensors of all files then stand in one table sorted by name. */
#include "model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/files.h"
#include "model/gguf_config.h"
#include "model/index.h"
#include "model/json.h"

static vka_status join_path(char **out, const char *folder, const char *name, vka_error *error)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = vka_alloc(NULL, size, 1);

    if (!path)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the path of '%s'", name);
    snprintf(path, size, "%s/%s", folder, name);
    *out = path;
    return VKA_OK;
}

/* Sets *out to the path of config.json, given the folder or the file. */
static vka_status find_config(char **out, const char *path, vka_error *error)
{
    size_t size = strlen(path) + 1;

    if (vka_is_directory(path))
        return join_path(out, path, "config.json", error);
    *out = vka_alloc(NULL, size, 1);
    if (!*out)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the path '%s'", path);
    memcpy(*out, path, size);
    return VKA_OK;
}

/* ---- opening ---- */

static vka_status open_shards(vka_model *model, const char *dir, const char *const *names, size_t count,
                              vka_error *error)
{
    vka_status status = VKA_OK;

    model->shards = vka_alloc(NULL, count, sizeof(vka_shard_file));
    if (!model->shards)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for %zu files of '%s'", count, dir);
    model->shard_count = count;
    for (size_t i = 0; i < count && status == VKA_OK; i++) {
        status = join_path(&model->shards[i].path, dir, names[i], error);
        if (status == VKA_OK)
            status = vka_tensor_file_open(&model->shards[i].file, model->shards[i].path, error);
    }
    return status;
}

static vka_status reserve_slots(vka_model *model, size_t count, vka_error *error)
{
    model->slots = vka_alloc(NULL, count, sizeof(vka_slot));
    if (!model->slots)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a table of %zu tensors", count);
    return VKA_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const vka_slot *)a)->tensor->name, ((const vka_slot *)b)->tensor->name);
}

static vka_status open_single(vka_model *model, const char *dir, const char *name, vka_error *error)
{
    vka_status status = open_shards(model, dir, &name, 1, error);
    size_t count;

    if (status != VKA_OK)
        return status;
    count = vka_tensor_file_count(model->shards[0].file);
    status = reserve_slots(model, count, error);
    if (status != VKA_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        model->slots[i] = (vka_slot){vka_tensor_file_at(model->shards[0].file, i), &model->shards[0], NULL};
    model->slot_count = count;
    return VKA_OK;
}

static vka_status fill_slots(vka_model *model, const vka_index *index, const char *label, vka_error *error)
{
    char name[VKA_PRINTABLE_BYTES];
    vka_status status = reserve_slots(model, index->count, error);

    if (status != VKA_OK)
        return status;
    for (size_t i = 0; i < index->count; i++) {
        const vka_index_entry *entry = &index->entries[i];
        const vka_shard_file *shard = &model->shards[entry->file];
        const vka_named_tensor *tensor = vka_tensor_file_find(shard->file, entry->tensor);

        if (!tensor)
            return vka_fail(error, VKA_ERR_FORMAT, "%s: tensor '%s' should be in '%s', which lacks it", label,
                            vka_printable(entry->tensor, name), shard->path);
        model->slots[model->slot_count++] = (vka_slot){tensor, shard, NULL};
    }
    qsort(model->slots, model->slot_count, sizeof(vka_slot), by_name);
    return VKA_OK;
}

static vka_status open_indexed(vka_model *model, const char *dir, const char *name, vka_error *error)
{
    vka_index index = {0};
    char *path = NULL;
    vka_status status = join_path(&path, dir, name, error);

    if (status == VKA_OK)
        status = vka_index_read(&index, path, error);
    if (status == VKA_OK)
        status = open_shards(model, dir, index.files, index.file_count, error);
    if (status == VKA_OK)
        status = fill_slots(model, &index, path, error);
    vka_index_free(&index);
    vka_free(NULL, path);
    return status;
}

static vka_status look_for(bool *found, const char *dir, const char *name, vka_error *error)
{
    char *path = NULL;
    vka_status status = join_path(&path, dir, name, error);

    if (status == VKA_OK)
        *found = vka_is_file(path);
    vka_free(NULL, path);
    return status;
}

/* One file is preferred to an index, as transformers does. */
static vka_status open_weights(vka_model *model, const char *dir, vka_error *error)
{
    static const char single[] = "model.safetensors", several[] = "model.safetensors.index.json";
    bool is_single = false, is_indexed = false;
    vka_status status = look_for(&is_single, dir, single, error);

    if (status == VKA_OK)
        status = look_for(&is_indexed, dir, several, error);
    if (status != VKA_OK)
        return status;
    if (is_single)
        return open_single(model, dir, single, error);
    if (is_indexed)
        return open_indexed(model, dir, several, error);
    return vka_fail(error, VKA_ERR_IO, "'%s' has neither %s nor %s", dir, single, several);
}

/* ---- GGUF: one file that is configuration and weights ---- */

static vka_status open_gguf(vka_model *model, vka_error *error)
{
    vka_status status;
    size_t count;

    model->shards = vka_alloc(NULL, 1, sizeof(vka_shard_file));
    if (!model->shards)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for '%s'", model->config_path);
    model->shard_count = 1;
    model->shards[0].path = vka_copy_text(NULL, model->config_path);
    if (!model->shards[0].path)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the path '%s'", model->config_path);
    status = vka_gguf_open(&model->shards[0].gguf, model->config_path, error);
    if (status == VKA_OK)
        status = vka_gguf_config(&model->config, model->shards[0].gguf, model->config_path, error);
    if (status != VKA_OK)
        return status;
    count = vka_gguf_count(model->shards[0].gguf);
    status = reserve_slots(model, count, error);
    for (size_t i = 0; status == VKA_OK && i < count; i++) {
        const vka_gguf_tensor *tensor = vka_gguf_at(model->shards[0].gguf, i);

        model->slots[model->slot_count++] = (vka_slot){&tensor->tensor, &model->shards[0], tensor->format};
    }
    return status;
}

static vka_status open_folder(vka_model *model, const char *dir, vka_error *error)
{
    vka_status status = vka_config_read(&model->config, model->config_path, error);

    return status == VKA_OK ? open_weights(model, dir, error) : status;
}

/* Sets *config from a file that holds one, without weights. */
static vka_status read_config(vka_config *config, const char *file, vka_error *error)
{
    vka_gguf *gguf = NULL;
    vka_status status;

    if (!vka_gguf_recognise(file))
        return vka_config_read(config, file, error);
    status = vka_gguf_open(&gguf, file, error);
    if (status == VKA_OK)
        status = vka_gguf_config(config, gguf, file, error);
    vka_gguf_close(&gguf);
    return status;
}

static vka_model_info info_of(const vka_config *config, vka_block block)
{
    vka_model_info info = {.layers = vka_config_layers(config, block), .not_run = config->family->not_run};

    snprintf(info.architecture, sizeof(info.architecture), "%s", config->architecture);
    snprintf(info.model_type, sizeof(info.model_type), "%s", config->family->model_type);
    return info;
}

vka_status vka_model_open(vka_model **out, const char *dir, vka_error *error)
{
    vka_model *model = NULL;
    vka_status status;

    if (!out || !dir)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out ? "dir" : "out");
    model = vka_alloc(NULL, 1, sizeof(*model));
    if (!model)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a model");
    status = find_config(&model->config_path, dir, error);
    if (status == VKA_OK)
        status = vka_gguf_recognise(model->config_path) ? open_gguf(model, error) : open_folder(model, dir, error);
    if (status != VKA_OK) {
        vka_model_close(&model);
        return status;
    }
    model->info = info_of(&model->config, VKA_BLOCK_SELF);
    model->info.has_weights = 1;
    *out = model;
    return VKA_OK;
}

void vka_model_close(vka_model **model)
{
    if (!model || !*model)
        return;
    for (size_t i = 0; i < (*model)->shard_count; i++) {
        vka_tensor_file_close(&(*model)->shards[i].file);
        vka_gguf_close(&(*model)->shards[i].gguf);
        vka_free(NULL, (*model)->shards[i].path);
    }
    vka_free(NULL, (*model)->shards);
    vka_free(NULL, (*model)->slots);
    vka_free(NULL, (*model)->config_path);
    vka_config_free(&(*model)->config);
    vka_free(NULL, *model);
    *model = NULL;
}

const vka_model_info *vka_model_get_info(const vka_model *model)
{
    return model ? &model->info : NULL;
}

vka_status vka_model_read_config(const char *path, vka_block block, uint32_t layer, vka_layer_desc *desc,
                                 vka_model_info *info, vka_error *error)
{
    vka_config config = {0};
    vka_layer_desc found;
    char *file = NULL;
    vka_status status;

    if (!path)
        return vka_fail(error, VKA_ERR_ARGUMENT, "path is NULL");
    status = find_config(&file, path, error);
    if (status == VKA_OK)
        status = read_config(&config, file, error);
    if (status == VKA_OK)
        status = vka_config_layer(&config, block, layer, &found, file, error);
    if (status == VKA_OK && desc)
        *desc = found;
    if (status == VKA_OK && info) {
        *info = info_of(&config, block);
        info->has_weights = config.gguf.names != NULL || vka_is_directory(path);
    }
    vka_config_free(&config);
    vka_free(NULL, file);
    return status;
}
