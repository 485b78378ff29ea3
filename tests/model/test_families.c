/* What is particular to each family's configuration, with the numbers of its public models where there is one, and with
 * what must not be passed over. Sources of the numbers: the configuration files of the models named. */
#include "model/config_case.h"

#include <math.h>

#define GEOMETRY(q, kv)                                                                                                \
    "\"hidden_size\":96,\"num_hidden_layers\":8,\"num_attention_heads\":" #q ",\"num_key_value_heads\":" #kv
#define TYPE(name) "\"model_type\":\"" name "\","

static void near(double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want))
        fail_msg("%.17g, expected %.17g", got, want);
}

static unsigned biases_of(const char *body, vka_block block)
{
    unsigned biases = 0;
    vka_config config = {0};

    assert_int_equal(parse(&config, body, NULL), VKA_OK);
    assert_int_equal(vka_config_layer_biases(&config, block, &biases, "config.json", NULL), VKA_OK);
    vka_config_free(&config);
    return biases;
}

#define GEMMA2                                                                                                         \
    TYPE("gemma2")                                                                                                     \
    GEOMETRY(6, 2)                                                                                                     \
    ",\"head_dim\":16,\"sliding_window\":4096,\"attn_logit_softcapping\":50.0,"                                        \
    "\"final_logit_softcapping\":30.0,\"query_pre_attn_scalar\":144"

static void gemma2(void **state)
{
    vka_layer_desc desc = layer_of(GEMMA2, 0);

    (void)state;
    assert_true(desc.window == 4096 && desc.softcap == 50.0 && desc.qk_norm == VKA_QK_NORM_NONE);
    near(desc.scale, 1.0 / 12);
    assert_int_equal(layer_of(GEMMA2, 1).window, 0);
    assert_int_equal(layer_of(GEMMA2, 2).window, 4096);
    assert_int_equal(layer_of(GEMMA2 ",\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\","
                                     "\"full_attention\",\"full_attention\",\"full_attention\",\"full_attention\","
                                     "\"full_attention\"]",
                              1)
                         .window,
                     4096);
    assert_true(layer_of(TYPE("gemma2") GEOMETRY(6, 2) ",\"head_dim\":16,\"sliding_window\":4,"
                                                       "\"attn_logit_softcapping\":null,\"query_pre_attn_scalar\":16",
                         0)
                    .softcap == 0);
    refused(TYPE("gemma2") GEOMETRY(6, 2) ",\"head_dim\":16,\"sliding_window\":4,\"attn_logit_softcapping\":5",
            VKA_ERR_FORMAT, "query_pre_attn_scalar is missing");
    refused(TYPE("gemma2") GEOMETRY(6, 2) ",\"head_dim\":16,\"sliding_window\":4,\"query_pre_attn_scalar\":16",
            VKA_ERR_FORMAT, "attn_logit_softcapping is missing");
    refused(GEMMA2 ",\"use_bidirectional_attention\":true", VKA_ERR_UNSUPPORTED, "use_bidirectional_attention");
}

/* The 4B model's configuration relies on defaults; its linear factor is for the layers without a window. */
#define GEMMA3                                                                                                         \
    "\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\",\"text_config\":{"               \
    "\"hidden_size\":2560,\"model_type\":\"gemma3_text\",\"num_hidden_layers\":34,\"rope_scaling\":{\"factor\":8.0,"   \
    "\"rope_type\":\"linear\"},\"sliding_window\":1024},\"vision_config\":{\"num_attention_heads\":16}"
#define GEMMA3_TEXT TYPE("gemma3_text") GEOMETRY(6, 2) ",\"head_dim\":16,\"sliding_window\":9"

