/* A folder under /tmp for one checkpoint: cmocka's group fixtures make and remove it, a test's teardown empties it. */
#ifndef VKA_TESTS_SCRATCH_FOLDER_H
#define VKA_TESTS_SCRATCH_FOLDER_H

#include "support/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "vkattn/model.h"

static char folder[] = "/tmp/vkattn-checkpoint-XXXXXX";

static const char *const files[] = {"config.json", "model.safetensors", "model.safetensors.index.json", "a.safetensors",
                                    "b.safetensors"};

enum { FILES = sizeof(files) / sizeof(files[0]) };

static inline void path_of(char path[128], const char *file)
{
    snprintf(path, 128, "%s/%s", folder, file);
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int empty_folder(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        char path[128];

        path_of(path, files[i]);
        unlink(path);
    }
    return 0;
}

static inline int remove_folder(void **state)
{
    empty_folder(state);
    return rmdir(folder);
}

static inline void write_text(const char *file, const char *text)
{
    const vka_piece piece = {.data = text, .size = strlen(text)};
    char path[128];

    path_of(path, file);
    assert_int_equal(vka_write_file(path, &piece, 1, NULL), VKA_OK);
}

static inline void write_tensors(const char *file, const vka_named_tensor *tensors, size_t count)
{
    char path[128];

    path_of(path, file);
    assert_int_equal(vka_tensor_file_write(path, tensors, count, NULL), VKA_OK);
}

#endif
