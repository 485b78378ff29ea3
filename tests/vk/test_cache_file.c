/* The container of pipeline cache files, and where they go. */
#include <stdlib.h>
#include <string.h>

#include "support/require.h"
#include "vk/cache_file.h"
#include "vk/gpu.h"

static const char key[] = "driver 3 device abc spirv 0123";
static const char data[] = "compiled code";

static size_t make_file(unsigned char *file)
{
    gpu_cache_header header = gpu_cache_file_header(key, data, sizeof(data));

    memcpy(file, &header, sizeof(header));
    memcpy(file + sizeof(header), key, strlen(key));
    memcpy(file + sizeof(header) + strlen(key), data, sizeof(data));
    return sizeof(header) + strlen(key) + sizeof(data);
}

static void whole_file(void **state)
{
    unsigned char file[256];
    size_t size = make_file(file);
    const void *found = NULL;
    size_t bytes = 0;

    (void)state;
    assert_true(gpu_cache_file_read(file, size, key, &found, &bytes));
    assert_int_equal(bytes, sizeof(data));
    assert_memory_equal(found, data, bytes);
}

static void truncated_or_longer(void **state)
{
    unsigned char file[256] = {0};
    size_t size = make_file(file);
    const void *found = NULL;
    size_t bytes = 0;

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_false(gpu_cache_file_read(file, cut, key, &found, &bytes));
    assert_false(gpu_cache_file_read(file, size + 1, key, &found, &bytes));
    assert_false(gpu_cache_file_read(NULL, 0, key, &found, &bytes));
    assert_null(found);
}

static void every_flipped_bit(void **state)
{
    unsigned char file[256];
    size_t size = make_file(file);
    const void *found = NULL;
    size_t bytes = 0;

    (void)state;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_false(gpu_cache_file_read(file, size, key, &found, &bytes));
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(gpu_cache_file_read(file, size, key, &found, &bytes));
}

static void foreign_key(void **state)
{
    static const char *const others[] = {"", "driver 3 device abc spirv 0124", "driver 3",
                                         "driver 3 device abc spirv 01234"};
    unsigned char file[256];
    size_t size = make_file(file);
    const void *found = NULL;
    size_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(gpu_cache_file_read(file, size, others[i], &found, &bytes));
}

static void folder(void **state)
{
    vka_context_params params = {.struct_size = sizeof(params)};
    char path[64];
    char tiny[8];

    (void)state;
    setenv("HOME", "/home/me", 1);
    setenv("XDG_CACHE_HOME", "/var/x", 1);
    assert_true(gpu_pipeline_cache_dir(&params, path, sizeof(path)));
    assert_string_equal(path, "/var/x/vkattn");
    unsetenv("XDG_CACHE_HOME");
    assert_true(gpu_pipeline_cache_dir(&params, path, sizeof(path)));
    assert_string_equal(path, "/home/me/.cache/vkattn");
    assert_false(gpu_pipeline_cache_dir(&params, tiny, sizeof(tiny)));
    unsetenv("HOME");
    assert_false(gpu_pipeline_cache_dir(&params, path, sizeof(path)));
    params.pipeline_cache_dir = "/mine";
    assert_true(gpu_pipeline_cache_dir(&params, path, sizeof(path)));
    assert_string_equal(path, "/mine");
    params.no_pipeline_cache = 1;
    assert_false(gpu_pipeline_cache_dir(&params, path, sizeof(path)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_file),  cmocka_unit_test(truncated_or_longer), cmocka_unit_test(every_flipped_bit),
        cmocka_unit_test(foreign_key), cmocka_unit_test(folder),
    };

    return cmocka_run_group_tests_name("cache_file", tests, NULL, NULL);
}
