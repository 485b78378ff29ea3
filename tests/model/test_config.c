/* config.json: what each family means, and that nothing about attention is passed over in silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/config_case.h"

#define LLAMA                                                                                                          \
    "\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":96,\"num_hidden_layers\":3,"    \
    "\"num_attention_heads\":6"
#define MISTRAL                                                                                                        \
    "\"architectures\":[\"MistralForCausalLM\"],\"model_type\":\"mistral\",\"hidden_size\":96,"                        \
    "\"num_hidden_layers\":3,\"num_attention_heads\":6,\"num_key_value_heads\":2"
#define QWEN2                                                                                                          \
    "\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\",\"hidden_size\":96,\"num_hidden_layers\":3,"    \
    "\"num_attention_heads\":6,\"num_key_value_heads\":2"
#define COSMOS3                                                                                                        \
    "\"model_type\":\"cosmos3\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"                 \
    "\"num_key_value_heads\":2,\"head_dim\":128,\"rope_theta\":1e4"
#define QWEN3                                                                                                          \
    "\"architectures\":[\"Qwen3ForCausalLM\"],\"model_type\":\"qwen3\",\"hidden_size\":96,\"num_hidden_layers\":3,"    \
    "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"head_dim\":32"

static unsigned biases_of(const vka_config *config)
{
    unsigned biases = 0;

    assert_int_equal(vka_config_layer_biases(config, VKA_BLOCK_SELF, &biases, "config.json", NULL), VKA_OK);
    return biases;
}

static void families(void **state)
{
    vka_config config = {0};
    vka_layer_desc desc;

    (void)state;
    desc = layer_of(LLAMA, 2);
    assert_int_equal(desc.struct_size, sizeof(desc));
    assert_true(desc.hidden_size == 96 && desc.heads == 6 && desc.kv_heads == 6);
    assert_true(desc.head_dim == 16 && desc.v_head_dim == 16 && desc.rotary_dim == 16);
    assert_true(desc.rope_type == VKA_ROPE_DEFAULT && desc.rope_theta == 10000.0 && desc.scale == 0.25);
    assert_true(desc.qk_norm == VKA_QK_NORM_NONE && desc.window == 0);
    desc = layer_of(QWEN3 ",\"rms_norm_eps\":1e-5,\"rope_theta\":1000000", 0);
    assert_true(desc.kv_heads == 2 && desc.head_dim == 32 && desc.qk_norm == VKA_QK_NORM_PER_HEAD);
    assert_true(desc.norm_eps == 1e-5 && desc.rope_theta == 1e6);
    assert_int_equal(parse(&config, QWEN2, NULL), VKA_OK);
    assert_string_equal(config.architecture, "Qwen2ForCausalLM");
    assert_string_equal(config.family->model_type, "qwen2");
    assert_int_equal(config.layers, 3);
    assert_int_equal(biases_of(&config), VKA_BIAS_QKV);
    vka_config_free(&config);
    assert_int_equal(parse(&config, LLAMA ",\"attention_bias\":true", NULL), VKA_OK);
    assert_int_equal(biases_of(&config), VKA_BIAS_ALL);
    vka_config_free(&config);
    assert_int_equal(parse(&config, MISTRAL ",\"sliding_window\":null", NULL), VKA_OK);
    assert_int_equal(biases_of(&config), 0);
    vka_config_free(&config);
    vka_config_free(&config);
}

static void which_family(void **state)
{
    vka_config config = {0};

    (void)state;
    assert_int_equal(parse(&config,
                           "\"model_type\":\"llama\",\"hidden_size\":96,\"num_hidden_layers\":3,"
                           "\"num_attention_heads\":6",
                           NULL),
                     VKA_OK);
    assert_string_equal(config.architecture, "LlamaForCausalLM");
    vka_config_free(&config);
    assert_int_equal(parse(&config,
                           "\"architectures\":[\"LlamaModel\"],\"hidden_size\":96,\"num_hidden_layers\":3,"
                           "\"num_attention_heads\":6",
                           NULL),
                     VKA_OK);
    assert_string_equal(config.architecture, "LlamaModel");
    vka_config_free(&config);
    refused("\"architectures\":[\"MambaForCausalLM\"]", VKA_ERR_UNSUPPORTED, "architecture 'MambaForCausalLM'");
    refused("\"architectures\":[\"Gemma4ForCausalLM\"]", VKA_ERR_UNSUPPORTED, "known model types: llama, mistral");
    refused("\"architectures\":[\"Qwen2MoeForCausalLM\"]", VKA_ERR_UNSUPPORTED, "'Qwen2MoeForCausalLM'");
    refused("\"model_type\":\"rwkv\"", VKA_ERR_UNSUPPORTED, "model_type 'rwkv'");
    refused("\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"mistral\"", VKA_ERR_FORMAT, "'mistral'");
    refused("\"architectures\":[\"LlamaForCausalLM\",\"LlamaModel\"]", VKA_ERR_FORMAT, "one name");
    refused("\"architectures\":[7]", VKA_ERR_FORMAT, "one name");
    refused("\"architectures\":\"LlamaForCausalLM\"", VKA_ERR_FORMAT, "one name");
    refused("\"model_type\":7", VKA_ERR_FORMAT, "model_type is 7");
    refused("\"architectures\":null", VKA_ERR_FORMAT, "neither");
    refused("", VKA_ERR_FORMAT, "neither");
}

static void head_sizes(void **state)
{
    (void)state;
    assert_int_equal(layer_of(LLAMA ",\"head_dim\":null", 0).head_dim, 16);
    assert_int_equal(layer_of(LLAMA ",\"head_dim\":20", 0).head_dim, 20);
    assert_int_equal(layer_of(LLAMA ",\"num_key_value_heads\":null", 0).kv_heads, 6);
    assert_int_equal(layer_of(LLAMA ",\"num_key_value_heads\":4", 0).kv_heads, 4); /* for the layout to refuse */
    refused("\"model_type\":\"llama\",\"hidden_size\":100,\"num_hidden_layers\":3,\"num_attention_heads\":6",
            VKA_ERR_FORMAT, "100 / 6");
    refused(LLAMA ",\"head_dim\":577", VKA_ERR_FORMAT, "head_dim is 577");
    refused(LLAMA ",\"head_dim\":0", VKA_ERR_FORMAT, "head_dim is 0");
    refused(LLAMA ",\"head_dim\":-16", VKA_ERR_FORMAT, "head_dim is -16");
    refused(LLAMA ",\"head_dim\":16.0", VKA_ERR_FORMAT, "head_dim is 16");
    refused(LLAMA ",\"head_dim\":\"16\"", VKA_ERR_FORMAT, "expected an integer 1 .. 576");
    refused(LLAMA ",\"head_dim\":true", VKA_ERR_FORMAT, "head_dim is true");
    refused(LLAMA ",\"num_key_value_heads\":7", VKA_ERR_FORMAT, "kv_heads is 7");
    refused(LLAMA ",\"num_key_value_heads\":[2]", VKA_ERR_FORMAT, "an array");
    refused("\"model_type\":\"llama\",\"hidden_size\":96,\"num_hidden_layers\":3", VKA_ERR_FORMAT,
            "num_attention_heads is missing");
    refused("\"model_type\":\"mixtral\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6",
            VKA_ERR_FORMAT, "num_key_value_heads is missing");
    refused("\"model_type\":\"qwen3\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
            "\"num_key_value_heads\":2",
            VKA_ERR_FORMAT, "head_dim is missing");
}

