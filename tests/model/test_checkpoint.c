/* Checkpoints made in a scratch folder: every way in which weights can fail to belong to their configuration, and
 * indices that lead astray. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/index.h"
#include "model/scratch_folder.h"

/* hidden 8, 2 heads of 4, 1 KV head; layer 1 of 2. */
#define LLAMA                                                                                                          \
    "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2,"                   \
    "\"num_key_value_heads\":1}"
#define PREFIX "model.layers.1.self_attn."

static const float zeros[64];

enum { Q, K, V, O, TENSORS };

static void good_tensors(vka_named_tensor tensors[TENSORS])
{
    static const char *const names[TENSORS] = {PREFIX "q_proj.weight", PREFIX "k_proj.weight", PREFIX "v_proj.weight",
                                               PREFIX "o_proj.weight"};

    for (int i = 0; i < TENSORS; i++)
        tensors[i] = (vka_named_tensor){
            .name = names[i], .dtype = VKA_F32, .dims = 2, .shape = {i == K || i == V ? 4 : 8, 8}, .data = zeros};
}

static vka_status load(vka_error *error)
{
    vka_model *model = NULL;
    vka_model_layer *layer = NULL;
    vka_status status = vka_model_open(&model, folder, error);

    if (status == VKA_OK)
        status = vka_model_layer_load(&layer, model, VKA_BLOCK_SELF, 1, error);
    vka_model_layer_free(&layer);
    vka_model_close(&model);
    return status;
}

static void loads(void)
{
    vka_error error = {0};

    if (load(&error) != VKA_OK)
        fail_msg("%s", error.message);
}

static void fails(vka_status status, const char *one, const char *two)
{
    vka_error error = {0};

    if (load(&error) != status || !strstr(error.message, one) || !strstr(error.message, two))
        fail_msg("status %d, message '%s', expected %d with '%s' and '%s'", (int)error.status, error.message,
                 (int)status, one, two);
}

static void a_good_one_loads(void **state)
{
    vka_named_tensor tensors[TENSORS + 1];
    vka_model *model = NULL;
    vka_model_layer *layer = NULL;
    vka_error error = {0};

    (void)state;
    write_text("config.json", LLAMA);
    good_tensors(tensors);
    tensors[TENSORS] = tensors[Q];
    tensors[TENSORS].name = PREFIX "rotary_emb.inv_freq";
    write_tensors("model.safetensors", tensors, TENSORS + 1);
    loads();
    assert_int_equal(vka_model_open(&model, folder, NULL), VKA_OK);
    assert_int_equal(vka_model_layer_load(&layer, model, VKA_BLOCK_SELF, 0, &error), VKA_ERR_FORMAT);
    assert_non_null(strstr(error.message, "no tensor under 'model.layers.0.self_attn.'"));
    assert_int_equal(vka_model_layer_load(&layer, model, VKA_BLOCK_SELF, 2, &error), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_model_layer_load(NULL, model, VKA_BLOCK_SELF, 1, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_model_layer_load(&layer, NULL, VKA_BLOCK_SELF, 1, NULL), VKA_ERR_ARGUMENT);
    assert_null(layer);
    assert_null(vka_model_layer_desc(NULL));
    assert_null(vka_model_layer_weights(NULL));
    vka_model_close(&model);
    vka_model_close(&model);
    assert_null(vka_model_get_info(NULL));
}

/* A configuration that claims more KV heads than the weights have: the way around a layout rule that users tried. */
static void shapes_must_fit_the_configuration(void **state)
{
    vka_named_tensor tensors[TENSORS];

    (void)state;
    good_tensors(tensors);
    write_tensors("model.safetensors", tensors, TENSORS);
    write_text("config.json", "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":2,"
                              "\"num_attention_heads\":2}");
    fails(VKA_ERR_FORMAT, "'" PREFIX "k_proj.weight' has shape [4, 8]", "expected [8, 8] = [kv_heads * head_dim");
    write_text("config.json", LLAMA);
    for (int i = 0; i < TENSORS; i++) {
        good_tensors(tensors);
        tensors[i].shape[0] /= 2;
        write_tensors("model.safetensors", tensors, TENSORS);
        fails(VKA_ERR_FORMAT, tensors[i].name, "expected [");
        good_tensors(tensors);
        tensors[i].shape[1] = 7;
        write_tensors("model.safetensors", tensors, TENSORS);
        fails(VKA_ERR_FORMAT, tensors[i].name, "expected [");
        tensors[i].dims = 3;
        tensors[i].shape[1] = 1;
        tensors[i].shape[2] = 1;
        write_tensors("model.safetensors", tensors, TENSORS);
        fails(VKA_ERR_FORMAT, tensors[i].name, "3 dimensions");
        good_tensors(tensors);
        tensors[i].name = "elsewhere";
        write_tensors("model.safetensors", tensors, TENSORS);
        fails(VKA_ERR_FORMAT, "self_attn.", "missing");
    }
}

static void tensors_not_understood_are_refused(void **state)
{
    static const char *const names[] = {PREFIX "relative_attention_bias", PREFIX "q_proj.weight_scale",
                                        PREFIX "qkv_proj.weight", PREFIX "q_proj.qweight"};
    vka_named_tensor tensors[TENSORS + 1];

    (void)state;
    write_text("config.json", LLAMA);
    good_tensors(tensors);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tensors[TENSORS] = tensors[Q];
        tensors[TENSORS].name = names[i];
        write_tensors("model.safetensors", tensors, TENSORS + 1);
        fails(VKA_ERR_UNSUPPORTED, names[i], "not known");
    }
    tensors[TENSORS].name = PREFIX "q_norm.weight";
    tensors[TENSORS].dims = 1;
    tensors[TENSORS].shape[0] = 4;
    write_tensors("model.safetensors", tensors, TENSORS + 1);
    fails(VKA_ERR_FORMAT, "q_norm.weight", "does not use it");
}

