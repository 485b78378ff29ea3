/* The safetensors reader against hostile files, and reader and writer against each other. Every image lies in a block
 * of exactly its size, so that AddressSanitizer sees a read past its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/safetensors.h"

static unsigned char *image(const char *header, size_t data_bytes, size_t *size)
{
    size_t length = strlen(header);
    unsigned char *bytes = malloc(8 + length + data_bytes);

    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        bytes[8 + length + i] = (unsigned char)i;
    *size = 8 + length + data_bytes;
    return bytes;
}

static vka_status parse(const char *header, size_t data_bytes, vka_error *error)
{
    vka_tensor_file *file = NULL;
    size_t size;
    unsigned char *bytes = image(header, data_bytes, &size);
    vka_status status = vka_tensor_file_parse(&file, bytes, size, "x.safetensors", error);

    if (status != VKA_OK)
        assert_null(file);
    vka_tensor_file_close(&file);
    free(bytes);
    return status;
}

static void refused(const char *header, size_t data_bytes, const char *reason)
{
    vka_error error = {0};

    if (parse(header, data_bytes, &error) != VKA_ERR_FORMAT)
        fail_msg("accepted, or refused with another status: %s", header);
    if (!strstr(error.message, reason) || !strstr(error.message, "x.safetensors"))
        fail_msg("'%s' lacks '%s' for %s", error.message, reason, header);
}

static void accepted(const char *header, size_t data_bytes)
{
    vka_error error = {0};

    if (parse(header, data_bytes, &error) != VKA_OK)
        fail_msg("%s: %s", header, error.message);
}

static void what_the_format_allows(void **state)
{
    (void)state;
    accepted("{}", 0);
    accepted("{}      ", 0);
    accepted("{\"__metadata__\":{\"format\":\"pt\",\"\":\"\"}}", 0);
    accepted("{\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4);
    accepted("{\"empty\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}}", 0);
    accepted("{\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[4,6]},"
             "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
             "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
             6);
    accepted("{\"a\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]}}", 16);
    accepted("{\"a\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[0,3]}}", 3);
    accepted("{\"a\":{\"dtype\":\"NEW_TYPE\",\"shape\":[7],\"data_offsets\":[0,3]}}", 3);
    accepted("{\"a\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,2]}}", 2);
}

static void broken_json(void **state)
{
    (void)state;
    refused("", 0, "does not begin with '{'");
    refused(" {}", 0, "does not begin with '{'");
    refused("[]", 0, "does not begin with '{'");
    refused("{", 0, "JSON, line 1");
    refused("{}x", 0, "JSON, line 1");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
            "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
            8, "duplicate");
    refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate");
    refused("{\"\xff\":{}}", 0, "JSON, line 1");
    refused("{\"a\\u0000b\":{}}", 0, "JSON, line 1");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4, "JSON, line 1");
    refused("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "not text");
}

static void broken_entries(void **state)
{
    (void)state;
    refused("{\"a\":1}", 0, "is not an object with a dtype");
    refused("{\"a\":[]}", 0, "is not an object with a dtype");
    refused("{\"a\":{}}", 0, "is not an object with a dtype");
    refused("{\"a\":{\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refused("{\"a\":{\"dtype\":\"ABCDEFGHIJKLMNOP\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refused("{\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refused("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "shape");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "at most 8");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "dimension");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "dimension");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4, "dimension");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "data_offsets");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "data_offsets");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "end before they begin");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "beyond the end");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]}}", 4,
            "beyond the end");
    refused("{\"\x1b[31ma\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "JSON");
    refused("{\"\\u001b[31ma\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "'?[31ma'");
}

static void sizes_and_overflows(void **state)
{
    (void)state;
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "do not fit");
    refused("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "do not fit");
    refused("{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "do not fit");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4, "do not fit");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,0]}}", 0, "do not fit");
    refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[5],\"data_offsets\":[0,2]}}", 2, "do not fit");
    refused("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "do not fit");
    /* 2^32 * 2^32 = 2^64 elements; 2^62 * 4 bytes = 2^64 bytes; 2^61 * 32 bits = 2^66 bits */
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
            "exceeds 64 bits");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, "exceeds 64 bits");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "exceeds 64 bits");
}

static void ranges_must_tile_the_data(void **state)
{
    (void)state;
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
            "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
            12, "'b' overlaps");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
            4, "overlaps");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
            12, "'b' leaves a gap");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "'a' leaves a gap");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "end at byte 4");
    refused("{}", 1, "end at byte 0");
    refused("{\"a\":{\"dtype\":\"NEW_TYPE\",\"shape\":[7],\"data_offsets\":[1,3]}}", 3, "gap");
}