static void hostile_numbers(void **state)
{
    static const char head[] = "\"model_type\":\"llama\",\"num_attention_heads\":6";

    (void)state;
    refused(head, VKA_ERR_FORMAT, "num_hidden_layers is missing");
    refused("\"model_type\":\"llama\",\"num_hidden_layers\":65537", VKA_ERR_FORMAT, "num_hidden_layers is 65537");
    refused("\"model_type\":\"llama\",\"num_hidden_layers\":0", VKA_ERR_FORMAT, "num_hidden_layers is 0");
    refused("\"model_type\":\"llama\",\"num_hidden_layers\":3,\"hidden_size\":9223372036854775807", VKA_ERR_FORMAT,
            "hidden_size is 9223372036854775807");
    refused("\"model_type\":\"llama\",\"num_hidden_layers\":3,\"hidden_size\":99999999999999999999", VKA_ERR_FORMAT,
            "JSON, line 1");
    refused("\"model_type\":\"llama\",\"num_hidden_layers\":3,\"hidden_size\":4,\"num_attention_heads\":2147483648",
            VKA_ERR_FORMAT, "num_attention_heads is 2147483648");
    refused(LLAMA ",\"rope_theta\":0", VKA_ERR_FORMAT, "rope_theta is 0");
    refused(LLAMA ",\"rope_theta\":-1", VKA_ERR_FORMAT, "rope_theta is -1");
    refused(LLAMA ",\"rope_theta\":\"x\\u001b\"", VKA_ERR_FORMAT, "rope_theta is x?,");
    refused(LLAMA ",\"rope_theta\":1e999", VKA_ERR_FORMAT, "JSON, line 1");
    refused(LLAMA ",\"rms_norm_eps\":0", VKA_ERR_FORMAT, "rms_norm_eps is 0");
    refused(LLAMA ",\"attention_bias\":1", VKA_ERR_FORMAT, "expected true or false");
    refused(LLAMA ",\"hidden_size\":96", VKA_ERR_FORMAT, "duplicate");
}