static void gemma3(void **state)
{
    vka_layer_desc local = layer_of(GEMMA3, 4), global = layer_of(GEMMA3, 5);

    (void)state;
    assert_true(local.heads == 8 && local.kv_heads == 4 && local.head_dim == 256 && local.hidden_size == 2560);
    assert_true(local.window == 1024 && local.rope_type == VKA_ROPE_DEFAULT && local.rope_theta == 10000.0);
    assert_true(global.window == 0 && global.rope_type == VKA_ROPE_LINEAR && global.rope_theta == 1e6);
    assert_true(global.rope_scaling.factor == 8.0 && global.scale == 0.0625);
    assert_true(global.qk_norm == VKA_QK_NORM_PER_HEAD && global.norm_unit_offset == 1);
    assert_int_equal(layer_of(GEMMA3_TEXT ",\"sliding_window_pattern\":2", 1).window, 0);
    assert_int_equal(layer_of(GEMMA3_TEXT ",\"sliding_window_pattern\":2", 2).window, 9);
    local = layer_of(GEMMA3_TEXT ",\"rope_theta\":500,\"rope_local_base_freq\":50", 0);
    global = layer_of(GEMMA3_TEXT ",\"rope_theta\":500,\"rope_local_base_freq\":50", 5);
    assert_true(local.rope_theta == 50 && global.rope_theta == 500);
    local = layer_of(GEMMA3_TEXT ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"default\","
                                 "\"rope_theta\":7},\"full_attention\":{\"rope_type\":\"linear\",\"factor\":2,"
                                 "\"rope_theta\":9}}",
                     0);
    assert_true(local.rope_theta == 7 && local.rope_type == VKA_ROPE_DEFAULT);
    refused(GEMMA3_TEXT ",\"rope_parameters\":{\"rope_theta\":7}", VKA_ERR_UNSUPPORTED, "rope_parameters.rope_theta");
    refused(GEMMA3_TEXT ",\"attn_logit_softcapping\":50", VKA_ERR_UNSUPPORTED, "attn_logit_softcapping");
}

#define QWEN35                                                                                                         \
    "\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\",\"text_config\":{" TYPE(       \
        "qwen3_5_text") GEOMETRY(4, 2) ",\"head_dim\":256,\"attn_output_gate\":true,\"linear_num_key_heads\":16,"      \
                                       "\"linear_key_head_dim\":128,\"rope_parameters\":{\"rope_theta\":10000000,"     \
                                       "\"partial_rotary_factor\":0.25,"                                               \
                                       "\"mrope_interleaved\":true,\"mrope_section\":[11,11,10]}}"
#define NEXT TYPE("qwen3_next") GEOMETRY(4, 2) ",\"head_dim\":64"

static void gated(void **state)
{
    vka_layer_desc desc = layer_of(QWEN35, 3);

    (void)state;
    assert_true(desc.gate == VKA_GATE_SIGMOID && desc.qk_norm == VKA_QK_NORM_PER_HEAD && desc.norm_unit_offset == 1);
    assert_true(desc.rotary_dim == 64 && desc.rope_theta == 1e7 && desc.mrope_interleaved == 1);
    assert_true(desc.mrope_section[0] == 11 && desc.mrope_section[2] == 10 && desc.kv_policy == VKA_KV_REPLICATE);
    layer_refused(QWEN35, VKA_BLOCK_SELF, 2, VKA_ERR_UNSUPPORTED, "layers of full attention: 3, 7");
    desc = layer_of(NEXT, 7);
    assert_true(desc.gate == VKA_GATE_SIGMOID && desc.rotary_dim == 16 && desc.mrope_section[0] == 0);
    assert_int_equal(layer_of(NEXT ",\"attn_output_gate\":false,\"full_attention_interval\":1", 0).gate, VKA_GATE_NONE);
    desc = layer_of(TYPE("interns2_mobius") GEOMETRY(4, 2) ",\"head_dim\":256", 3);
    assert_true(desc.gate == VKA_GATE_SIGMOID && desc.kv_policy == VKA_KV_REPLICATE && desc.mrope_section[0] == 11);
    refused(NEXT ",\"layer_types\":[\"full_attention\"]", VKA_ERR_FORMAT, "layer_types is not an array");
    refused(NEXT ",\"rope_scaling\":{\"mrope_section\":[2,2,4]}", VKA_ERR_UNSUPPORTED, "'mrope_section'");
    refused(TYPE("qwen3_5_text") GEOMETRY(4, 2) ",\"head_dim\":64", VKA_ERR_FORMAT, "mrope_section is 11, 11, 10");
    refused(TYPE("qwen3_5_text") GEOMETRY(4, 2) ",\"head_dim\":256,\"rope_parameters\":{\"mrope_interleaved\":false}",
            VKA_ERR_UNSUPPORTED, "mrope_interleaved is false");
    refused(TYPE("qwen3_5_text") GEOMETRY(4, 2) ",\"head_dim\":256,\"rope_parameters\":{\"mrope_section\":[32,-1,1]}",
            VKA_ERR_FORMAT, "mrope_section[1]");
    refused("\"model_type\":\"qwen3_5\",\"text_config\":[1]", VKA_ERR_FORMAT, "text_config");
    refused("\"model_type\":\"llama\",\"text_config\":{\"model_type\":\"llama\"}", VKA_ERR_UNSUPPORTED, "text_config");
}