static void biases_must_fit_the_configuration(void **state)
{
    vka_named_tensor tensors[TENSORS + 1];

    (void)state;
    write_text("config.json", LLAMA);
    good_tensors(tensors);
    tensors[TENSORS] = tensors[Q];
    tensors[TENSORS].dims = 1;
    tensors[TENSORS].name = PREFIX "q_proj.bias";
    write_tensors("model.safetensors", tensors, TENSORS + 1);
    fails(VKA_ERR_FORMAT, PREFIX "q_proj.bias' is there", "config.json");
    write_text("config.json", "{\"model_type\":\"qwen2\",\"hidden_size\":8,\"num_hidden_layers\":2,"
                              "\"num_attention_heads\":2,\"num_key_value_heads\":1}");
    fails(VKA_ERR_FORMAT, PREFIX "k_proj.bias' is missing", "config.json");
}

/* Another type elsewhere does no harm; as a weight it is refused by name. */
static void other_element_types(void **state)
{
    static const char header[] =
        "{\"" PREFIX "q_proj.weight\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    unsigned char length[8] = {sizeof(header) - 1};
    const vka_piece pieces[] = {{length, 8}, {header, sizeof(header) - 1}, {zeros, 8}};
    vka_model *model = NULL;
    char path[128];

    (void)state;
    write_text("config.json", LLAMA);
    path_of(path, "model.safetensors");
    assert_int_equal(vka_write_file(path, pieces, 3, NULL), VKA_OK);
    assert_int_equal(vka_model_open(&model, folder, NULL), VKA_OK);
    vka_model_close(&model);
    fails(VKA_ERR_UNSUPPORTED, PREFIX "q_proj.weight", "I64");
}

#define INDEX(q, k, v, o)                                                                                              \
    "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"" PREFIX "q_proj.weight\":\"" q "\",\"" PREFIX                 \
    "k_proj.weight\":\"" k "\",\"" PREFIX "v_proj.weight\":\"" v "\",\"" PREFIX "o_proj.weight\":\"" o "\"}}"

static void shards(void **state)
{
    vka_named_tensor tensors[TENSORS];

    (void)state;
    write_text("config.json", LLAMA);
    good_tensors(tensors);
    write_tensors("a.safetensors", tensors, 3);
    write_tensors("b.safetensors", tensors + 2, 2);
    write_text("model.safetensors.index.json",
               INDEX("a.safetensors", "a.safetensors", "b.safetensors", "b.safetensors"));
    loads();
    write_text("model.safetensors.index.json",
               INDEX("a.safetensors", "b.safetensors", "b.safetensors", "b.safetensors"));
    fails(VKA_ERR_FORMAT, PREFIX "k_proj.weight' should be in", "b.safetensors");
    write_text("model.safetensors.index.json",
               INDEX("a.safetensors", "a.safetensors", "c.safetensors", "b.safetensors"));
    fails(VKA_ERR_IO, "c.safetensors", "open");
    write_text("b.safetensors", "not a tensor file");
    write_text("model.safetensors.index.json",
               INDEX("a.safetensors", "a.safetensors", "a.safetensors", "b.safetensors"));
    fails(VKA_ERR_FORMAT, "b.safetensors", "header");
}

