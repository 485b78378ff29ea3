/* Contexts that tune, whose files are in a folder of the test's own; what they run; and a file with choices that nobody
 * would run untuned. Everything here fails the running test when the engine does. */
#ifndef VKA_TESTS_LAYER_TUNE_SCENE_H
#define VKA_TESTS_LAYER_TUNE_SCENE_H

#include "exec/pipelines.h"
#include "layer/harness.h"

enum {
    TUNE_HEADS = 4,
    TUNE_KV_HEADS = 2,
    TUNE_DIM = 16,
    TUNE_HIDDEN = 64,
    TUNE_ROWS = 8,
    TUNE_KEYS = 32,
    TUNE_MAX_RESULTS = 64
};

/* Every texel view fits under this, so that no device is left with one candidate only. */
extern const char *const tune_small_tensors;

/* Setup and teardown of a test: makes the folder; removes it, and fails when anything but the tuning file was left. */
int tune_make_folder(void **state);
int tune_remove_folder(void **state);
#define TUNE_TEST(name) cmocka_unit_test_setup_teardown(name, tune_make_folder, tune_remove_folder)

const char *tune_folder(void); /* of the tuning files; made when one is written */
uint32_t tune_warnings(void);  /* about a tuning file, since the setup */

/* A context on the first promised device. */
vka_context_params tune_context_params(const char *pretend);
vka_context *tune_open_with(const vka_context_params *params);
vka_context *tune_open(const char *pretend);

typedef struct tune_seen {
    vka_tune_result result[TUNE_MAX_RESULTS];
    uint32_t count;
    uint32_t progress, total;
} tune_seen;

vka_tune_params tune_small_shape(tune_seen *all);
tune_seen tune_all(vka_context *context);
/* Each kernel and class has one default and one choice, and was measured unless there was nothing to choose. */
void tune_check_results(const tune_seen *all);
uint32_t tune_count(const vka_context *context); /* choices that it has */

/* What a projection of `rows` rows and attention of `rows` queries run. */
const char *tune_projection_variant(vka_context *context, uint32_t rows);
const char *tune_attention_variant(vka_context *context, uint32_t rows);

/* The row of type F32 that runs untuned, and another that could. */
const vka_variant *tune_standard_row(const vka_context *context, vka_kernel kernel);
const vka_variant *tune_other_row(const vka_context *context, vka_kernel kernel);
/* A context on small tensors that read a file in which every kernel and class of type F32 has another row than the
 * standard one. */
vka_context *tune_open_other_choices(void);

#endif