static void sections_in_order(void **state)
{
    static const char vl[] = TYPE("qwen2_vl") GEOMETRY(2, 2) ",\"head_dim\":128,\"use_sliding_window\":false,"
                                                             "\"rope_scaling\":{\"type\":\"mrope\",\"rope_type\":"
                                                             "\"default\",\"mrope_section\":[16,24,24]}";
    vka_layer_desc desc = layer_of(vl, 0);

    (void)state;
    assert_true(desc.rope_type == VKA_ROPE_DEFAULT && desc.mrope_section[1] == 24 && desc.mrope_interleaved == 0);
    desc = layer_of(TYPE("qwen3_vl_text") GEOMETRY(2, 2) ",\"head_dim\":128", 0);
    assert_true(desc.mrope_section[0] == 24 && desc.mrope_interleaved == 1 && desc.qk_norm == VKA_QK_NORM_PER_HEAD);
}

static void phi(void **state)
{
    static const char body[] = TYPE("phi3") GEOMETRY(6, 2) ",\"original_max_position_embeddings\":4096,"
                                                           "\"max_position_embeddings\":131072,"
                                                           "\"partial_rotary_factor\":0.75,\"full_attn_mod\":1,"
                                                           "\"sliding_window\":262144,\"rope_scaling\":{\"type\":"
                                                           "\"%s\",\"long_factor\":[1,2,3,4,5,6],"
                                                           "\"short_factor\":[1,1,1,1,1,%s]}";
    char text[512];
    vka_layer_desc desc;

    (void)state;
    snprintf(text, sizeof(text), body, "su", "1.5");
    desc = layer_of(text, 0);
    assert_true(desc.rope_type == VKA_ROPE_LONGROPE && desc.rotary_dim == 12 && desc.window == 262144);
    assert_true(desc.rope_scaling.original_context == 4096 && desc.rope_scaling.factor == 32);
    assert_true(desc.rope_scaling.long_factor[5] == 6.0F && desc.rope_scaling.short_factor[5] == 1.5F);
    snprintf(text, sizeof(text), body, "yarn", "1");
    refused(text, VKA_ERR_UNSUPPORTED, "rope type 'yarn'");
    snprintf(text, sizeof(text), body, "longrope", "0");
    refused(text, VKA_ERR_FORMAT, "short_factor[5] is 0");
    snprintf(text, sizeof(text), body, "longrope", "1e300");
    refused(text, VKA_ERR_FORMAT, "short_factor[5] is 1e+300");
    snprintf(text, sizeof(text), body, "longrope", "1,1");
    refused(text, VKA_ERR_FORMAT, "short_factor is no array of rotary elements / 2 = 6");
    refused(TYPE("phi3") GEOMETRY(6, 2) ",\"rope_scaling\":{\"type\":\"su\"}", VKA_ERR_FORMAT,
            "original_max_position_embeddings is missing");
    refused(TYPE("phi3") GEOMETRY(6, 2) ",\"full_attn_mod\":2", VKA_ERR_UNSUPPORTED, "full_attn_mod' is 2");
    assert_int_equal(layer_of(TYPE("phi") GEOMETRY(6, 6), 0).rotary_dim, 8);
    assert_int_equal(biases_of(TYPE("phi") GEOMETRY(6, 6), VKA_BLOCK_SELF), VKA_BIAS_ALL);
    refused(TYPE("phi") GEOMETRY(6, 6) ",\"qk_layernorm\":true", VKA_ERR_UNSUPPORTED, "qk_layernorm");
}