/* 8 bytes of length, then nothing that it promises. */
static void bad_lengths(void **state)
{
    static const struct {
        unsigned char bytes[10];
        size_t size;
        const char *reason;
    } rows[] = {
        {{0}, 0, "too few"},
        {{2, 0, 0, 0, 0, 0, 0}, 7, "too few"},
        {{2, 0, 0, 0, 0, 0, 0, 0, '{'}, 9, "cut short"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "cut short"},
        {{0, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "does not begin"},
        {{0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{', '}'}, 10, "expected at most 100000000"},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'}, 10, "expected at most 100000000"},
        {{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, '{', '}'}, 10, "expected at most 100000000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned char *bytes = malloc(rows[i].size + 1);
        vka_tensor_file *file = NULL;
        vka_error error = {0};

        assert_non_null(bytes);
        memcpy(bytes + 1, rows[i].bytes, rows[i].size);
        assert_int_equal(vka_tensor_file_parse(&file, bytes + 1, rows[i].size, "x", &error), VKA_ERR_FORMAT);
        assert_non_null(strstr(error.message, rows[i].reason));
        assert_null(file);
        free(bytes);
    }
}

static void nesting_is_bounded(void **state)
{
    enum { DEPTH = 100000 };
    char *header = malloc(DEPTH + 16);

    (void)state;
    assert_non_null(header);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', DEPTH);
    header[5 + DEPTH] = '\0';
    refused(header, 0, "depth");
    free(header);
}

static const char sample_header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                    "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                                    "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                    "\"ids\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}";

static void truncation_at_every_byte(void **state)
{
    size_t size;
    unsigned char *whole = image(sample_header, 19, &size);
    vka_tensor_file *file = NULL;

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *bytes = malloc(cut > 0 ? cut : 1);

        assert_non_null(bytes);
        memcpy(bytes, whole, cut);
        assert_int_equal(vka_tensor_file_parse(&file, bytes, cut, "x", NULL), VKA_ERR_FORMAT);
        assert_null(file);
        free(bytes);
    }
    assert_int_equal(vka_tensor_file_parse(&file, whole, size, "x", NULL), VKA_OK);
    vka_tensor_file_close(&file);
    free(whole);
}

static void views(void **state)
{
    size_t size;
    unsigned char *bytes = image(sample_header, 19, &size);
    const unsigned char *data = bytes + size - 19;
    vka_tensor_file *file = NULL;
    const vka_named_tensor *w, *ids;
    vka_tensor matrix = {0};
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_tensor_file_parse(&file, bytes, size, "x", NULL), VKA_OK);
    assert_int_equal(vka_tensor_file_count(file), 3);
    assert_string_equal(vka_tensor_file_at(file, 0)->name, "b");
    assert_string_equal(vka_tensor_file_at(file, 1)->name, "ids");
    assert_string_equal(vka_tensor_file_at(file, 2)->name, "w");
    assert_null(vka_tensor_file_at(file, 3));
    assert_null(vka_tensor_file_find(file, "__metadata__"));
    assert_null(vka_tensor_file_find(file, ""));
    w = vka_tensor_file_find(file, "w");
    assert_ptr_equal(w, vka_tensor_file_at(file, 2));
    assert_int_equal(w->dtype, VKA_BF16);
    assert_int_equal(w->dims, 2);
    assert_int_equal(w->shape[1], 3);
    assert_ptr_equal(w->data, data + 4);
    assert_int_equal(vka_tensor_as_matrix(&matrix, w, "x", NULL), VKA_OK);
    assert_true(matrix.rows == 2 && matrix.cols == 3 && matrix.row_stride == 0 && matrix.data == w->data);
    assert_int_equal(vka_tensor_as_matrix(&matrix, vka_tensor_file_find(file, "b"), "x", NULL), VKA_OK);
    assert_true(matrix.rows == 1 && matrix.cols == 1);
    ids = vka_tensor_file_find(file, "ids");
    assert_int_equal(ids->dtype, VKA_DTYPE_DEFAULT);
    assert_string_equal(vka_tensor_type_name(ids), "U8");
    assert_int_equal(vka_tensor_as_matrix(&matrix, ids, "x", &error), VKA_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "'ids' has the element type U8"));
    vka_tensor_file_close(&file);
    free(bytes);
}

