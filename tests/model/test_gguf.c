/* The GGUF reader against hostile files. Every image lies in a block of exactly its size, so that AddressSanitizer sees
 * a read past its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/gguf.h"
#include "model/gguf_image.h"

static vka_status parse(const gguf_image *g, vka_error *error)
{
    vka_gguf *file = NULL;
    unsigned char *bytes = malloc(g->size > 0 ? g->size : 1);
    vka_status status;

    assert_non_null(bytes);
    memcpy(bytes, g->bytes, g->size);
    status = vka_gguf_parse(&file, bytes, g->size, "x.gguf", error);
    assert_true((status == VKA_OK) == (file != NULL));
    vka_gguf_close(&file);
    free(bytes);
    return status;
}

static void refused(const gguf_image *g, const char *reason)
{
    vka_error error = {0};
    vka_status status = parse(g, &error);

    if (status != VKA_ERR_FORMAT && status != VKA_ERR_UNSUPPORTED)
        fail_msg("accepted, or refused with another status, where '%s' was expected", reason);
    if (!strstr(error.message, reason) || !strstr(error.message, "x.gguf"))
        fail_msg("'%s' lacks '%s'", error.message, reason);
}

static void accepted(const gguf_image *g)
{
    vka_error error = {0};

    if (parse(g, &error) != VKA_OK)
        fail_msg("%s", error.message);
}

static void put_array(gguf_image *g, const char *key, uint32_t kind, uint64_t count)
{
    put_text(g, key);
    put_u32(g, 9);
    put_u32(g, kind);
    put_u64(g, count);
}

/* One of each kind of value, three tensors. */
static void put_sample(gguf_image *g, uint32_t version)
{
    put_header(g, version, 3, 6);
    put_key_text(g, "general.architecture", "llama");
    put_key_u32(g, "llama.block_count", 3);
    put_array(g, "heads", 5, 3);
    for (uint32_t i = 0; i < 3; i++)
        put_u32(g, 4 + i);
    put_array(g, "tokens", 8, 2);
    put_text(g, "a");
    put_text(g, "");
    put_key_f32(g, "base", 1.5f);
    put_text(g, "flag");
    put_u32(g, 7);
    put(g, "\1", 1);
    put_tensor(g, "w", 32, 2, 8, 0);     /* Q8_0: 2 * 34 bytes, padded to 96 */
    put_tensor(g, "v", 5, 0, 0, 96);     /* F32: 20 bytes, padded to 32 */
    put_tensor(g, "odd", 7, 0, 99, 128); /* a type of the future */
    pad(g, 32);
    put_zeros(g, 128);
}

static void what_the_format_allows(void **state)
{
    gguf_image g;

    (void)state;
    put_header(&g, 3, 0, 0);
    accepted(&g);
    put_sample(&g, 2);
    accepted(&g);
    put_sample(&g, 3);
    accepted(&g);
    put_header(&g, 3, 1, 1);
    put_key_u32(&g, "general.alignment", 8);
    put_tensor(&g, "none", 0, 4, 12, 0);
    accepted(&g);
}

static void typed_reads(void **state)
{
    gguf_image g;
    vka_gguf *file = NULL;
    uint32_t count = 7;
    double number = 0;
    bool flag = false;
    const char *text = NULL;
    size_t length = 0;
    vka_error error = {0};

    (void)state;
    put_sample(&g, 3);
    assert_int_equal(vka_gguf_parse(&file, g.bytes, g.size, "x.gguf", NULL), VKA_OK);
    assert_int_equal(vka_gguf_count(file, "absent", 0, 0, 9, &count, NULL), VKA_OK);
    assert_int_equal(count, 7);
    assert_int_equal(vka_gguf_count(file, "llama.block_count", 5, 0, 9, &count, NULL), VKA_OK);
    assert_int_equal(count, 3);
    assert_int_equal(vka_gguf_count(file, "heads", 2, 0, 9, &count, NULL), VKA_OK);
    assert_int_equal(count, 6);
    assert_int_equal(vka_gguf_count(file, "heads", 3, 0, 9, &count, &error), VKA_ERR_FORMAT);
    assert_non_null(strstr(error.message, "heads is an array of 3 elements"));
    assert_int_equal(vka_gguf_count(file, "heads", 2, 0, 5, &count, &error), VKA_ERR_FORMAT);
    assert_non_null(strstr(error.message, "heads is 6, expected an integer 0 .. 5"));
    assert_int_equal(vka_gguf_count(file, "base", 0, 0, 5, &count, &error), VKA_ERR_FORMAT);
    assert_non_null(strstr(error.message, "base is 1.5"));
    assert_int_equal(vka_gguf_number(file, "base", &number, NULL), VKA_OK);
    assert_true(number == 1.5);
    assert_int_equal(vka_gguf_number(file, "llama.block_count", &number, NULL), VKA_OK);
    assert_true(number == 3);
    assert_int_equal(vka_gguf_number(file, "heads", &number, NULL), VKA_ERR_FORMAT);
    assert_int_equal(vka_gguf_number(file, "flag", &number, &error), VKA_ERR_FORMAT);
    assert_non_null(strstr(error.message, "flag is true or false"));
    assert_int_equal(vka_gguf_flag(file, "flag", 0, &flag, NULL), VKA_OK);
    assert_true(flag);
    assert_int_equal(vka_gguf_flag(file, "heads", 0, &flag, NULL), VKA_ERR_FORMAT);
    assert_int_equal(vka_gguf_text(file, "general.architecture", &text, &length, NULL), VKA_OK);
    assert_int_equal(length, 5);
    assert_memory_equal(text, "llama", 5);
    assert_int_equal(vka_gguf_text(file, "tokens", &text, &length, NULL), VKA_ERR_FORMAT);
    assert_string_equal(vka_gguf_tensor_at(file, 0)->name, "odd");
    assert_null(vka_gguf_tensor_at(file, 0)->type);
    assert_int_equal(vka_gguf_find_tensor(file, "w")->bytes, 68);
    assert_ptr_equal((const char *)vka_gguf_find_tensor(file, "v")->data -
                         (const char *)vka_gguf_find_tensor(file, "w")->data,
                     (const char *)96);
    assert_null(vka_gguf_tensor_at(file, 3));
    assert_null(vka_gguf_find_tensor(file, "nothing"));
    assert_string_equal(vka_gguf_value_at(file, 0)->key, "base");
    assert_null(vka_gguf_value_at(file, 6));
    vka_gguf_close(&file);
}