#define NEOX TYPE("gpt_neox") "\"hidden_size\":96,\"num_hidden_layers\":8,\"num_attention_heads\":6"

static void gpts(void **state)
{
    static const char gptj[] = TYPE("gptj") "\"n_embd\":96,\"n_layer\":8,\"n_head\":6";
    static const char bigcode[] = TYPE("gpt_bigcode") "\"n_embd\":96,\"n_layer\":8,\"n_head\":6";
    char text[256];
    vka_layer_desc desc = layer_of(NEOX ",\"rotary_pct\":0.5,\"rotary_emb_base\":500", 0);

    (void)state;
    assert_true(desc.rotary_dim == 8 && desc.rope_theta == 500 && desc.kv_heads == 6);
    assert_int_equal(layer_of(NEOX, 0).rotary_dim, 4);
    assert_int_equal(biases_of(NEOX, VKA_BLOCK_SELF), VKA_BIAS_ALL);
    assert_int_equal(biases_of(NEOX ",\"attention_bias\":false", VKA_BLOCK_SELF), 0);
    refused(NEOX ",\"rope_theta\":7", VKA_ERR_FORMAT, "given twice, as 7 and as 10000");
    snprintf(text, sizeof(text), "%s,\"rotary_dim\":6", gptj);
    desc = layer_of(text, 0);
    assert_true(desc.rotary_dim == 6 && desc.rope_pairing == VKA_ROPE_INTERLEAVED && desc.head_dim == 16);
    snprintf(text, sizeof(text), "%s,\"rotary_dim\":null", gptj);
    assert_int_equal(layer_of(text, 0).rotary_dim, 16);
    snprintf(text, sizeof(text), "%s,\"rotary_dim\":17", gptj);
    refused(text, VKA_ERR_FORMAT, "rotary_dim is 17");
    snprintf(text, sizeof(text), "%s,\"rotary_dim\":3", gptj);
    refused(text, VKA_ERR_FORMAT, "rotary_dim is 3");
    desc = layer_of(TYPE("gpt2") "\"n_embd\":96,\"n_layer\":2,\"n_head\":6,\"reorder_and_upcast_attn\":true", 0);
    assert_true(desc.head_dim == 16 && desc.kv_heads == 6 && desc.rope_type == VKA_ROPE_NONE);
    refused(TYPE("gpt2") "\"n_embd\":96,\"n_layer\":2,\"n_head\":6,\"scale_attn_by_inverse_layer_idx\":true",
            VKA_ERR_UNSUPPORTED, "scale_attn_by_inverse_layer_idx' is true");
    desc = layer_of(bigcode, 0);
    assert_true(desc.kv_heads == 1 && desc.rope_type == VKA_ROPE_NONE && desc.attend == VKA_ATTEND_CAUSAL);
    snprintf(text, sizeof(text), "%s,\"multi_query\":false", bigcode);
    assert_int_equal(layer_of(text, 0).kv_heads, 6);
    snprintf(text, sizeof(text), "%s,\"scale_attn_weights\":false", bigcode);
    refused(text, VKA_ERR_UNSUPPORTED, "scale_attn_weights' is false");
    snprintf(text, sizeof(text), "%s,\"rope_theta\":1e4", bigcode);
    refused(text, VKA_ERR_UNSUPPORTED, "no rotary embedding");
}