static void rope_spellings(void **state)
{
    vka_layer_desc desc;

    (void)state;
    assert_true(layer_of(LLAMA ",\"rope_theta\":500000.0,\"rope_scaling\":null", 0).rope_theta == 500000.0);
    assert_true(layer_of(LLAMA ",\"rope_parameters\":{\"rope_theta\":1e6,\"rope_type\":\"default\"}", 0).rope_theta ==
                1e6);
    assert_true(layer_of(LLAMA ",\"rope_theta\":500,\"rope_parameters\":{\"rope_theta\":500.0}", 0).rope_theta ==
                500.0);
    assert_true(layer_of(LLAMA ",\"rope_theta\":500,\"rope_scaling\":{\"type\":\"default\"}", 0).rope_theta == 500.0);
    assert_true(layer_of(LLAMA ",\"rope_scaling\":{}", 0).rope_theta == 10000.0);
    desc = layer_of(LLAMA ",\"rope_parameters\":{\"partial_rotary_factor\":0.25}", 0);
    assert_int_equal(desc.rotary_dim, 4);
    assert_int_equal(layer_of(LLAMA ",\"partial_rotary_factor\":0.5", 0).rotary_dim, 8);
    assert_int_equal(layer_of(LLAMA ",\"partial_rotary_factor\":1", 0).rotary_dim, 16);
}

static void rope_refusals(void **state)
{
    (void)state;
    refused(LLAMA ",\"rope_scaling\":{\"rope_type\":\"mrope\"}", VKA_ERR_UNSUPPORTED, "rope type 'mrope'");
    refused(LLAMA ",\"rope_scaling\":{\"type\":\"axial\",\"factor\":8.0}", VKA_ERR_UNSUPPORTED, "rope type 'axial'");
    refused(LLAMA ",\"rope_parameters\":{\"rope_type\":\"proportional\"}", VKA_ERR_UNSUPPORTED,
            "rope type 'proportional' (rope_parameters.rope_type)");
    refused(LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"rope_type\":\"default\"}", VKA_ERR_FORMAT, "the type 'yarn'");
    refused(LLAMA ",\"rope_scaling\":{\"factor\":2.0}", VKA_ERR_UNSUPPORTED, "the key 'factor'");
    refused(LLAMA ",\"rope_parameters\":{\"full_attention\":{}}", VKA_ERR_UNSUPPORTED, "'full_attention'");
    refused(LLAMA ",\"rope_scaling\":{\"type\":3}", VKA_ERR_FORMAT, "rope_scaling.type is 3");
    refused(LLAMA ",\"rope_scaling\":2.0", VKA_ERR_FORMAT, "rope_scaling is 2");
    refused(LLAMA ",\"rope_scaling\":{},\"rope_parameters\":{}", VKA_ERR_FORMAT, "both");
    refused(LLAMA ",\"rope_theta\":1e4,\"rope_parameters\":{\"rope_theta\":1e6}", VKA_ERR_FORMAT, "given twice");
    refused(LLAMA ",\"rope_parameters\":{\"rope_theta\":false}", VKA_ERR_FORMAT, "rope_theta is false");
    refused(LLAMA ",\"partial_rotary_factor\":1.5", VKA_ERR_FORMAT, "at most 1");
    refused(LLAMA ",\"partial_rotary_factor\":0.2", VKA_ERR_UNSUPPORTED, "3 rotating elements");
    refused(LLAMA ",\"partial_rotary_factor\":0.01", VKA_ERR_UNSUPPORTED, "0 rotating elements");
}