static void broken_headers(void **state)
{
    gguf_image g = {{0}, 0};

    (void)state;
    refused(&g, "the magic number");
    put(&g, "GGUX\3\0\0\0", 8);
    refused(&g, "does not begin with 'GGUF'");
    put_header(&g, 1, 0, 0);
    refused(&g, "version 1");
    put_header(&g, 4, 0, 0);
    refused(&g, "version 4");
    put_header(&g, 0x03000000, 0, 0);
    refused(&g, "big-endian");
    put_header(&g, 3, 1, 0);
    refused(&g, "0 values and 1 tensors");
    put_header(&g, 3, 0, UINT64_MAX);
    put_zeros(&g, 100);
    refused(&g, "values");
    put_header(&g, 3, UINT64_MAX, 1);
    put_zeros(&g, 100);
    refused(&g, "tensors");
    put_header(&g, 3, 1ull << 62, 1ull << 62);
    put_zeros(&g, 100);
    refused(&g, "values");
}

/* A header for one value. */
static void one_value(gguf_image *g)
{
    put_header(g, 3, 0, 1);
}

static void broken_values(void **state)
{
    gguf_image g;

    (void)state;
    one_value(&g);
    put_key_u32(&g, "", 1);
    refused(&g, "has 0 letters");
    one_value(&g);
    put_u64(&g, UINT64_MAX);
    put_zeros(&g, 64);
    refused(&g, "a key at byte");
    one_value(&g);
    put_key_u32(&g, "a\x1b[31m", 1);
    refused(&g, "control character 27");
    one_value(&g);
    put_text(&g, "k");
    put_u32(&g, 13);
    put_u32(&g, 0);
    refused(&g, "the type of 'k' is 13");
    one_value(&g);
    put_array(&g, "k", 9, 1);
    refused(&g, "the element type of 'k' is 9");
    one_value(&g);
    put_array(&g, "k", 4, UINT64_MAX / 4 + 2);
    put_u64(&g, 0);
    refused(&g, "is it cut short?");
    one_value(&g);
    put_array(&g, "k", 8, UINT64_MAX);
    put_u64(&g, 0);
    refused(&g, "is it cut short?");
    one_value(&g);
    put_text(&g, "k");
    put_u32(&g, 8);
    put_u64(&g, UINT64_MAX);
    refused(&g, "is it cut short?");
    put_header(&g, 3, 0, 2);
    put_key_u32(&g, "k", 1);
    put_key_u32(&g, "k", 2);
    refused(&g, "'k' is there twice");
}

static void alignments(void **state)
{
    static const uint32_t bad[] = {0, 3, 48, 1u << 21, UINT32_MAX};
    gguf_image g;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        one_value(&g);
        put_key_u32(&g, "general.alignment", bad[i]);
        refused(&g, "general.alignment is");
    }
    one_value(&g);
    put_key_text(&g, "general.alignment", "x");
    refused(&g, "general.alignment is text");
    put_header(&g, 3, 1, 1);
    put_key_u32(&g, "general.alignment", 64);
    put_tensor(&g, "a", 1, 0, 0, 32);
    put_zeros(&g, 256);
    refused(&g, "a multiple of general.alignment");
}