#define OSS       TYPE("gpt_oss") GEOMETRY(6, 2) ",\"head_dim\":64,\"sliding_window\":128,\"max_position_embeddings\":131072"
#define OSS_PLAIN OSS ",\"rope_parameters\":{\"rope_type\":\"default\"}"

static void gpt_oss(void **state)
{
    static const char yarn[] =
        OSS ",\"rope_theta\":150000,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0,\"beta_fast\":32.0,"
            "\"beta_slow\":1.0,\"truncate\":false,\"original_max_position_embeddings\":4096},"
            "\"quantization_config\":{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":"
            "[\"model.layers.*.self_attn\",\"lm_head\"]}";
    vka_layer_desc desc = layer_of(yarn, 0);

    (void)state;
    assert_true(desc.sinks == 1 && desc.window == 128 && desc.rope_type == VKA_ROPE_YARN);
    assert_true(desc.rope_scaling.no_truncate == 1 && desc.rope_scaling.factor == 32 &&
                desc.rope_scaling.original_context == 4096);
    assert_true(layer_of(OSS_PLAIN, 1).window == 0 && layer_of(OSS_PLAIN, 1).rope_theta == 150000);
    assert_int_equal(biases_of(OSS_PLAIN, VKA_BLOCK_SELF), VKA_BIAS_ALL);
    refused(OSS, VKA_ERR_FORMAT, "neither rope_parameters nor rope_scaling is given");
    refused(OSS ",\"quantization_config\":{\"modules_to_not_convert\":[\"lm_head\"]}", VKA_ERR_UNSUPPORTED,
            "quantization_config");
}

static void olmo2_and_starcoder2(void **state)
{
    vka_layer_desc desc = layer_of(TYPE("olmo2") GEOMETRY(6, 2), 0);

    (void)state;
    assert_true(desc.qk_norm == VKA_QK_NORM_FULL_WIDTH && desc.norm_eps == 1e-5 && desc.norm_unit_offset == 0);
    assert_int_equal(biases_of(TYPE("starcoder2") GEOMETRY(6, 2), VKA_BLOCK_SELF), VKA_BIAS_ALL);
    assert_int_equal(biases_of(TYPE("starcoder2") GEOMETRY(6, 2) ",\"use_bias\":false", VKA_BLOCK_SELF), 0);
    assert_int_equal(layer_of(TYPE("starcoder2") GEOMETRY(6, 2) ",\"sliding_window\":4096", 0).window, 4096);
    assert_int_equal(layer_of(TYPE("starcoder2") GEOMETRY(6, 2), 0).window, 0);
}

#define DBRX(inner) TYPE("dbrx") "\"d_model\":96,\"n_layers\":8,\"n_heads\":6,\"attn_config\":{" inner "}"

static void dbrx(void **state)
{
    vka_layer_desc desc = layer_of(DBRX("\"clip_qkv\":8,\"kv_n_heads\":2,\"rope_theta\":500000,\"attn_pdrop\":0"), 0);

    (void)state;
    assert_true(desc.clip_qkv == 8 && desc.kv_heads == 2 && desc.rope_theta == 5e5 && desc.head_dim == 16);
    assert_true(layer_of(DBRX("\"clip_qkv\":null"), 0).kv_heads == 1);
    refused(DBRX("\"alibi\":true"), VKA_ERR_UNSUPPORTED, "'alibi'");
    refused(DBRX("\"rope_theta\":7") ",\"rope_parameters\":{\"rope_theta\":8}", VKA_ERR_FORMAT, "given twice");
    refused(DBRX("") ",\"clip_qkv\":8", VKA_ERR_FORMAT, "outside attn_config");
    refused(TYPE("dbrx") "\"d_model\":96,\"n_layers\":8,\"n_heads\":6", VKA_ERR_FORMAT, "attn_config is no object");
}

