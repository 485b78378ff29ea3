/* Layers on the device under test as it is and as lesser devices, until every row of the table that it can run was what
 * the ordinary selection gave. A set of capabilities that brings no new row is passed over. */
#include <string.h>

#include "exec/context.h"
#include "layer/attention_scene.h"
#include "layer/script.h"

static const char *const pretended[] = {
    NULL, "no=subgroup8", "no=texel", "floor", "max_range=1MiB", "max_range=1MiB,no=subgroup8",
};

enum { SETS = sizeof(pretended) / sizeof(pretended[0]), MOST_ROWS = 256 };

typedef struct reach {
    bool runs[MOST_ROWS];     /* under some set */
    bool selected[MOST_ROWS]; /* under a set that layers ran under */
} reach;

static bool measures_a_peak(const vka_variant *row)
{
    return row->kernel == VKA_KERNEL_PEAK_FMA || row->kernel == VKA_KERNEL_PEAK_READ ||
           row->kernel == VKA_KERNEL_PEAK_COPY;
}

/* Whether selection under `caps` gives a row that none has given yet. */
static bool note_rows(reach *seen, const vka_caps *caps)
{
    bool fresh = false;

    assert_true(vka_variant_rows() <= MOST_ROWS);
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        char reason[256];
        if (measures_a_peak(row) || !vka_variant_runs(row, row->kernel, row->dtype, caps))
            continue;
        seen->runs[i] = true;
        if (!seen->selected[i] && vka_variant_reason(i, caps, NULL, reason, sizeof(reason)))
            fresh = seen->selected[i] = true;
    }
    return fresh;
}

/* All types of weights and of the cache, few rows and many, prefill and decoding; and packing into both types. */
static void run_layers(vka_context *context)
{
    static const int layers[] = {SCRIPT_ONE_DEVICE, SCRIPT_ONE_KV_HEAD, SCRIPT_QK_NORM};
    static const attention_case steps[] = {
        {"F32", {1, 4, 2, 8, 8, 9, 40}, .causal = VKA_CAUSAL_BOTTOM_RIGHT, .cache = VKA_F32},
        {"F16", {1, 4, 2, 8, 8, 1, 40}, .cache = VKA_F16},
    };

    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        run_case(context, &script_cases[layers[i]]);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        attention_scene scene;
        attention_open(&scene, context, &steps[i]);
        attention_check(&scene, 0);
        attention_close(&scene);
    }
}

static void run_under(reach *seen, const char *pretend)
{
    vka_context_params params = harness_params();
    vka_context *context = NULL;
    vka_error error;

    params.devices = harness_grammar();
    params.pretend = pretend;
    require(vka_context_create(&context, &params, &error) == VKA_OK, "%s", error.message);
    if (note_rows(seen, gpu_device_caps(context->devices[0].gpu)))
        run_layers(context);
    vka_context_destroy(&context);
}

static void every_row_is_selected_and_right(void **state)
{
    static reach seen;
    uint32_t missed = 0;

    (void)state;
    for (int i = 0; i < SETS; i++)
        run_under(&seen, pretended[i]);
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        if (seen.runs[i] && !seen.selected[i]) {
            print_error("%s can run here, but no pretended device selects it\n", vka_variant_row(i)->name);
            missed++;
        }
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_selected_and_right),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    harness_close();
    return failed;
}
