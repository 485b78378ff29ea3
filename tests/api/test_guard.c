/* Parameter structs of every age, and one thread at a time. */
#include "api/guard.h"

#include <string.h>

#include "support/require.h"

/* A struct as the library knows it, and as a newer header has it. */
typedef struct known_params {
    uint32_t struct_size;
    uint32_t first;
    uint64_t second;
} known_params;

typedef struct newer_params {
    known_params known;
    uint64_t third;
    uint64_t fourth;
} newer_params;

static vka_status take(known_params *out, const void *params, vka_error *error)
{
    return guard_params(out, sizeof(*out), params, "known_params", error);
}

static void the_same_version(void **state)
{
    const known_params given = {sizeof(given), 1, 2};
    known_params taken;

    (void)state;
    assert_int_equal(take(&taken, &given, NULL), VKA_OK);
    assert_memory_equal(&taken, &given, sizeof(given));
}

/* Fields that an older header lacks are zero, whatever lies behind the caller's struct. */
static void an_older_version(void **state)
{
    const known_params given = {8, 1, 0x1234567890abcdef};
    known_params taken;

    (void)state;
    memset(&taken, 0xff, sizeof(taken));
    assert_int_equal(take(&taken, &given, NULL), VKA_OK);
    assert_int_equal(taken.struct_size, sizeof(taken));
    assert_int_equal(taken.first, 1);
    assert_int_equal(taken.second, 0);
}

/* A newer header works as long as its new fields ask for nothing. */
static void a_newer_version(void **state)
{
    newer_params given = {.known = {sizeof(given), 1, 2}};
    known_params taken = {.first = 77};
    vka_error error = {0};

    (void)state;
    assert_int_equal(take(&taken, &given, &error), VKA_OK);
    assert_int_equal(taken.struct_size, sizeof(taken));
    assert_int_equal(taken.second, 2);
    given.fourth = 1ull << 63; /* the last byte */
    taken = (known_params){.first = 77};
    assert_int_equal(take(&taken, &given, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "known_params has 32 bytes and sets fields that this library (16 bytes)"));
    assert_int_equal(taken.first, 77);
    given.fourth = 0;
    given.third = 1; /* the first byte */
    assert_int_equal(take(&taken, &given, &error), VKA_ERR_ARGUMENT);
}

static void no_size(void **state)
{
    known_params given = {0}, taken = {.first = 77};
    vka_error error = {0};

    (void)state;
    for (given.struct_size = 0; given.struct_size < 4; given.struct_size++) {
        assert_int_equal(take(&taken, &given, &error), VKA_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "set it to sizeof(known_params)"));
    }
    assert_int_equal(take(&taken, NULL, &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "known_params is NULL"));
    assert_int_equal(taken.first, 77);
    assert_int_equal(take(&taken, NULL, NULL), VKA_ERR_ARGUMENT);
}

static void one_at_a_time(void **state)
{
    vka_context context = {0};
    vka_error error = {0};

    (void)state;
    atomic_flag_clear(&context.busy);
    assert_int_equal(guard_enter(&context, &error), VKA_OK);
    assert_int_equal(guard_enter(&context, &error), VKA_ERR_BUSY);
    assert_int_equal(error.status, VKA_ERR_BUSY);
    guard_leave(&context);
    assert_int_equal(guard_enter(&context, &error), VKA_OK);
    guard_leave(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_version), cmocka_unit_test(an_older_version), cmocka_unit_test(a_newer_version),
        cmocka_unit_test(no_size),          cmocka_unit_test(one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
