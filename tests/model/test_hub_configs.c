/* Configurations with the keys that public models have, whatever they are good for: each must be read, and to what it
 * says. A key is here because a public file has it. */
#include "model/config_case.h"

typedef struct hub_case {
    const char *body;
    uint32_t layer, heads, kv_heads, head_dim, rotary_dim, window;
    vka_rope_type rope;
} hub_case;

static const hub_case cases[] = {
    /* Llama 3.1 8B */
    {"\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,\"hidden_size\":4096,"
     "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,"
     "\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
     "\"rope_scaling\":{\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
     "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0",
     31, 32, 8, 128, 128, 0, VKA_ROPE_LLAMA3},
    /* Qwen2.5 3B */
    {"\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"hidden_size\":2048,"
     "\"max_position_embeddings\":32768,\"max_window_layers\":36,\"model_type\":\"qwen2\",\"num_attention_heads\":16,"
     "\"num_hidden_layers\":36,\"num_key_value_heads\":2,\"rope_theta\":1000000.0,\"sliding_window\":32768,"
     "\"use_mrope\":false,\"use_sliding_window\":false",
     0, 16, 2, 128, 128, 0, VKA_ROPE_DEFAULT},
    /* Gemma 2 9B */
    {"\"architectures\":[\"Gemma2ForCausalLM\"],\"attention_bias\":false,\"attn_logit_softcapping\":50.0,"
     "\"cache_implementation\":\"hybrid\",\"final_logit_softcapping\":30.0,\"head_dim\":256,\"hidden_size\":3584,"
     "\"model_type\":\"gemma2\",\"num_attention_heads\":16,\"num_hidden_layers\":42,\"num_key_value_heads\":8,"
     "\"query_pre_attn_scalar\":256,\"rope_theta\":10000.0,\"sliding_window\":4096,\"sliding_window_size\":4096",
     2, 16, 8, 256, 256, 4096, VKA_ROPE_DEFAULT},
    /* Gemma 3 1B */
    {"\"architectures\":[\"Gemma3ForCausalLM\"],\"attn_logit_softcapping\":null,\"cache_implementation\":\"hybrid\","
     "\"final_logit_softcapping\":null,\"head_dim\":256,\"hidden_size\":1152,\"model_type\":\"gemma3_text\","
     "\"num_attention_heads\":4,\"num_hidden_layers\":26,\"num_key_value_heads\":1,\"query_pre_attn_scalar\":256,"
     "\"rope_local_base_freq\":10000,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":512,"
     "\"sliding_window_pattern\":6",
     4, 4, 1, 256, 256, 512, VKA_ROPE_DEFAULT},
    /* Pythia, GPT-NeoX 20B */
    {"\"architectures\":[\"GPTNeoXForCausalLM\"],\"attention_probs_dropout_prob\":0,\"hidden_size\":6144,"
     "\"model_type\":\"gpt_neox\",\"num_attention_heads\":64,\"num_hidden_layers\":44,\"rotary_emb_base\":10000,"
     "\"rotary_pct\":0.25,\"use_parallel_residual\":true",
     0, 64, 64, 96, 24, 0, VKA_ROPE_DEFAULT},
    /* GPT-J 6B */
    {"\"architectures\":[\"GPTJForCausalLM\"],\"attn_pdrop\":0.0,\"model_type\":\"gptj\",\"n_embd\":4096,\"n_head\":16,"
     "\"n_inner\":null,\"n_layer\":28,\"n_positions\":2048,\"rotary\":true,\"rotary_dim\":64,"
     "\"scale_attn_weights\":true",
     0, 16, 16, 256, 64, 0, VKA_ROPE_DEFAULT},
    /* StarCoder2 7B */
    {"\"architectures\":[\"Starcoder2ForCausalLM\"],\"attention_dropout\":0.1,\"attention_softmax_in_fp32\":true,"
     "\"hidden_size\":4608,\"model_type\":\"starcoder2\",\"num_attention_heads\":36,\"num_hidden_layers\":32,"
     "\"num_key_value_heads\":4,\"rope_theta\":1000000,\"scale_attention_softmax_in_fp32\":true,"
     "\"scale_attn_weights\":true,\"sliding_window\":4096,\"use_bias\":true",
     0, 36, 4, 128, 128, 4096, VKA_ROPE_DEFAULT},
    /* StarCoder */
    {"\"architectures\":[\"GPTBigCodeForCausalLM\"],\"attention_softmax_in_fp32\":true,\"attn_pdrop\":0.1,"
     "\"model_type\":\"gpt_bigcode\",\"multi_query\":true,\"n_embd\":6144,\"n_head\":48,\"n_inner\":24576,"
     "\"n_layer\":40,\"n_positions\":8192,\"pad_key_length\":true,\"pre_allocate_kv_cache\":false,"
     "\"scale_attention_softmax_in_fp32\":true,\"scale_attn_weights\":true",
     0, 48, 1, 128, 0, 0, VKA_ROPE_NONE},
    /* Falcon 40B */
    {"\"alibi\":false,\"architectures\":[\"FalconForCausalLM\"],\"attention_dropout\":0.0,\"bias\":false,"
     "\"hidden_size\":8192,\"model_type\":\"falcon\",\"multi_query\":true,\"new_decoder_architecture\":true,"
     "\"num_attention_heads\":128,\"num_hidden_layers\":60,\"num_kv_heads\":8,\"parallel_attn\":true",
     0, 128, 8, 64, 64, 0, VKA_ROPE_DEFAULT},
    /* DeepSeek V2 Lite */
    {"\"architectures\":[\"DeepseekV2ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"hidden_size\":2048,\"kv_lora_rank\":512,\"max_position_embeddings\":163840,\"model_type\":\"deepseek_v2\","
     "\"num_attention_heads\":16,\"num_hidden_layers\":27,\"num_key_value_heads\":16,\"q_lora_rank\":null,"
     "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"rope_scaling\":{\"beta_fast\":32,\"beta_slow\":1,"
     "\"factor\":40,\"mscale\":0.707,\"mscale_all_dim\":0.707,\"original_max_position_embeddings\":4096,\"type\":"
     "\"yarn\"},\"rope_theta\":10000,\"v_head_dim\":128",
     0, 16, 16, 192, 64, 0, VKA_ROPE_YARN},
    /* BERT base */
    {"\"architectures\":[\"BertForMaskedLM\"],\"attention_probs_dropout_prob\":0.1,\"hidden_size\":768,"
     "\"layer_norm_eps\":1e-12,\"max_position_embeddings\":512,\"model_type\":\"bert\",\"num_attention_heads\":12,"
     "\"num_hidden_layers\":12,\"position_embedding_type\":\"absolute\",\"type_vocab_size\":2",
     11, 12, 12, 64, 0, 0, VKA_ROPE_NONE},
};

static void each_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const hub_case *c = &cases[i];
        vka_layer_desc desc = layer_of(c->body, c->layer);

        require(desc.heads == c->heads && desc.kv_heads == c->kv_heads && desc.head_dim == c->head_dim, "%s", c->body);
        require(desc.rotary_dim == c->rotary_dim && desc.window == c->window && desc.rope_type == c->rope, "%s",
                c->body);
    }
}

static void a_window_under_two_names(void **state)
{
    (void)state;
    refused("\"model_type\":\"gemma2\",\"attn_logit_softcapping\":50,\"head_dim\":16,\"hidden_size\":96,"
            "\"num_attention_heads\":6,\"num_hidden_layers\":2,\"num_key_value_heads\":2,"
            "\"query_pre_attn_scalar\":16,\"sliding_window\":9,\"sliding_window_size\":8",
            VKA_ERR_FORMAT, "sliding_window is 9 and sliding_window_size 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_read), cmocka_unit_test(a_window_under_two_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