static void windows(void **state)
{
    static const char qwen_on[] = QWEN3 ",\"use_sliding_window\":true,\"sliding_window\":64,\"max_window_layers\":1";

    (void)state;
    assert_int_equal(layer_of(MISTRAL ",\"sliding_window\":4096", 0).window, 4096);
    assert_int_equal(layer_of(MISTRAL ",\"sliding_window\":4096", 2).window, 4096);
    assert_int_equal(layer_of(MISTRAL ",\"sliding_window\":null", 0).window, 0);
    assert_int_equal(layer_of(LLAMA ",\"sliding_window\":null", 0).window, 0);
    assert_int_equal(layer_of(LLAMA ",\"sliding_window\":64,\"use_sliding_window\":false", 0).window, 0);
    assert_int_equal(layer_of(QWEN2 ",\"sliding_window\":64,\"max_window_layers\":0", 0).window, 0);
    assert_int_equal(layer_of(QWEN2 ",\"sliding_window\":64,\"use_sliding_window\":false", 2).window, 0);
    assert_int_equal(layer_of(qwen_on, 0).window, 0);
    assert_int_equal(layer_of(qwen_on, 1).window, 64);
    assert_int_equal(layer_of(qwen_on, 2).window, 64);
    assert_int_equal(layer_of(QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":null", 2).window, 0);
    assert_int_equal(layer_of(QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":9,\"layer_types\":"
                                    "[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]",
                              0)
                         .window,
                     9);
    assert_int_equal(layer_of(QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":9,\"max_window_layers\":0,"
                                    "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]",
                              1)
                         .window,
                     0);
    assert_int_equal(
        layer_of(LLAMA ",\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\"]", 0).window, 0);
}

static void window_refusals(void **state)
{
    (void)state;
    refused(MISTRAL, VKA_ERR_FORMAT, "sliding_window is missing");
    refused(MISTRAL ",\"sliding_window\":0", VKA_ERR_FORMAT, "sliding_window is 0");
    refused(MISTRAL ",\"sliding_window\":\"4096\"", VKA_ERR_FORMAT, "sliding_window is 4096");
    refused(MISTRAL ",\"sliding_window\":4096,\"use_sliding_window\":false", VKA_ERR_FORMAT, "false");
    refused(MISTRAL ",\"sliding_window\":8,\"layer_types\":"
                    "[\"full_attention\",\"sliding_attention\",\"sliding_attention\"]",
            VKA_ERR_FORMAT, "layer_types[0] is full_attention");
    refused(LLAMA ",\"sliding_window\":64", VKA_ERR_UNSUPPORTED, "Llama layers have no window");
    refused(LLAMA ",\"layer_types\":[\"full_attention\"]", VKA_ERR_FORMAT, "num_hidden_layers = 3");
    refused(LLAMA ",\"layer_types\":[\"full_attention\",1,\"full_attention\"]", VKA_ERR_UNSUPPORTED,
            "layer_types[1] is 1");
    refused(LLAMA ",\"layer_types\":[\"full_attention\",\"full_attention\",\"chunked_attention\"]", VKA_ERR_UNSUPPORTED,
            "layer_types[2] is chunked_attention");
    refused(QWEN2 ",\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\"],\"sliding_window\":9",
            VKA_ERR_FORMAT, "layer_types[0] is sliding_attention");
    refused(QWEN2 ",\"use_sliding_window\":true", VKA_ERR_FORMAT, "sliding_window is missing");
    refused(QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":9", VKA_ERR_FORMAT, "max_window_layers is missing");
    refused(QWEN2 ",\"use_sliding_window\":1", VKA_ERR_FORMAT, "use_sliding_window is 1");
    refused(QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":9,\"max_window_layers\":-1", VKA_ERR_FORMAT,
            "max_window_layers is -1");
}

static void biases_that_a_family_cannot_have(void **state)
{
    (void)state;
    refused(QWEN2 ",\"attention_bias\":false", VKA_ERR_UNSUPPORTED, "Qwen2 always has a bias");
    refused(MISTRAL ",\"sliding_window\":null,\"attention_bias\":true", VKA_ERR_UNSUPPORTED,
            "Mistral always has no bias");
    assert_int_equal(layer_of(QWEN2 ",\"attention_bias\":true", 0).heads, 6);
    assert_int_equal(layer_of(MISTRAL ",\"sliding_window\":null,\"attention_bias\":false", 0).heads, 6);
}

static void norms_of_cosmos3(void **state)
{
    (void)state;
    assert_int_equal(layer_of(COSMOS3, 0).qk_norm, VKA_QK_NORM_PER_HEAD);
    assert_int_equal(layer_of(COSMOS3 ",\"qk_norm_for_text\":false", 0).qk_norm, VKA_QK_NORM_NONE);
    assert_int_equal(layer_of(COSMOS3 ",\"qk_norm_for_text\":false,\"use_und_k_norm_for_gen\":true", 0).k_out_norm, 1);
    refused(COSMOS3 ",\"use_und_k_norm_for_gen\":true", VKA_ERR_UNSUPPORTED, "one norm or two");
}