static void a_link_to_a_file_is_a_file(void **state)
{
    vka_named_tensor tensors[TENSORS];
    char from[128];

    (void)state;
    write_text("config.json", LLAMA);
    good_tensors(tensors);
    write_tensors("a.safetensors", tensors, TENSORS);
    path_of(from, "model.safetensors");
    assert_int_equal(symlink("a.safetensors", from), 0);
    loads();
}

static void folders_that_hold_no_model(void **state)
{
    vka_model *model = NULL;
    vka_error error = {0};

    (void)state;
    fails(VKA_ERR_IO, "config.json", folder);
    write_text("config.json", LLAMA);
    fails(VKA_ERR_IO, "model.safetensors", "model.safetensors.index.json");
    assert_int_equal(vka_model_open(&model, "/nonexistent", &error), VKA_ERR_IO);
    assert_int_equal(vka_model_open(&model, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_model_open(NULL, folder, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_model_read_config(NULL, VKA_BLOCK_SELF, 0, NULL, NULL, NULL), VKA_ERR_ARGUMENT);
    assert_int_equal(vka_model_read_config("/nonexistent", VKA_BLOCK_SELF, 0, NULL, NULL, &error), VKA_ERR_IO);
    assert_int_equal(vka_model_read_config(folder, VKA_BLOCK_SELF, 1, NULL, NULL, NULL), VKA_OK);
    assert_null(model);
}

static void index_refused(const char *text, const char *reason)
{
    size_t size = strlen(text);
    char *bytes = malloc(size > 0 ? size : 1);
    vka_index index = {0};
    vka_error error = {0};

    assert_non_null(bytes);
    memcpy(bytes, text, size);
    if (vka_index_parse(&index, bytes, size, "index", &error) != VKA_ERR_FORMAT || !strstr(error.message, reason))
        fail_msg("%s: '%s' lacks '%s'", text, error.message, reason);
    assert_null(index.entries);
    free(bytes);
}

static void indices(void **state)
{
    static const char good[] = "{\"weight_map\":{\"c\":\"2.safetensors\",\"a\":\"1.safetensors\","
                               "\"b\":\"2.safetensors\"}}";
    static const char *const bad_names[] = {
        "../a.safetensors",   "/a.safetensors", "x/a.safetensors", "..", ".", "", ".safetensors", ".a.safetensors",
        "x\\\\a.safetensors", "config.json",    "a.safetensors/"};
    char long_name[400];
    vka_index index = {0};

    (void)state;
    assert_int_equal(vka_index_parse(&index, good, sizeof(good) - 1, "index", NULL), VKA_OK);
    assert_int_equal(index.count, 3);
    assert_int_equal(index.file_count, 2);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(index.files[index.entries[i].file],
                            strcmp(index.entries[i].tensor, "a") == 0 ? "1.safetensors" : "2.safetensors");
    vka_index_free(&index);
    vka_index_free(&index);
    for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
        char text[128];

        snprintf(text, sizeof(text), "{\"weight_map\":{\"t\":\"%s\"}}", bad_names[i]);
        index_refused(text, "plain name");
    }
    snprintf(long_name, sizeof(long_name), "{\"weight_map\":{\"t\":\"%0300d.safetensors\"}}", 0);
    index_refused(long_name, "plain name");
    index_refused("{\"weight_map\":{\"t\":7}}", "plain name");
    index_refused("{\"weight_map\":{}}", "weight_map");
    index_refused("{\"weight_map\":[]}", "weight_map");
    index_refused("{}", "weight_map");
    index_refused("[]", "not an object");
    index_refused("{\"weight_map\":{\"t\":\"a.safetensors\",\"t\":\"b.safetensors\"}}", "duplicate");
    for (size_t cut = 0; cut < sizeof(good) - 1; cut++) {
        char text[sizeof(good)];

        memcpy(text, good, cut);
        text[cut] = '\0';
        index_refused(text, "JSON");
    }
}

#define SCRATCH(test) cmocka_unit_test_teardown(test, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH(a_good_one_loads),
        SCRATCH(shapes_must_fit_the_configuration),
        SCRATCH(tensors_not_understood_are_refused),
        SCRATCH(biases_must_fit_the_configuration),
        SCRATCH(other_element_types),
        SCRATCH(shards),
        SCRATCH(a_link_to_a_file_is_a_file),
        SCRATCH(folders_that_hold_no_model),
        cmocka_unit_test(indices),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
