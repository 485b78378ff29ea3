/* The blocks of tests/data/hf that run, and of tests/data/gguf. */
#include "layer/hf_block.h"

const hf_case hf_cases[] = {
    {"llama", VKA_BLOCK_SELF, 0, NULL}, {"llama-bias", VKA_BLOCK_SELF, 0, NULL}, {"mistral", VKA_BLOCK_SELF, 0, NULL},
    {"qwen2", VKA_BLOCK_SELF, 0, NULL}, {"qwen2", VKA_BLOCK_SELF, 1, NULL}, {"qwen3", VKA_BLOCK_SELF, 0, NULL},
    {"llama3-rope", VKA_BLOCK_SELF, 0, NULL}, {"llama-linear", VKA_BLOCK_SELF, 0, NULL},
    {"llama-dynamic", VKA_BLOCK_SELF, 0, NULL}, {"gemma3", VKA_BLOCK_SELF, 0, NULL},
    {"gemma3", VKA_BLOCK_SELF, 1, NULL}, {"phi3", VKA_BLOCK_SELF, 0, NULL}, {"phi3", VKA_BLOCK_SELF, 0, "layer0-long"},
    {"gpt-neox", VKA_BLOCK_SELF, 0, NULL}, {"gptj", VKA_BLOCK_SELF, 0, NULL}, {"starcoder2", VKA_BLOCK_SELF, 0, NULL},
    {"dbrx", VKA_BLOCK_SELF, 0, NULL}, {"falcon-multi-query", VKA_BLOCK_SELF, 0, NULL},
    {"falcon-groups", VKA_BLOCK_SELF, 0, NULL}, {"gpt-bigcode", VKA_BLOCK_SELF, 0, NULL},
    {"whisper", VKA_BLOCK_SELF, 0, NULL}, {"qwen2.5-vl", VKA_BLOCK_SELF, 0, NULL},
    {"qwen3-vl", VKA_BLOCK_SELF, 0, NULL}, {"bert", VKA_BLOCK_SELF, 0, NULL}, {"minilm", VKA_BLOCK_SELF, 3, NULL},
    {"t5", VKA_BLOCK_CROSS, 0, NULL}, {"whisper", VKA_BLOCK_CROSS, 0, NULL}, {"whisper", VKA_BLOCK_ENCODER, 0, NULL},
    {"cosmos3", VKA_BLOCK_SELF, 0, NULL}, {"cosmos3", VKA_BLOCK_CROSS, 0, NULL},
    {"cosmos3-edge", VKA_BLOCK_SELF, 0, NULL}, {"cosmos3-edge", VKA_BLOCK_CROSS, 0, NULL},
    {"deepseek-v2", VKA_BLOCK_SELF, 0, NULL}, {"deepseek-v3", VKA_BLOCK_SELF, 0, NULL},
    /* GGUF files of the same models, and one with quantised weights */
    {"llama3-rope.gguf", VKA_BLOCK_SELF, 0, NULL}, {"qwen2.gguf", VKA_BLOCK_SELF, 0, NULL},
    {"qwen3.gguf", VKA_BLOCK_SELF, 0, NULL}, {"phi3.gguf", VKA_BLOCK_SELF, 0, NULL},
    {"phi3.gguf", VKA_BLOCK_SELF, 0, "layer0-long"}, {"llama-quantised.gguf", VKA_BLOCK_SELF, 0, NULL},
    {"llama-quantised.gguf", VKA_BLOCK_SELF, 1, NULL},