static char folder[] = "/tmp/vkattn-safetensors-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/t.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void written_files_read_back(void **state)
{
    static const uint16_t halves[3] = {0x3c00, 0x4000, 0xc000};
    static const float floats[2][2] = {{1.5f, -2.0f}, {0.0f, 1e30f}};
    const vka_named_tensor tensors[] = {
        {.name = "quote\" \\ \xc3\xa9", .dtype = VKA_F16, .dims = 1, .shape = {3}, .data = halves},
        {.name = "f", .dtype = VKA_F32, .dims = 2, .shape = {2, 2}, .data = floats},
        {.name = "none", .dtype = VKA_BF16, .dims = 2, .shape = {0, 7}},
        {.name = "scalar", .dtype = VKA_F32, .data = &floats[1][1]},
    };
    vka_tensor_file *file = NULL;
    const vka_named_tensor *found;

    (void)state;
    assert_int_equal(vka_tensor_file_write(path, tensors, 4, NULL), VKA_OK);
    assert_int_equal(vka_tensor_file_write(path, tensors, 4, NULL), VKA_OK); /* over an existing file */
    assert_int_equal(vka_tensor_file_open(&file, path, NULL), VKA_OK);
    assert_int_equal(vka_tensor_file_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        found = vka_tensor_file_find(file, tensors[i].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, tensors[i].dtype);
        assert_int_equal(found->dims, tensors[i].dims);
        assert_memory_equal(found->shape, tensors[i].shape, found->dims * sizeof(uint64_t));
        assert_int_equal((uintptr_t)found->data % vka_dtype_size(found->dtype), 0);
    }
    assert_memory_equal(vka_tensor_file_find(file, "f")->data, floats, sizeof(floats));
    assert_memory_equal(vka_tensor_file_find(file, tensors[0].name)->data, halves, sizeof(halves));
    vka_tensor_file_close(&file);
    assert_null(file);
    assert_int_equal(vka_tensor_file_write(path, NULL, 0, NULL), VKA_OK);
    assert_int_equal(vka_tensor_file_open(&file, path, NULL), VKA_OK);
    assert_int_equal(vka_tensor_file_count(file), 0);
    vka_tensor_file_close(&file);
}

static void not_written(const vka_named_tensor *tensors, size_t count, const char *reason)
{
    vka_error error = {0};

    assert_int_equal(vka_tensor_file_write(path, tensors, count, &error), VKA_ERR_ARGUMENT);
    if (!strstr(error.message, reason))
        fail_msg("'%s' lacks '%s'", error.message, reason);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void bad_tensors_are_not_written(void **state)
{
    static const float one = 1.0f;
    const vka_named_tensor good = {.name = "a", .dtype = VKA_F32, .dims = 1, .shape = {1}, .data = &one};
    vka_named_tensor bad[2] = {good, good};

    (void)state;
    unlink(path);
    not_written(bad, 2, "'a' is given twice");
    bad[0].name = NULL;
    not_written(bad, 1, "name");
    bad[0].name = "__metadata__";
    not_written(bad, 1, "reserved");
    bad[0].name = "\xff";
    not_written(bad, 1, "UTF-8");
    bad[0] = good;
    bad[0].dtype = VKA_DTYPE_DEFAULT;
    not_written(bad, 1, "element type");
    bad[0] = good;
    bad[0].dims = 9;
    not_written(bad, 1, "dimensions");
    bad[0] = good;
    bad[0].data = NULL;
    not_written(bad, 1, "no data");
    bad[0] = good;
    bad[0].dims = 2;
    bad[0].shape[0] = bad[0].shape[1] = 1ull << 32;
    not_written(bad, 1, "63 bits");
    not_written(NULL, 1, "NULL");
    assert_int_equal(vka_tensor_file_write(NULL, &good, 1, NULL), VKA_ERR_ARGUMENT);
}

static void files_that_cannot_be_opened(void **state)
{
    vka_tensor_file *file = NULL;
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_tensor_file_open(&file, "/nonexistent/x.safetensors", &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "/nonexistent/x.safetensors"));
    assert_int_equal(vka_tensor_file_open(&file, folder, NULL), VKA_ERR_IO);
    assert_int_equal(vka_tensor_file_open(&file, "/dev/null", NULL), VKA_ERR_IO);
    assert_int_equal(vka_tensor_file_open(NULL, path, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_tensor_file_open(&file, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_null(file);
    assert_int_equal(vka_tensor_file_count(NULL), 0);
    assert_null(vka_tensor_file_find(NULL, "a"));
    vka_tensor_file_close(&file);
    vka_tensor_file_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_format_allows),
        cmocka_unit_test(broken_json),
        cmocka_unit_test(broken_entries),
        cmocka_unit_test(sizes_and_overflows),
        cmocka_unit_test(ranges_must_tile_the_data),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(views),
        cmocka_unit_test(written_files_read_back),
        cmocka_unit_test(bad_tensors_are_not_written),
        cmocka_unit_test(files_that_cannot_be_opened),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