static void one_tensor(const char *name, uint32_t dims, const uint64_t *extent, uint32_t type, uint64_t offset,
                       const char *reason)
{
    gguf_image g;

    put_header(&g, 3, 1, 0);
    put_text(&g, name);
    put_u32(&g, dims);
    for (uint32_t i = 0; i < dims && i < 8; i++)
        put_u64(&g, extent[i]);
    put_u32(&g, type);
    put_u64(&g, offset);
    pad(&g, 32);
    put_zeros(&g, 128);
    if (reason)
        refused(&g, reason);
    else
        accepted(&g);
}

static void broken_tensors(void **state)
{
    static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123";
    const uint64_t small[] = {32, 1, 1, 1, 1, 1, 1, 1}, ragged[] = {33}, wide[] = {33, 1}, larger[] = {1, 33};
    const uint64_t product[] = {1ull << 32, 1ull << 31}, negative[] = {UINT64_MAX}, large[] = {1ull << 61, 2};

    (void)state;
    one_tensor(long_name, 1, small, 0, 0, "has 64 letters");
    one_tensor(long_name + 1, 1, small, 0, 0, NULL);
    one_tensor("a", 0, small, 0, 0, "dimensions 0");
    one_tensor("a", 5, small, 0, 0, "dimensions 5");
    one_tensor("a", UINT32_MAX, small, 0, 0, "dimensions 4294967295");
    one_tensor("a", 4, small, 0, 0, NULL);
    one_tensor("a", 1, ragged, 8, 0, "rows of 33");
    one_tensor("a", 1, small, 12, 0, "rows of 32");
    one_tensor("a", 2, wide, 0, 0, "cut short");
    one_tensor("a", 2, larger, 0, 0, "cut short");
    one_tensor("a", 2, product, 0, 0, "63 bits");
    one_tensor("a", 1, negative, 0, 0, "63 bits");
    one_tensor("a", 2, large, 0, 0, "63 bits");
    one_tensor("a", 1, small, 0, 32, "no gap");
    one_tensor("a", 1, small, 0, 1, "a multiple of general.alignment");
    one_tensor("a", 1, small, 0, UINT64_MAX - 31, "gap");
    one_tensor("a", 1, small, 99, UINT64_MAX - 31, "gap");
}

static void places(void **state)
{
    gguf_image g;

    (void)state;
    put_header(&g, 3, 2, 0);
    put_tensor(&g, "a", 16, 0, 0, 0);
    put_tensor(&g, "b", 16, 0, 0, 32);
    put_zeros(&g, 256);
    refused(&g, "'b' has the offset 32, expected no overlap");
    put_header(&g, 3, 2, 0);
    put_tensor(&g, "a", 16, 0, 0, 0);
    put_tensor(&g, "a", 16, 0, 0, 64);
    put_zeros(&g, 256);
    refused(&g, "'a' is there twice");
    put_header(&g, 3, 2, 0);
    put_tensor(&g, "b", 16, 0, 0, 64); /* any order */
    put_tensor(&g, "a", 16, 0, 0, 0);
    put_zeros(&g, 256);
    accepted(&g);
    put_header(&g, 3, 2, 0);
    put_tensor(&g, "a", 16, 0, 0, 0);
    put_tensor(&g, "b", 16, 0, 0, 96);
    put_zeros(&g, 256);
    refused(&g, "no gap");
    put_header(&g, 3, 2, 0);
    put_tensor(&g, "a", 16, 0, 99, 0); /* where a type of the future ends is not known */
    put_tensor(&g, "b", 16, 0, 0, 96);
    put_zeros(&g, 256);
    accepted(&g);
}

static void truncation_at_every_byte(void **state)
{
    gguf_image g;
    size_t size;

    (void)state;
    put_sample(&g, 3);
    size = g.size - 12; /* padding of the last tensor, of 20 bytes, may be missing; the odd one has no known size */
    for (g.size = 0; g.size < size; g.size++)
        assert_int_not_equal(parse(&g, NULL), VKA_OK);
}

static void files_that_cannot_be_opened(void **state)
{
    vka_gguf *file = NULL;
    vka_error error = {0};

    (void)state;
    assert_int_equal(vka_gguf_open(&file, "/nonexistent/x.gguf", &error), VKA_ERR_IO);
    assert_non_null(strstr(error.message, "/nonexistent/x.gguf"));
    assert_null(file);
    assert_false(vka_gguf_recognise("/nonexistent/x.gguf"));
    assert_false(vka_gguf_recognise("/"));
    assert_false(vka_gguf_recognise("/dev/null"));
    vka_gguf_close(&file);
    vka_gguf_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_format_allows),
        cmocka_unit_test(typed_reads),
        cmocka_unit_test(broken_headers),
        cmocka_unit_test(broken_values),
        cmocka_unit_test(alignments),
        cmocka_unit_test(broken_tensors),
        cmocka_unit_test(places),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(files_that_cannot_be_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