#define FALCON TYPE("falcon") "\"hidden_size\":96,\"num_hidden_layers\":8,\"num_attention_heads\":6"

static void falcon(void **state)
{
    vka_layer_desc desc = layer_of(FALCON ",\"alibi\":true,\"multi_query\":false", 0);

    (void)state;
    assert_true(desc.alibi == 1 && desc.rope_type == VKA_ROPE_NONE && desc.kv_heads == 6);
    assert_int_equal(layer_of(FALCON, 0).kv_heads, 1);
    assert_int_equal(layer_of(FALCON, 0).rope_type, VKA_ROPE_DEFAULT);
    assert_int_equal(layer_of(FALCON ",\"new_decoder_architecture\":true,\"num_kv_heads\":2", 0).kv_heads, 2);
    assert_int_equal(biases_of(FALCON ",\"bias\":true", VKA_BLOCK_SELF), VKA_BIAS_ALL);
    refused(FALCON ",\"multi_query\":false,\"num_kv_heads\":2", VKA_ERR_FORMAT, "num_kv_heads is 2 with 6 heads");
}

#define BERT TYPE("bert") "\"hidden_size\":96,\"num_hidden_layers\":8,\"num_attention_heads\":6"

static void encoders(void **state)
{
    vka_layer_desc desc = layer_of(BERT ",\"position_embedding_type\":\"absolute\"", 0);

    (void)state;
    assert_true(desc.attend == VKA_ATTEND_FULL && desc.rope_type == VKA_ROPE_NONE);
    assert_int_equal(biases_of(BERT, VKA_BLOCK_SELF), VKA_BIAS_ALL);
    refused(BERT ",\"position_embedding_type\":\"relative_key\"", VKA_ERR_UNSUPPORTED, "relative_key");
    refused(BERT ",\"is_decoder\":true", VKA_ERR_UNSUPPORTED, "is_decoder");
    layer_refused(BERT, VKA_BLOCK_CROSS, 0, VKA_ERR_ARGUMENT, "layers of Bert have no block 'cross'");
    layer_refused(BERT, (vka_block)3, 0, VKA_ERR_ARGUMENT, "block is 3");
    layer_refused(BERT, (vka_block)-1, 0, VKA_ERR_ARGUMENT, "block is -1");
    assert_int_equal(layer_of(TYPE("distilbert") "\"dim\":96,\"n_layers\":2,\"n_heads\":6", 1).heads, 6);
}

static void encoders_and_decoders(void **state)
{
    static const char t5[] =
        TYPE("t5") "\"d_model\":96,\"num_layers\":2,\"num_decoder_layers\":4,\"num_heads\":6,\"d_kv\":8";
    static const char whisper[] = TYPE("whisper") "\"d_model\":96,\"encoder_layers\":2,\"decoder_layers\":3,"
                                                  "\"encoder_attention_heads\":4,\"decoder_attention_heads\":6";
    vka_layer_desc desc = block_of(t5, VKA_BLOCK_CROSS, 3);

    (void)state;
    assert_true(desc.attend == VKA_ATTEND_CROSS && desc.scale == 1.0 && desc.head_dim == 8 &&
                desc.kv_hidden_size == 96);
    layer_refused(t5, VKA_BLOCK_CROSS, 4, VKA_ERR_ARGUMENT, "layers 0 .. 3");
    layer_refused(t5, VKA_BLOCK_SELF, 0, VKA_ERR_UNSUPPORTED, "relative position bias");
    layer_refused(t5, VKA_BLOCK_ENCODER, 0, VKA_ERR_UNSUPPORTED, "relative position bias");
    refused(TYPE("t5") "\"d_model\":96,\"num_layers\":2,\"num_decoder_layers\":-4,\"num_heads\":6,\"d_kv\":8",
            VKA_ERR_FORMAT, "num_decoder_layers is -4");
    assert_true(block_of(whisper, VKA_BLOCK_SELF, 2).attend == VKA_ATTEND_CAUSAL);
    assert_true(block_of(whisper, VKA_BLOCK_CROSS, 2).attend == VKA_ATTEND_CROSS);
    desc = block_of(whisper, VKA_BLOCK_ENCODER, 1);
    assert_true(desc.attend == VKA_ATTEND_FULL && desc.heads == 4 && desc.head_dim == 24);
    layer_refused(whisper, VKA_BLOCK_ENCODER, 2, VKA_ERR_ARGUMENT, "layers 0 .. 1");
    assert_int_equal(biases_of(whisper, VKA_BLOCK_CROSS), VKA_BIAS_Q | VKA_BIAS_V | VKA_BIAS_O);
}

