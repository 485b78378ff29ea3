/* Host allocation: overflow, zeroing, and what the callback is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/test_base.h"

typedef struct counter {
    size_t live;
    size_t frees;
    size_t last_size;
    int fail;
} counter;

static void *counting_realloc(void *user, void *pointer, size_t size)
{
    counter *count = user;

    count->last_size = size;
    if (size == 0) {
        free(pointer);
        count->live--;
        count->frees++;
        return NULL;
    }
    if (count->fail)
        return NULL;
    count->live += pointer == NULL;
    pointer = realloc(pointer, size);
    if (pointer)
        memset(pointer, 0xAB, size);
    return pointer;
}

static void overflow_is_refused(void **state)
{
    counter count = {0};
    vka_allocator allocator = {counting_realloc, &count};
    char *block;

    (void)state;
    assert_null(vka_alloc(NULL, SIZE_MAX / 2, 3));
    assert_null(vka_alloc(&allocator, SIZE_MAX, 2));
    assert_int_equal(count.last_size, 0);
    block = vka_alloc(&allocator, 8, 1);
    assert_non_null(block);
    assert_null(vka_realloc(&allocator, block, SIZE_MAX / 4, 8));
    assert_int_equal(block[7], 0); /* the old block is still there */
    vka_free(&allocator, block);
    assert_int_equal(count.live, 0);
}

static void blocks_are_zeroed(void **state)
{
    counter count = {0};
    vka_allocator allocator = {counting_realloc, &count};
    const vka_allocator *allocators[] = {NULL, &allocator, &(vka_allocator){0}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        unsigned char *block = vka_alloc(allocators[i], 100, 3);

        assert_non_null(block);
        for (size_t j = 0; j < 300; j++)
            assert_int_equal(block[j], 0);
        vka_free(allocators[i], block);
    }
    assert_int_equal(count.frees, 1);
}

static void zero_bytes_are_a_block(void **state)
{
    counter count = {0};
    vka_allocator allocator = {counting_realloc, &count};
    void *block = vka_alloc(&allocator, 0, 16);

    (void)state;
    assert_non_null(block);
    assert_int_equal(count.last_size, 1);
    block = vka_realloc(&allocator, block, 0, 4); /* must not be taken for "free" */
    assert_non_null(block);
    assert_int_equal(count.frees, 0);
    vka_free(&allocator, block);
    vka_free(&allocator, NULL);
    assert_int_equal(count.frees, 1);
    assert_int_equal(count.live, 0);
}

static void exhaustion_is_null(void **state)
{
    counter count = {.fail = 1};
    vka_allocator allocator = {counting_realloc, &count};

    (void)state;
    assert_null(vka_alloc(&allocator, 4, 4));
    assert_int_equal(count.last_size, 16);
}

int run_alloc_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(blocks_are_zeroed),
        cmocka_unit_test(zero_bytes_are_a_block),
        cmocka_unit_test(exhaustion_is_null),
    };

    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
