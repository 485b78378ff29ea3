/* The tables. Names and orders: modelling files of Hugging Face transformers 5.24, and for Cosmos3 the loaders of
 * public inference engines. */
#include "model/tensor_names.h"

#define PLAIN(text, which)                                                                                             \
    {                                                                                                                  \
        text, VKA_WEIGHT_##which, VKA_AS_IS                                                                            \
    }
#define MERGED(text, which)                                                                                            \
    {                                                                                                                  \
        text, VKA_WEIGHT_##which, VKA_Q_K_V                                                                            \
    }
#define GROUPS(text, which)                                                                                            \
    {                                                                                                                  \
        text, VKA_WEIGHT_##which, VKA_GROUPS                                                                           \
    }
#define IGNORED(text)                                                                                                  \
    {                                                                                                                  \
        text, VKA_WEIGHT_COUNT, VKA_IGNORED                                                                            \
    }

#define LINEAR(text, which) PLAIN(text ".weight", which), PLAIN(text ".bias", which##_BIAS)

/* Written by old versions of transformers; follows from the configuration. */
#define ANGLES IGNORED("rotary_emb.inv_freq")
#define MASKS  IGNORED("bias"), IGNORED("masked_bias")

const vka_tensor_names vka_names_llama = {
    "layers.",
    ".self_attn.",
    {LINEAR("q_proj", Q), LINEAR("k_proj", K), LINEAR("v_proj", V), LINEAR("o_proj", O), PLAIN("q_norm.weight", Q_NORM),
     PLAIN("k_norm.weight", K_NORM), PLAIN("sinks", SINKS), ANGLES},
};

const vka_tensor_names vka_names_phi3 = {
    "layers.",
    ".self_attn.",
    {MERGED("qkv_proj.weight", Q), MERGED("qkv_proj.bias", Q_BIAS), LINEAR("o_proj", O), ANGLES},
};

const vka_tensor_names vka_names_phi = {
    "layers.",
    ".self_attn.",
    {LINEAR("q_proj", Q), LINEAR("k_proj", K), LINEAR("v_proj", V), LINEAR("dense", O), ANGLES},
};

const vka_tensor_names vka_names_neox = {
    "layers.",
    ".attention.",
    {GROUPS("query_key_value.weight", Q), GROUPS("query_key_value.bias", Q_BIAS), LINEAR("dense", O), ANGLES, MASKS},
};

const vka_tensor_names vka_names_gptj = {
    "h.",
    ".attn.",
    {LINEAR("q_proj", Q), LINEAR("k_proj", K), LINEAR("v_proj", V), LINEAR("out_proj", O), MASKS,
     IGNORED("embed_positions")},
};

const vka_tensor_names vka_names_gpt2 = {
    "h.",
    ".attn.",
    {{"c_attn.weight", VKA_WEIGHT_Q, VKA_Q_K_V_TRANSPOSED},
     MERGED("c_attn.bias", Q_BIAS),
     {"c_proj.weight", VKA_WEIGHT_O, VKA_TRANSPOSED},
     PLAIN("c_proj.bias", O_BIAS),
     MASKS},
};

const vka_tensor_names vka_names_bigcode = {
    "h.",
    ".attn.",
    {GROUPS("c_attn.weight", Q), GROUPS("c_attn.bias", Q_BIAS), LINEAR("c_proj", O), MASKS},
};

const vka_tensor_names vka_names_dbrx = {
    "blocks.",
    ".norm_attn_norm.attn.",
    {MERGED("Wqkv.weight", Q), LINEAR("out_proj", O), ANGLES},
};

const vka_tensor_names vka_names_falcon = {
    "h.",
    ".self_attention.",
    {GROUPS("query_key_value.weight", Q), GROUPS("query_key_value.bias", Q_BIAS), LINEAR("dense", O), ANGLES},
};

const vka_tensor_names vka_names_bert = {
    "encoder.layer.",
    ".attention.",
    {LINEAR("self.query", Q), LINEAR("self.key", K), LINEAR("self.value", V), LINEAR("output.dense", O),
     IGNORED("output.LayerNorm.weight"), IGNORED("output.LayerNorm.bias"), IGNORED("output.LayerNorm.gamma"),
     IGNORED("output.LayerNorm.beta")},
};

const vka_tensor_names vka_names_distilbert = {
    "transformer.layer.",
    ".attention.",
    {LINEAR("q_lin", Q), LINEAR("k_lin", K), LINEAR("v_lin", V), LINEAR("out_lin", O)},
};

const vka_tensor_names vka_names_t5_cross = {
    "decoder.block.",
    ".layer.1.EncDecAttention.",
    {PLAIN("q.weight", Q), PLAIN("k.weight", K), PLAIN("v.weight", V), PLAIN("o.weight", O),
     /* in old files, and never used */
     IGNORED("relative_attention_bias.weight")},
};

#define WHISPER_ROWS                                                                                                   \
    {                                                                                                                  \
        LINEAR("q_proj", Q), LINEAR("k_proj", K), LINEAR("v_proj", V), LINEAR("out_proj", O)                           \
    }

const vka_tensor_names vka_names_whisper_self = {"decoder.layers.", ".self_attn.", WHISPER_ROWS};
const vka_tensor_names vka_names_whisper_cross = {"decoder.layers.", ".encoder_attn.", WHISPER_ROWS};
const vka_tensor_names vka_names_whisper_encoder = {"encoder.layers.", ".self_attn.", WHISPER_ROWS};

const vka_tensor_names vka_names_deepseek = {
    "layers.",
    ".self_attn.",
    {PLAIN("q_proj.weight", Q), PLAIN("q_b_proj.weight", Q), PLAIN("q_a_proj.weight", Q_A),
     PLAIN("q_a_layernorm.weight", Q_A_NORM), PLAIN("kv_a_proj_with_mqa.weight", KV_A),
     PLAIN("kv_a_layernorm.weight", KV_A_NORM), PLAIN("kv_b_proj.weight", KV_B), PLAIN("o_proj.weight", O), ANGLES},
};

#define COSMOS3_ROWS                                                                                                   \
    MERGED("to_qkv.weight", Q), PLAIN("to_q.weight", Q), PLAIN("to_k.weight", K), PLAIN("to_v.weight", V),             \
        PLAIN("to_out.weight", O), PLAIN("to_out.0.weight", O), PLAIN("norm_q.weight", Q_NORM),                        \
        PLAIN("norm_k.weight", K_NORM)

const vka_tensor_names vka_names_cosmos3_self = {
    "layers.", ".self_attn.", {COSMOS3_ROWS, PLAIN("k_norm_und_for_gen.weight", K_OUT_NORM)}};
const vka_tensor_names vka_names_cosmos3_cross = {"gen_layers.", ".cross_attention.", {COSMOS3_ROWS}};

const vka_tensor_names vka_names_gguf = {
    "blk.",
    ".attn_",
    {LINEAR("q", Q), LINEAR("k", K), LINEAR("v", V), LINEAR("output", O), MERGED("qkv.weight", Q),
     MERGED("qkv.bias", Q_BIAS), PLAIN("q_norm.weight", Q_NORM), PLAIN("k_norm.weight", K_NORM),
     PLAIN("sinks.weight", SINKS), IGNORED("norm.weight"), IGNORED("norm.bias"), IGNORED("norm_2.weight"),
     IGNORED("norm_2.bias"), IGNORED("output_norm.weight"), IGNORED("output_norm.bias"), IGNORED("rot_embd.weight")},
};