#define LATENT                                                                                                         \
    "\"hidden_size\":96,\"num_hidden_layers\":8,\"num_attention_heads\":6,\"qk_nope_head_dim\":16,"                    \
    "\"qk_rope_head_dim\":8,\"v_head_dim\":12,\"kv_lora_rank\":32,\"max_position_embeddings\":163840"

static void deepseek(void **state)
{
    vka_layer_desc desc = layer_of(TYPE("deepseek_v2") LATENT ",\"q_lora_rank\":null", 0);

    (void)state;
    assert_true(desc.head_dim == 24 && desc.v_head_dim == 12 && desc.rotary_offset == 16 && desc.rotary_dim == 8);
    assert_true(desc.kv_lora_rank == 32 && desc.q_lora_rank == 0 && desc.kv_heads == 6);
    assert_true(desc.rope_pairing == VKA_ROPE_INTERLEAVED && desc.norm_eps == 1e-6);
    near(desc.scale, 1.0 / sqrt(24.0));
    desc = layer_of(TYPE("deepseek_v3") LATENT
                    ",\"q_lora_rank\":48,\"rope_interleave\":false,\"rms_norm_eps\":1e-3,\"rope_scaling\":{\"type\":"
                    "\"yarn\",\"factor\":40,\"original_max_position_embeddings\":4096,\"beta_fast\":32,"
                    "\"beta_slow\":1,\"mscale\":1.0,\"mscale_all_dim\":1.0}",
                    0);
    assert_true(desc.q_lora_rank == 48 && desc.rope_pairing == VKA_ROPE_HALF_SPLIT && desc.norm_eps == 1e-6);
    near(desc.scale, (0.1 * log(40) + 1) * (0.1 * log(40) + 1) / sqrt(24.0));
    refused(TYPE("deepseek_v2") LATENT, VKA_ERR_FORMAT, "q_lora_rank is missing");
    refused(TYPE("deepseek_v2") LATENT ",\"q_lora_rank\":null,\"rope_interleave\":false", VKA_ERR_UNSUPPORTED,
            "rope_interleave' is false");
    refused(TYPE("deepseek_v3") LATENT ",\"q_lora_rank\":48,\"attention_bias\":true", VKA_ERR_UNSUPPORTED,
            "attention_bias is true");
    refused(TYPE("deepseek_v3") LATENT ",\"q_lora_rank\":48,\"num_key_value_heads\":2", VKA_ERR_FORMAT, "kv_heads");
}

#define COSMOS3 TYPE("cosmos3") GEOMETRY(6, 2) ",\"head_dim\":128,\"rms_norm_eps\":1e-3,\"rope_theta\":5000000"

