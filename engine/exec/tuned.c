/* See tuned.h. One file for each device, driver and library, named by a hash of its key. */
#include "exec/tuned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/identity.h"

static vka_status name_file(const vka_context *context, exec_device *device, vka_error *error)
{
    size_t size = strlen(context->tuning_dir) + sizeof("/0123456789abcdef.txt");
    char key[VKA_IDENTITY_BYTES];

    vka_device_identity(gpu_device_info(device->gpu), key);
    device->tuning_path = vka_alloc(&context->allocator, size, 1);
    if (device->tuning_path == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the path of a tuning file");
    }
    snprintf(device->tuning_path, size, "%s/%016" PRIx64 ".txt", context->tuning_dir,
             vka_hash(VKA_HASH_START, key, strlen(key)));
    return VKA_OK;
}

/* A missing file is the ordinary case. */
static void read_file(const vka_context *context, exec_device *device)
{
    char key[VKA_IDENTITY_BYTES];
    vka_mapping file = {0};
    vka_error error;

    if (!vka_is_file(device->tuning_path)) {
        return;
    }
    vka_device_identity(gpu_device_info(device->gpu), key);
    vka_status status = vka_map_file(&file, device->tuning_path, &error);
    if (status == VKA_OK) {
        status = tuning_parse(file.data, file.size, key, &device->tuned, &error);
    }
    if (status != VKA_OK) {
        vka_log_print(&context->log, VKA_LOG_WARNING, "tuning file '%s' is not used: %s", device->tuning_path,
                      error.message);
    }
    vka_unmap_file(&file);
}

vka_status tuned_open(vka_context *context, const vka_context_params *params, vka_error *error)
{
    char folder[1024];
    vka_status status = VKA_OK;

    context->pretends = params->pretend != NULL && params->pretend[0] != '\0';
    if (params->no_tuning_cache != 0 ||
        !vka_cache_folder(params->tuning_cache_dir, "vkattn/tuning", folder, sizeof(folder))) {
        return VKA_OK;
    }
    context->tuning_dir = vka_copy_text(&context->allocator, folder);
    if (context->tuning_dir == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for the path of tuning files");
    }
    for (uint32_t d = 0; status == VKA_OK && d < context->device_count; d++) {
        status = name_file(context, &context->devices[d], error);
        if (status == VKA_OK) {
            read_file(context, &context->devices[d]);
        }
    }
    return status;
}

static bool same_device(const exec_device *a, const exec_device *b)
{
    char key_a[VKA_IDENTITY_BYTES], key_b[VKA_IDENTITY_BYTES];

    vka_device_identity(gpu_device_info(a->gpu), key_a);
    vka_device_identity(gpu_device_info(b->gpu), key_b);
    return strcmp(key_a, key_b) == 0;
}

static void give_table(vka_context *context, const exec_device *device, const tuning_table *table)
{
    for (uint32_t d = 0; d < context->device_count; d++) {
        if (same_device(&context->devices[d], device)) {
            context->devices[d].tuned = *table;
        }
    }
}

static bool may_write(const vka_context *context)
{
    return context->tuning_dir != NULL && !context->pretends;
}

static vka_status write_file(const vka_context *context, const exec_device *device, const tuning_table *table,
                             vka_error *error)
{
    char key[VKA_IDENTITY_BYTES], text[TUNING_FILE_BYTES];
    vka_status status = vka_make_directories(context->tuning_dir, error);

    if (status != VKA_OK) {
        return status;
    }
    vka_device_identity(gpu_device_info(device->gpu), key);
    const vka_piece piece = {text, tuning_write(table, key, text)};
    return vka_write_file(device->tuning_path, &piece, 1, error);
}

vka_status tuned_add(vka_context *context, uint32_t device, const tuning_table *found, vka_error *error)
{
    tuning_table table = context->devices[device].tuned;
    vka_status status = VKA_OK;

    tuning_add(&table, found);
    if (may_write(context)) {
        status = write_file(context, &context->devices[device], &table, error);
    }
    if (status == VKA_OK) {
        give_table(context, &context->devices[device], &table);
    }
    return status;
}

vka_status tuned_forget(vka_context *context, uint32_t device, vka_error *error)
{
    static const tuning_table nothing;
    vka_status status = may_write(context) ? vka_remove_file(context->devices[device].tuning_path, error) : VKA_OK;

    if (status == VKA_OK) {
        give_table(context, &context->devices[device], &nothing);
    }
    return status;
}

uint32_t tuned_list(const vka_context *context, uint32_t device, vka_tuned_info *out, uint32_t capacity)
{
    const exec_device *on = &context->devices[device];
    uint32_t count = 0;

    for (uint32_t i = 0; i < VKA_KERNEL_COUNT * TUNING_DTYPES * TUNING_CLASSES; i++) {
        vka_kernel kernel = (vka_kernel)(i / (TUNING_DTYPES * TUNING_CLASSES));
        vka_dtype dtype = (vka_dtype)(i / TUNING_CLASSES % TUNING_DTYPES);
        tuning_class sizes = (tuning_class)(i % TUNING_CLASSES);
        const vka_variant *row = tuning_choice(&on->tuned, kernel, dtype, sizes);
        if (row != NULL && count++ < capacity) {
            out[count - 1] = (vka_tuned_info){.kernel = vka_kernel_name(kernel),
                                              .dtype = vka_dtype_name(dtype),
                                              .shape = tuning_class_text(sizes),
                                              .variant = row->name,
                                              .runs = vka_variant_runs(row, kernel, dtype, gpu_device_caps(on->gpu))};
        }
    }
    return count;
}
