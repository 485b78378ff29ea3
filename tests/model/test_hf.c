/* The checkpoints of tests/data/hf through the real loader: what Hugging Face transformers wrote must be read as what
 * it is. The numbers expected here are those of the table in tests/data/README.md; the elements are those that Python
 * printed into the reference files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "model/weights.h"

typedef struct expected {
    const char *folder, *architecture, *model_type, *prefix;
    uint32_t layers, layer;
    uint32_t hidden, heads, kv_heads, head_dim, window;
    double theta, eps;
    vka_qk_norm qk_norm;
    vka_dtype dtype;
    bool qkv_bias, o_bias;
} expected;

static const expected rows[] = {
    {.folder = "llama",
     .architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .prefix = "model.layers.0.self_attn.",
     .layers = 1,
     .hidden = 120,
     .heads = 6,
     .kv_heads = 3,
     .head_dim = 20,
     .theta = 1e4,
     .eps = 1e-5,
     .dtype = VKA_F32},
    {.folder = "llama-bias",
     .architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .prefix = "model.layers.0.self_attn.",
     .layers = 1,
     .hidden = 64,
     .heads = 4,
     .kv_heads = 1,
     .head_dim = 32,
     .theta = 5e5,
     .eps = 1e-6,
     .dtype = VKA_F32,
     .qkv_bias = true,
     .o_bias = true},
    {.folder = "mistral",
     .architecture = "MistralForCausalLM",
     .model_type = "mistral",
     .prefix = "model.layers.0.self_attn.",
     .layers = 1,
     .hidden = 64,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 8,
     .window = 7,
     .theta = 1e4,
     .eps = 1e-5,
     .dtype = VKA_F16},
    {.folder = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .prefix = "model.layers.0.self_attn.",
     .layers = 2,
     .hidden = 112,
     .heads = 14,
     .kv_heads = 2,
     .head_dim = 8,
     .theta = 1e6,
     .eps = 1e-6,
     .dtype = VKA_BF16,
     .qkv_bias = true},
    {.folder = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .prefix = "model.layers.1.self_attn.",
     .layers = 2,
     .layer = 1,
     .hidden = 112,
     .heads = 14,
     .kv_heads = 2,
     .head_dim = 8,
     .window = 10,
     .theta = 1e6,
     .eps = 1e-6,
     .dtype = VKA_BF16,
     .qkv_bias = true},
    {.folder = "qwen3",
     .architecture = "Qwen3Model",
     .model_type = "qwen3",
     .prefix = "layers.0.self_attn.",
     .layers = 1,
     .hidden = 80,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 24,
     .theta = 1e6,
     .eps = 1e-6,
     .qk_norm = VKA_QK_NORM_PER_HEAD,
     .dtype = VKA_F32},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), PROBES = 4, PREFILL = 24, DECODE = 6 };

static const char *const tensor_names[VKA_WEIGHT_COUNT] = {
    "q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight", "q_proj.bias",
    "k_proj.bias",   "v_proj.bias",   "o_proj.bias",   "q_norm.weight", "k_norm.weight",
};

static void ok(vka_status status, const vka_error *error)
{
    if (status != VKA_OK)
        fail_msg("%s: %s", error->where, error->message);
}

static void folder_of(char path[512], const expected *row, const char *file)
{
    snprintf(path, 512, "%s/%s%s", VKA_TEST_DATA, row->folder, file);
}

static void description_is(const vka_layer_desc *desc, const expected *row)
{
    assert_int_equal(desc->hidden_size, row->hidden);
    assert_int_equal(desc->heads, row->heads);
    assert_int_equal(desc->kv_heads, row->kv_heads);
    assert_int_equal(desc->head_dim, row->head_dim);
    assert_int_equal(desc->v_head_dim, row->head_dim);
    assert_int_equal(desc->rotary_dim, row->head_dim);
    assert_int_equal(desc->window, row->window);
    assert_int_equal(desc->qk_norm, row->qk_norm);
    assert_int_equal(desc->rope_type, VKA_ROPE_DEFAULT);
    assert_true(desc->rope_theta == row->theta);
    assert_true(desc->norm_eps == row->eps);
    assert_true(desc->scale * desc->scale * row->head_dim > 0.999999);
    assert_true(desc->scale * desc->scale * row->head_dim < 1.000001);
}

static void probes_agree(const vka_tensor *tensor, const vka_tensor_file *reference, const expected *row, int weight)
{
    char name[128];
    const vka_named_tensor *probe;
    float lines[PROBES][3];

    snprintf(name, sizeof(name), "probe.%s%s", row->prefix, tensor_names[weight]);
    probe = vka_tensor_file_find(reference, name);
    if (!tensor->data) {
        assert_null(probe);
        return;
    }
    assert_non_null(probe);
    assert_true(probe->dtype == VKA_F32 && probe->dims == 2 && probe->shape[0] == PROBES && probe->shape[1] == 3);
    memcpy(lines, probe->data, sizeof(lines));
    for (int i = 0; i < PROBES; i++) {
        uint64_t r = (uint64_t)lines[i][0], c = (uint64_t)lines[i][1];
        float value;

        assert_true(r < tensor->rows && c < tensor->cols);
        vka_convert(&value, VKA_F32,
                    (const char *)tensor->data + (r * tensor->cols + c) * vka_dtype_size(tensor->dtype), tensor->dtype,
                    1);
        assert_true(value == lines[i][2]);
    }
}

static void layers_are_what_python_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const expected *row = &rows[i];
        char path[512], file[64];
        vka_tensor_file *reference = NULL;
        vka_model *model = NULL;
        vka_model_layer *loaded = NULL;
        vka_layer_weights weights;
        vka_error error;

        folder_of(path, row, "");
        ok(vka_model_open(&model, path, &error), &error);
        assert_string_equal(vka_model_get_info(model)->architecture, row->architecture);
        assert_string_equal(vka_model_get_info(model)->model_type, row->model_type);
        assert_int_equal(vka_model_get_info(model)->layers, row->layers);
        ok(vka_model_layer_load(&loaded, model, VKA_BLOCK_SELF, row->layer, &error), &error);
        description_is(vka_model_layer_desc(loaded), row);
        weights = *vka_model_layer_weights(loaded);
        assert_int_equal(weights.q.dtype, row->dtype);
        assert_int_equal(weights.q.rows, row->heads * row->head_dim);
        assert_int_equal(weights.k.rows, row->kv_heads * row->head_dim);
        assert_int_equal(weights.o.rows, row->hidden);
        assert_int_equal(weights.v_bias.data != NULL, row->qkv_bias);
        assert_int_equal(weights.o_bias.data != NULL, row->o_bias);
        assert_int_equal(weights.k_norm.data != NULL, row->qk_norm == VKA_QK_NORM_PER_HEAD);
        snprintf(file, sizeof(file), "/reference-layer%u.safetensors", row->layer);
        folder_of(path, row, file);
        ok(vka_tensor_file_open(&reference, path, &error), &error);
        for (int w = 0; w < VKA_WEIGHT_COUNT; w++)
            probes_agree(vka_weight_at(&weights, w), reference, row, w);
        vka_tensor_file_close(&reference);
        vka_model_layer_free(&loaded);
        vka_model_close(&model);
        assert_null(model);
    }
}

static void configurations_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const char *const files[] = {"", "/config.json"};

        for (size_t f = 0; f < 2; f++) {
            char path[512];
            vka_layer_desc desc;
            vka_model_info info;
            vka_error error;

            folder_of(path, &rows[i], files[f]);
            ok(vka_model_read_config(path, VKA_BLOCK_SELF, rows[i].layer, &desc, &info, &error), &error);
            description_is(&desc, &rows[i]);
            assert_int_equal(info.layers, rows[i].layers);
        }
    }
}

static void states_are(const vka_tensor_file *file, const char *name, uint64_t tokens, uint64_t hidden)
{
    const vka_named_tensor *found = vka_tensor_file_find(file, name);

    assert_non_null(found);
    assert_true(found->dtype == VKA_F32 && found->dims == 2 && found->shape[0] == tokens && found->shape[1] == hidden);
}

static void references_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        char path[512], file[64];
        vka_tensor_file *reference = NULL;
        vka_error error;

        snprintf(file, sizeof(file), "/reference-layer%u.safetensors", rows[i].layer);
        folder_of(path, &rows[i], file);
        ok(vka_tensor_file_open(&reference, path, &error), &error);
        states_are(reference, "prefill_input", PREFILL, rows[i].hidden);
        states_are(reference, "prefill_output", PREFILL, rows[i].hidden);
        states_are(reference, "decode_input", DECODE, rows[i].hidden);
        states_are(reference, "decode_output", DECODE, rows[i].hidden);
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
