/* The pipeline cache on disk: written, read back, and never trusted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <unistd.h>

#include "vk/rig.h"

typedef struct folder {
    char path[64];
    char file[512]; /* the one file in it */
    uint32_t files;
} folder;

static void folder_make(folder *f)
{
    snprintf(f->path, sizeof(f->path), "/tmp/vka_cache_XXXXXX");
    assert_non_null(mkdtemp(f->path));
}

static void folder_look(folder *f)
{
    DIR *directory = opendir(f->path);
    struct dirent *entry;

    assert_non_null(directory);
    f->files = 0;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            f->files++;
            snprintf(f->file, sizeof(f->file), "%s/%s", f->path, entry->d_name);
        }
    closedir(directory);
}

static void folder_drop(folder *f)
{
    for (folder_look(f); f->files > 0; folder_look(f))
        assert_int_equal(unlink(f->file), 0);
    assert_int_equal(rmdir(f->path), 0);
}

/* A run with the cache on; returns how many bytes of cache the driver was given. */
static uint64_t run(const char *path, bool software_too)
{
    uint64_t given;
    rig r;

    shim_reset();
    rig_open_with(&r, &(gpu_device_params){.pipeline_cache_dir = path, .cache_software_pipelines = software_too},
                  false);
    check_ok(rig_exercise(r.device, 64, err));
    given = shim_event(shim_find("vkCreatePipelineCache", 0, 0))->value[0];
    rig_close(&r);
    return given;
}

static void written_and_read(void **state)
{
    folder f;

    (void)state;
    folder_make(&f);
    assert_int_equal(run(f.path, true), 0);
    folder_look(&f);
    assert_int_equal(f.files, 1);
    assert_true(run(f.path, true) >= 32); /* Vulkan's own header at least */
    folder_look(&f);
    assert_int_equal(f.files, 1);
    folder_drop(&f);
}

static void not_for_software_devices(void **state)
{
    folder f;

    (void)state;
    folder_make(&f);
    assert_int_equal(run(f.path, false), 0);
    folder_look(&f);
    assert_int_equal(f.files, 0);
    folder_drop(&f);
}

static void damage(const char *path, long offset, char value)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fputc(value, file), value);
    assert_int_equal(fclose(file), 0);
}

static void corrupt_file_is_ignored(void **state)
{
    static const long offsets[] = {0, 8, 40, -1};
    folder f;

    (void)state;
    folder_make(&f);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        run(f.path, true);
        folder_look(&f);
        damage(f.file, offsets[i], 0x55);
        assert_int_equal(run(f.path, true), 0);
        assert_true(run(f.path, true) >= 32); /* and replaced by a good one */
    }
    assert_int_equal(truncate(f.file, 20), 0);
    assert_int_equal(run(f.path, true), 0);
    folder_drop(&f);
}

/* A folder that cannot be made costs a warning, not the call. */
static void unwritable_folder(void **state)
{
    (void)state;
    assert_int_equal(run("/proc/nowhere/vkattn", true), 0);
}

static void folder_is_made(void **state)
{
    char deep[128];
    folder f;

    (void)state;
    folder_make(&f);
    snprintf(deep, sizeof(deep), "%s/a", f.path);
    run(deep, true);
    assert_true(run(deep, true) >= 32);
    {
        folder inner = {0};

        snprintf(inner.path, sizeof(inner.path), "%.50s/a", f.path);
        folder_drop(&inner);
    }
    folder_drop(&f);
}

const struct CMUnitTest cache_tests[] = {
    cmocka_unit_test(written_and_read),        cmocka_unit_test(not_for_software_devices),
    cmocka_unit_test(corrupt_file_is_ignored), cmocka_unit_test(unwritable_folder),
    cmocka_unit_test(folder_is_made),
};
const size_t cache_test_count = sizeof(cache_tests) / sizeof(cache_tests[0]);
