/* The checkpoints of tests/data/hf through the real loader: what Hugging Face transformers wrote must be read as what
 * it is. The numbers expected here are those of the table in tests/data/README.md; the elements are those that Python
 * printed into the reference files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "model/hf_rows.h"
#include "model/same_desc.h"
#include "support/require.h"

enum { PROBES = 4, PREFILL = 24, DECODE = 6 };

static void ok(vka_status status, const vka_error *error)
{
    if (status != VKA_OK)
        fail_msg("%s: %s", error->where, error->message);
}

static void path_of(char path[512], const hf_row *row, const char *file)
{
    snprintf(path, 512, "%s/%s%s", VKA_TEST_DATA, row->folder, file);
}

static void open_reference(vka_tensor_file **out, const hf_row *row)
{
    char path[512], file[64];
    vka_error error;

    snprintf(file, sizeof(file), "/reference-%s.safetensors", row->reference);
    path_of(path, row, file);
    ok(vka_tensor_file_open(out, path, &error), &error);
}

static void description_is(const vka_layer_desc *desc, const hf_row *row)
{
    vka_layer_desc want = row->desc;
    vka_error error;

    want.struct_size = sizeof(want);
    ok(vka_layer_desc_resolve(&want, &error), &error);
    if (fabs(want.scale - desc->scale) <= 1e-15) /* one formula written in two ways */
        want.scale = desc->scale;
    if (desc->qk_norm == VKA_QK_NORM_NONE && desc->kv_lora_rank == 0) /* of other norms of the model, if any */
        want.norm_eps = desc->norm_eps;
    require(same_desc(desc, &want), "%s %s: another description than expected", row->folder, row->reference);
}

static void tensors_are(const vka_layer_weights *weights, const hf_row *row)
{
    const vka_tensor *biases[] = {&weights->q_bias, &weights->k_bias, &weights->v_bias, &weights->o_bias};

    assert_int_equal(weights->q.dtype, row->dtype);
    assert_int_equal(weights->o.rows, row->desc.hidden_size);
    for (unsigned i = 0; i < 4; i++)
        require((biases[i]->data != NULL) == ((row->bias >> i & 1) != 0), "%s %s: bias %u", row->folder, row->reference,
                i);
}

static float element(const vka_tensor *tensor, uint64_t row, uint64_t col)
{
    uint64_t stride = tensor->row_stride ? tensor->row_stride : tensor->cols;
    float value;

    assert_true(row < tensor->rows && col < tensor->cols);
    vka_convert(&value, VKA_F32, (const char *)tensor->data + (row * stride + col) * vka_dtype_size(tensor->dtype),
                tensor->dtype, 1);
    return value;
}

/* One element, (row, column, value) in the file. */
static void probe_agrees(vka_layer_weights *weights, const hf_row *row, const char *name, const float line[3])
{
    bool vector = strstr(name, ".bias") != NULL, lying = row->transposed && !vector;
    hf_place place = hf_place_of(row, name, (uint64_t)line[vector || lying ? 1 : 0]);
    const vka_tensor *tensor;

    if (place.weight == HF_NOT_OF_ATTENTION)
        return;
    require(place.weight >= 0, "%s %s: the test does not know the tensor %s", row->folder, row->reference, name);
    tensor = vka_weight_at(weights, place.weight);
    require(tensor->data != NULL, "%s %s: %s is not loaded", row->folder, row->reference, name);
    require(element(tensor, vector ? 0 : place.row, vector ? place.row : (uint64_t)line[lying ? 0 : 1]) == line[2],
            "%s %s: another element in %s", row->folder, row->reference, name);
}

static void probes_agree(vka_layer_weights *weights, const vka_tensor_file *reference, const hf_row *row)
{
    char prefix[128];
    size_t found = 0;

    snprintf(prefix, sizeof(prefix), "probe.%s", row->prefix);
    for (size_t i = 0; i < vka_tensor_file_count(reference); i++) {
        const vka_named_tensor *probe = vka_tensor_file_at(reference, i);
        float lines[PROBES][3];

        if (strncmp(probe->name, prefix, strlen(prefix)) != 0)
            continue;
        assert_true(probe->dtype == VKA_F32 && probe->dims == 2 && probe->shape[0] == PROBES && probe->shape[1] == 3);
        memcpy(lines, probe->data, sizeof(lines));
        for (int p = 0; p < PROBES; p++)
            probe_agrees(weights, row, probe->name + strlen(prefix), lines[p]);
        found++;
    }
    require(found >= 2, "%s %s: %zu tensors with probes", row->folder, row->reference, found);
}

static void layers_are_what_python_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_row_count; i++) {
        const hf_row *row = &hf_rows[i];
        char path[512];
        vka_tensor_file *reference = NULL;
        vka_model *model = NULL;
        vka_model_layer *loaded = NULL;
        vka_layer_weights weights;
        vka_error error;

        path_of(path, row, "");
        ok(vka_model_open(&model, path, &error), &error);
        assert_string_equal(vka_model_get_info(model)->architecture, row->architecture);
        assert_string_equal(vka_model_get_info(model)->model_type, row->model_type);
        ok(vka_model_layer_load(&loaded, model, row->block, row->layer, &error), &error);
        description_is(vka_model_layer_desc(loaded), row);
        weights = *vka_model_layer_weights(loaded);
        tensors_are(&weights, row);
        open_reference(&reference, row);
        probes_agree(&weights, reference, row);
        vka_tensor_file_close(&reference);
        vka_model_layer_free(&loaded);
        vka_model_close(&model);
        assert_null(model);
    }
}

static void configurations_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_row_count; i++) {
        const char *const files[] = {"", "/config.json"};

        for (size_t f = 0; f < 2; f++) {
            char path[512];
            vka_layer_desc desc;
            vka_model_info info;
            vka_error error;

            path_of(path, &hf_rows[i], files[f]);
            ok(vka_model_read_config(path, hf_rows[i].block, hf_rows[i].layer, &desc, &info, &error), &error);
            description_is(&desc, &hf_rows[i]);
            assert_int_equal(info.layers, hf_rows[i].layers);
        }
    }
}

static void states_are(const vka_tensor_file *file, const hf_row *row, const char *name, uint64_t tokens)
{
    const vka_named_tensor *found = vka_tensor_file_find(file, name);

    if (tokens == 0) {
        assert_null(found);
        return;
    }
    require(found && found->dtype == VKA_F32 && found->dims == 2 && found->shape[0] == tokens &&
                found->shape[1] == row->desc.hidden_size,
            "%s %s: %s is not as said", row->folder, row->reference, name);
}

static void references_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_row_count; i++) {
        const hf_row *row = &hf_rows[i];
        uint64_t tokens = row->tokens ? row->tokens : PREFILL, steps = row->alone   ? 0
                                                                       : row->steps ? row->steps
                                                                                    : DECODE;
        vka_tensor_file *reference = NULL;

        open_reference(&reference, row);
        states_are(reference, row, "prefill_input", tokens);
        states_are(reference, row, "prefill_output", tokens);
        states_are(reference, row, "decode_input", steps);
        states_are(reference, row, "decode_output", steps);
        assert_int_equal(vka_tensor_file_find(reference, "positions")->dtype, VKA_DTYPE_DEFAULT);
        vka_tensor_file_close(&reference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_what_python_made),
        cmocka_unit_test(configurations_alone),
        cmocka_unit_test(references_are_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