static void cosmos3(void **state)
{
    vka_layer_desc desc = layer_of(COSMOS3, 0);

    (void)state;
    refused(TYPE("cosmos3") GEOMETRY(6, 2) ",\"head_dim\":128", VKA_ERR_FORMAT, "rope_theta is missing");
    assert_true(desc.rope_theta == 5e6);
    assert_true(desc.attend == VKA_ATTEND_CAUSAL && desc.kv_policy == VKA_KV_STRICT && desc.norm_eps == 1e-6);
    assert_true(desc.qk_norm == VKA_QK_NORM_PER_HEAD && desc.k_out_norm == 0 && desc.mrope_section[0] == 24);
    desc = layer_of(COSMOS3 ",\"qk_norm_for_text\":false,\"use_und_k_norm_for_gen\":true", 0);
    assert_true(desc.qk_norm == VKA_QK_NORM_NONE && desc.k_out_norm == 1);
    desc = block_of(COSMOS3 ",\"qk_norm_for_text\":false,\"use_und_k_norm_for_gen\":true", VKA_BLOCK_CROSS, 7);
    assert_true(desc.attend == VKA_ATTEND_FULL && desc.qk_norm == VKA_QK_NORM_PER_HEAD && desc.k_out_norm == 0);
    assert_true(desc.kv_policy == VKA_KV_STRICT && desc.rope_type == VKA_ROPE_DEFAULT);
}

/* Of what is laid out only nothing but the geometry is read. */
static void laid_out_only(void **state)
{
    static const char nas[] = TYPE("nemotron-nas") "\"hidden_size\":96,\"num_hidden_layers\":2,"
                                                   "\"num_attention_heads\":6,\"block_configs\":[{\"attention\":"
                                                   "{\"n_heads_in_group\":3}},{\"attention\":{\"no_op\":true}}]";
    vka_config config = {0};

    (void)state;
    assert_int_equal(parse(&config,
                           "\"architectures\":[\"Mistral3ForConditionalGeneration\"],\"model_type\":"
                           "\"mistral3\",\"text_config\":{" TYPE("ministral3") GEOMETRY(6, 2) "}",
                           NULL),
                     VKA_OK);
    assert_non_null(strstr(config.family->not_run, "llama_4_scaling_beta"));
    vka_config_free(&config);
    assert_int_equal(parse(&config,
                           "\"model_type\":\"mistral3\",\"text_config\":{" TYPE("mistral")
                               GEOMETRY(6, 2) ",\"sliding_window\":null}",
                           NULL),
                     VKA_OK);
    assert_null(config.family->not_run);
    vka_config_free(&config);
    assert_int_equal(layer_of(nas, 0).kv_heads, 2);
    layer_refused(nas, VKA_BLOCK_SELF, 1, VKA_ERR_UNSUPPORTED, "layer 1 has no attention");
    refused(TYPE("nemotron-nas") "\"hidden_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":6", VKA_ERR_FORMAT,
            "block_configs[0]");
    assert_int_equal(layer_of(TYPE("chatglm") "\"hidden_size\":96,\"num_layers\":2,\"num_attention_heads\":6,"
                                              "\"multi_query_attention\":true,\"multi_query_group_num\":2,"
                                              "\"kv_channels\":20",
                              0)
                         .kv_heads,
                     2);
    assert_int_equal(layer_of(TYPE("cohere") GEOMETRY(6, 2) ",\"use_qk_norm\":true", 0).kv_heads, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemma2),        cmocka_unit_test(gemma3),
        cmocka_unit_test(gated),         cmocka_unit_test(sections_in_order),
        cmocka_unit_test(phi),           cmocka_unit_test(gpts),
        cmocka_unit_test(gpt_oss),       cmocka_unit_test(olmo2_and_starcoder2),
        cmocka_unit_test(dbrx),          cmocka_unit_test(falcon),
        cmocka_unit_test(encoders),      cmocka_unit_test(encoders_and_decoders),
        cmocka_unit_test(deepseek),      cmocka_unit_test(cosmos3),
        cmocka_unit_test(laid_out_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
