/* Files: whole or not at all under their final name, hostile kinds refused, errors that name the path. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/test_base.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[160];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/vka_files_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"a/b/c", "a/b", "a", "file", "empty", "fifo", "plain"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        remove(in_folder(names[i]));
    return rmdir(folder); /* fails when a temporary file was left behind */
}

static int entries_of_folder(void)
{
    DIR *directory = opendir(folder);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2; /* "." and ".." */
}

static void assert_file_holds(const char *path, const char *text)
{
    vka_mapping mapping = {0};
    vka_error error;

    assert_int_equal(vka_map_file(&mapping, path, &error), VKA_OK);
    assert_int_equal(mapping.size, strlen(text));
    assert_memory_equal(mapping.data, text, mapping.size);
    vka_unmap_file(&mapping);
    assert_null(mapping.data);
}

static void writing_replaces_the_whole_file(void **state)
{
    const vka_piece first[] = {{"hello ", 6}, {NULL, 0}, {"world", 5}};
    const vka_piece second[] = {{"x", 1}};
    vka_error error;

    (void)state;
    assert_int_equal(vka_write_file(in_folder("file"), first, 3, &error), VKA_OK);
    assert_file_holds(in_folder("file"), "hello world");
    assert_int_equal(vka_write_file(in_folder("file"), second, 1, &error), VKA_OK);
    assert_file_holds(in_folder("file"), "x");
    assert_int_equal(entries_of_folder(), 1);
}

static void a_failed_write_leaves_nothing(void **state)
{
    const vka_piece piece = {"data", 4};
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_make_directories(in_folder("a/b"), NULL), VKA_OK);
    /* renaming a file over a folder that is not empty fails after the temporary file was written */
    assert_int_equal(vka_write_file(in_folder("a"), &piece, 1, &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, in_folder("a")));
    assert_string_equal(error.where, "vka_write_file");
    assert_int_equal(entries_of_folder(), 2); /* "a" and "file" of the test before */
    assert_int_equal(vka_write_file(in_folder("missing/x"), &piece, 1, &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "missing/x"));
}

static void an_empty_file_maps_to_null(void **state)
{
    vka_mapping mapping = {.data = &mapping, .size = 9};

    (void)state;
    assert_int_equal(vka_write_file(in_folder("empty"), NULL, 0, NULL), VKA_OK);
    assert_int_equal(vka_map_file(&mapping, in_folder("empty"), NULL), VKA_OK);
    assert_null(mapping.data);
    assert_int_equal(mapping.size, 0);
    vka_unmap_file(&mapping);
    vka_unmap_file(NULL);
}

static void only_regular_files_are_mapped(void **state)
{
    vka_mapping mapping = {.size = 77};
    vka_error error = {0};

    (void)state;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(vka_map_file(&mapping, in_folder("fifo"), &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "not a regular file"));
    assert_int_equal(vka_map_file(&mapping, folder, &error), VKA_ERR_IO);
    assert_int_equal(vka_map_file(&mapping, in_folder("absent"), &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "absent"));
    assert_non_null(strstr(error.message, "No such file"));
    assert_int_equal(mapping.size, 77); /* outputs are set only after success */
}

static void folders_are_made_with_parents(void **state)
{
    const vka_piece piece = {"", 0};
    vka_error error = {0};
    struct stat info;

    (void)state;
    assert_int_equal(vka_make_directories(in_folder("a/b/c"), NULL), VKA_OK);
    assert_true(vka_is_directory(in_folder("a/b/c")));
    assert_int_equal(stat(in_folder("a/b/c"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(vka_make_directories(in_folder("a//b/c/"), NULL), VKA_OK);
    assert_int_equal(vka_write_file(in_folder("plain"), &piece, 1, NULL), VKA_OK);
    assert_false(vka_is_directory(in_folder("plain")));
    assert_int_equal(vka_make_directories(in_folder("plain/x"), &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "plain"));
}

static void an_empty_variable_is_unset(void **state)
{
    (void)state;
    assert_int_equal(setenv("VKA_TEST_VARIABLE", "", 1), 0);
    assert_null(vka_environment("VKA_TEST_VARIABLE"));
    assert_int_equal(setenv("VKA_TEST_VARIABLE", "v", 1), 0);
    assert_string_equal(vka_environment("VKA_TEST_VARIABLE"), "v");
    assert_int_equal(unsetenv("VKA_TEST_VARIABLE"), 0);
    assert_null(vka_environment("VKA_TEST_VARIABLE"));
}

static void removing_twice_is_no_failure(void **state)
{
    static const vka_piece piece = {"x", 1};
    vka_error error;

    (void)state;
    assert_int_equal(vka_write_file(in_folder("plain"), &piece, 1, NULL), VKA_OK);
    assert_int_equal(vka_remove_file(in_folder("plain"), &error), VKA_OK);
    assert_false(vka_is_file(in_folder("plain")));
    assert_int_equal(vka_remove_file(in_folder("plain"), &error), VKA_OK);
    assert_int_equal(vka_remove_file(folder, &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, folder));
}

int run_files_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing_replaces_the_whole_file), cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(an_empty_file_maps_to_null),      cmocka_unit_test(only_regular_files_are_mapped),
        cmocka_unit_test(folders_are_made_with_parents),   cmocka_unit_test(an_empty_variable_is_unset),
        cmocka_unit_test(removing_twice_is_no_failure),
    };

    return cmocka_run_group_tests_name("files", tests, make_folder, remove_folder);
}
