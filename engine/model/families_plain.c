/* The families whose layers are laid out, and not run: heads and head sizes follow from their keys, what they compute
 * is not read. */
#include "model/family_keys.h"

#define ROW(type, class, why, ...)                                                                                     \
    {                                                                                                                  \
        .model_type = (type), .name = (class), .not_run = (why), __VA_ARGS__                                           \
    }
#define LLAMA .keys = &vka_keys_llama, .defaults = {.kv_heads = VKA_AS_HEADS}
#define GLM   .keys = &glm_keys, .geometry = vka_chatglm_geometry

static const vka_geometry_keys glm_keys = {"hidden_size", "num_layers", "num_attention_heads", NULL, "kv_channels"};
static const vka_geometry_keys bloom_keys = {"hidden_size", "n_layer", "n_head", NULL, NULL};

#define UNCHECKED "its attention has not been checked against another implementation"

const vka_family vka_plain_families[] = {
    ROW("llama4", "Llama4", "attention in chunks, QK-norm without weights and queries scaled by position are missing",
        LLAMA, .text_type = "llama4_text", .suffix = "ForConditionalGeneration"),
    ROW("ministral3", "Ministral3", "queries scaled by position (llama_4_scaling_beta) are missing", LLAMA),
    ROW("mistral3", "Mistral3", "queries scaled by position (llama_4_scaling_beta) are missing", LLAMA,
        .text_type = "ministral3", .suffix = "ForConditionalGeneration"),
    ROW("cohere", "Cohere", UNCHECKED, LLAMA),
    ROW("cohere2", "Cohere2", UNCHECKED, LLAMA),
    ROW("glm", "Glm", UNCHECKED, LLAMA),
    ROW("glm4", "Glm4", UNCHECKED, LLAMA),
    ROW("chatglm", "ChatGLM", UNCHECKED, GLM, .suffix = "Model"),
    ROW("bloom", "Bloom", UNCHECKED, .keys = &bloom_keys),
    ROW("mpt", "MPT", UNCHECKED, .keys = &vka_keys_mpt),
    ROW("nemotron", "Nemotron", UNCHECKED, LLAMA),
    ROW("nemotron-nas", "DeciLM", UNCHECKED, .keys = &vka_keys_heads, .geometry = vka_nemotron_nas_geometry),
    ROW("stablelm", "StableLm", UNCHECKED, LLAMA),
    ROW("minicpm", "MiniCPM", UNCHECKED, LLAMA),
    ROW("internlm2", "InternLM2", UNCHECKED, LLAMA),
    ROW("olmo", "Olmo", UNCHECKED, LLAMA),
    ROW("granite", "Granite", UNCHECKED, LLAMA),
    ROW("baichuan", "Baichuan", UNCHECKED, .keys = &vka_keys_heads),
    ROW("orion", "Orion", UNCHECKED, LLAMA),
};

const size_t vka_plain_family_count = sizeof(vka_plain_families) / sizeof(vka_plain_families[0]);
