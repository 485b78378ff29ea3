/* The error record, the log, and the small tables of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/test_base.h"
#include "vkattn/tensor.h"
#include "vkattn/version.h"

static void record_is_filled(void **state)
{
    vka_error error;

    (void)state;
    memset(&error, 0x5A, sizeof(error));
    assert_int_equal(vka_fail(&error, VKA_ERR_LIMIT, "tensor %s has %d rows", "q", 7), VKA_ERR_LIMIT);
    assert_int_equal(error.status, VKA_ERR_LIMIT);
    assert_int_equal(error.vk_result, 0);
    assert_int_equal(error.device, -1);
    assert_int_equal(error.rank, -1);
    assert_string_equal(error.where, "record_is_filled");
    assert_string_equal(error.message, "tensor q has 7 rows");
    assert_int_equal(vka_fail(NULL, VKA_ERR_IO, "nobody asks"), VKA_ERR_IO);
}

static void vulkan_results_are_mapped(void **state)
{
    static const struct {
        int32_t result;
        vka_status status;
        const char *tail;
    } rows[] = {
        {-1, VKA_ERR_HOST_MEMORY, "(VK_ERROR_OUT_OF_HOST_MEMORY)"},
        {-2, VKA_ERR_DEVICE_MEMORY, "(VK_ERROR_OUT_OF_DEVICE_MEMORY)"},
        {-4, VKA_ERR_DEVICE_LOST, "(VK_ERROR_DEVICE_LOST)"},
        {-7, VKA_ERR_VULKAN, "(VK_ERROR_EXTENSION_NOT_PRESENT)"},
        {-13, VKA_ERR_VULKAN, "(VkResult -13)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        vka_error error;

        assert_int_equal(vka_fail_vk(&error, rows[i].result, 1, "vkQueueSubmit of step %d", 3), rows[i].status);
        assert_int_equal(error.status, rows[i].status);
        assert_int_equal(error.vk_result, rows[i].result);
        assert_int_equal(error.device, 1);
        assert_memory_equal(error.message, "vkQueueSubmit of step 3 (", 25);
        assert_non_null(strstr(error.message, rows[i].tail));
        assert_int_equal(vka_fail_vk(NULL, rows[i].result, 0, "x"), rows[i].status);
    }
}

/* A message that does not fit ends at a whole UTF-8 sequence, wherever the cut falls. */
static void long_messages_stay_utf8(void **state)
{
    static const char *const letters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\x8D"};
    char text[sizeof(((vka_error *)0)->message) + 64];
    vka_error error;

    (void)state;
    for (size_t width = 1; width <= 4; width++) {
        for (size_t lead = 0; lead < 4; lead++) {
            size_t length = lead;

            memset(text, '.', lead);
            for (; length + width < sizeof(text); length += width)
                memcpy(text + length, letters[width - 1], width);
            text[length] = '\0';
            vka_fail(&error, VKA_ERR_IO, "%s", text);
            length = strlen(error.message);
            assert_int_equal((length - lead) % width, 0);
            assert_in_range(length, sizeof(error.message) - width, sizeof(error.message) - 1);
            assert_memory_equal(error.message, text, length);
        }
    }
}

static void names_are_known(void **state)
{
    (void)state;
    assert_string_equal(vka_status_text(VKA_OK), "ok");
    assert_string_equal(vka_status_text(VKA_ERR_LAYOUT), "layout refused");
    assert_string_equal(vka_status_text(VKA_ERR_VULKAN), "Vulkan call failed");
    assert_string_equal(vka_status_text((vka_status)99), "unknown status");
    assert_int_equal(vka_dtype_size(VKA_F32), 4);
    assert_int_equal(vka_dtype_size(VKA_F16), 2);
    assert_int_equal(vka_dtype_size(VKA_BF16), 2);
    assert_int_equal(vka_dtype_size(VKA_DTYPE_DEFAULT), 0);
    assert_int_equal(vka_dtype_size((vka_dtype)77), 0);
    assert_string_equal(vka_dtype_name(VKA_F32), "F32");
    assert_string_equal(vka_dtype_name(VKA_F16), "F16");
    assert_string_equal(vka_dtype_name(VKA_BF16), "BF16");
    assert_string_equal(vka_dtype_name(VKA_DTYPE_DEFAULT), "default");
    assert_string_equal(vka_dtype_name((vka_dtype)77), "unknown");
    assert_string_equal(vka_version(), VKA_VERSION_STRING);
}

typedef struct heard {
    int calls;
    int level;
    char message[32];
} heard;

static void hear(void *user, int level, const char *message)
{
    heard *what = user;

    what->calls++;
    what->level = level;
    strncpy(what->message, message, sizeof(what->message) - 1);
}

static void log_reaches_the_callback(void **state)
{
    heard what = {0};
    vka_log log = {hear, &what};
    vka_log silent = {0};

    (void)state;
    vka_log_print(&log, VKA_LOG_WARNING, "cache of %d bytes ignored", 12);
    vka_log_print(&silent, VKA_LOG_ERROR, "unheard");
    vka_log_print(NULL, VKA_LOG_ERROR, "unheard");
    assert_int_equal(what.calls, 1);
    assert_int_equal(what.level, VKA_LOG_WARNING);
    assert_string_equal(what.message, "cache of 12 bytes ignored");
}

static void clock_never_goes_back(void **state)
{
    double last = vka_clock_ms();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        double now = vka_clock_ms();

        assert_true(now >= last);
        last = now;
    }
}

int run_error_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_is_filled),         cmocka_unit_test(vulkan_results_are_mapped),
        cmocka_unit_test(long_messages_stay_utf8),  cmocka_unit_test(names_are_known),
        cmocka_unit_test(log_reaches_the_callback), cmocka_unit_test(clock_never_goes_back),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