static void options_not_understood_are_refused_by_name(void **state)
{
    static const char *const options[] = {
        "\"quantization_config\":{\"quant_method\":\"gptq\"}",
        "\"compression_config\":{\"format\":\"x\"}",
        "\"attn_logit_softcapping\":50.0",
        "\"clip_qkv\":8.0",
        "\"query_pre_attn_scalar\":256",
        "\"use_qk_norm\":true",
        "\"attention_multiplier\":0.01",
        "\"attn_output_gate\":true",
        "\"rope_local_base_freq\":10000.0",
        "\"no_rope_layers\":[1,1,0]",
        "\"attention_chunk_size\":8192",
        "\"sliding_window_pattern\":6",
        "\"rotary_pct\":0.25",
        "\"rope_interleave\":true",
        "\"kv_lora_rank\":512",
        "\"alibi\":true",
        "\"nope_layer_interval\":4",
        "\"bidirectional\":true",
        "\"num_sink_tokens\":4",
        "\"multi_query_head_groups\":2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        char body[512], name[64];

        snprintf(body, sizeof(body), LLAMA ",%s", options[i]);
        snprintf(name, sizeof(name), "option '%.*s'", (int)(strchr(options[i] + 1, '"') - options[i] - 1),
                 options[i] + 1);
        refused(body, VKA_ERR_UNSUPPORTED, name);
    }
    refused(LLAMA ",\"is_causal\":false", VKA_ERR_UNSUPPORTED, "is_causal is false");
    layer_of(LLAMA ",\"is_causal\":true", 0);
    layer_of(LLAMA ",\"quantization_config\":null,\"use_mrope\":false,\"attn_logit_softcapping\":null,"
                   "\"no_rope_layers\":[],\"pruned_heads\":{},\"rope_kind\":\"\"",
             0);
    layer_of(LLAMA ",\"attention_dropout\":0.1,\"_attn_implementation\":\"eager\",\"vocab_size\":32000,"
                   "\"torch_dtype\":\"bfloat16\",\"pretraining_tp\":1,\"max_position_embeddings\":2048,"
                   "\"eos_token_id\":[1,2],\"mlp_bias\":false,\"hidden_act\":\"silu\"",
             0);
}

static void texts_that_are_not_a_configuration(void **state)
{
    static const char text[] = "{" QWEN3 ",\"rope_parameters\":{\"rope_theta\":1e6}}";
    vka_config config = {0};

    (void)state;
    for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
        char *bytes = malloc(cut > 0 ? cut : 1);

        assert_non_null(bytes);
        memcpy(bytes, text, cut);
        assert_int_equal(vka_config_parse(&config, bytes, cut, "x", NULL), VKA_ERR_FORMAT);
        free(bytes);
    }
    assert_int_equal(vka_config_parse(&config, text, sizeof(text) - 1, "x", NULL), VKA_OK);
    vka_config_free(&config);
    assert_int_equal(vka_config_parse(&config, "[]", 2, "x", NULL), VKA_ERR_FORMAT);
    assert_int_equal(vka_config_parse(&config, "null", 4, "x", NULL), VKA_ERR_FORMAT);
    assert_int_equal(vka_config_parse(&config, NULL, 0, "x", NULL), VKA_ERR_FORMAT);
}

static void a_layer_that_is_not_there(void **state)
{
    vka_config config = {0};
    vka_layer_desc desc;
    vka_error error = {0};

    (void)state;
    assert_int_equal(parse(&config, LLAMA, NULL), VKA_OK);
    assert_int_equal(vka_config_layer(&config, VKA_BLOCK_SELF, 3, &desc, "config.json", &error), VKA_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "layer 3 is asked for, but the model has layers 0 .. 2"));
    vka_config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families),
        cmocka_unit_test(which_family),
        cmocka_unit_test(head_sizes),
        cmocka_unit_test(hostile_numbers),
        cmocka_unit_test(rope_spellings),
        cmocka_unit_test(rope_refusals),
        cmocka_unit_test(windows),
        cmocka_unit_test(window_refusals),
        cmocka_unit_test(biases_that_a_family_cannot_have),
        cmocka_unit_test(norms_of_cosmos3),
        cmocka_unit_test(options_not_understood_are_refused_by_name),
        cmocka_unit_test(texts_that_are_not_a_configuration),
        cmocka_unit_test(a_layer_that_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
