/* Head layouts of public models, one row each, from the models' published configurations. A row describes one layer;
 * where a model's layers differ, the kind that most of them are. Rows are resolved: a test resolves each again and
 * expects no change. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/near.h"
#include "vkattn/model.h"

/* 1 / sqrt(head size), which a constant expression cannot compute */
#define SCALE_64  0.125
#define SCALE_80  0.11180339887498948
#define SCALE_96  0.10206207261596577
#define SCALE_128 0.08838834764831843
#define SCALE_192 0.07216878364870323
#define SCALE_256 0.0625
/* 0.1 m ln 40 + 1, by whose square DeepSeek multiplies the scale */
#define MSCALE_1   1.3688879454113936
#define MSCALE_707 1.2608037774058554

/* What every row gives, and then its options. */
#define ROW(name_, heads_, kv_heads_, dim, v_dim, hidden, scale_, note_, ...)                                          \
    {                                                                                                                  \
        .name = (name_), .note = (note_), .desc = {                                                                    \
            .struct_size = sizeof(vka_layer_desc),                                                                     \
            .hidden_size = (hidden),                                                                                   \
            .heads = (heads_),                                                                                         \
            .kv_heads = (kv_heads_),                                                                                   \
            .head_dim = (dim),                                                                                         \
            .v_head_dim = (v_dim),                                                                                     \
            .kv_hidden_size = (hidden),                                                                                \
            .kv_policy = VKA_KV_REPLICATE,                                                                             \
            .scale = (scale_),                                                                                         \
            .norm_eps = 1e-6,                                                                                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* RoPE over the first `rotary` elements of a head. */
#define ROPE(name, heads, kv_heads, dim, hidden, theta, rotary, window_, note)                                         \
    ROW(name, heads, kv_heads, dim, dim, hidden, SCALE_##dim, note, .rope_theta = (theta), .rotary_dim = (rotary),     \
        .window = (window_))
/* The same with scaling or other options, which follow. */
#define MORE(name, heads, kv_heads, dim, hidden, theta, rotary, note, ...)                                             \
    ROW(name, heads, kv_heads, dim, dim, hidden, SCALE_##dim, note, .rope_theta = (theta), .rotary_dim = (rotary),     \
        __VA_ARGS__)
/* No positions in the attention block: they are learned and added to the embeddings. */
#define PLAIN(name, heads, kv_heads, dim, hidden)                                                                      \
    ROW(name, heads, kv_heads, dim, dim, hidden, SCALE_##dim, NULL, .rope_type = VKA_ROPE_NONE, .rope_theta = 10000.0)
/* RMSNorm of every Q and K head. */
#define NORM .qk_norm = VKA_QK_NORM_PER_HEAD

#define LLAMA3(times)                                                                                                  \
    .rope_type = VKA_ROPE_LLAMA3,                                                                                      \
    .rope_scaling = {.factor = (times), .original_context = 8192, .low_freq_factor = 1, .high_freq_factor = 4}
#define YARN(times, context, ...)                                                                                      \
    .rope_type = VKA_ROPE_YARN, .rope_scaling = {.factor = (times), .original_context = (context), __VA_ARGS__}
/* DeepSeek: the last 64 elements turn, in neighbouring pairs. */
#define LATENT(name, heads, hidden, scale, q_rank, ...)                                                                \
    ROW(name, heads, heads, 192, 128, hidden, scale, NULL, .rope_theta = 10000.0, .rotary_dim = 64,                    \
        .rotary_offset = 128, .rope_pairing = VKA_ROPE_INTERLEAVED, .kv_lora_rank = 512, .q_lora_rank = (q_rank),      \
        YARN(40, 4096, __VA_ARGS__))

#define NOT_MODELLED    " is laid out, not modelled: default RoPE is used"
#define DYNAMIC(factor) "dynamic RoPE scaling (factor " factor ")" NOT_MODELLED
#define LONGROPE        "longrope scaling (trained length 4096)" NOT_MODELLED
#define OTHER_LAYERS    "every other layer has no window"

static const vka_preset presets[] = {
    ROPE("llama2-7b", 32, 32, 128, 4096, 10000.0, 128, 0, NULL),
    ROPE("llama2-13b", 40, 40, 128, 5120, 10000.0, 128, 0, NULL),
    ROPE("llama2-70b", 64, 8, 128, 8192, 10000.0, 128, 0, NULL),
    ROPE("codellama-34b", 64, 8, 128, 8192, 1e6, 128, 0, NULL),
    ROPE("tinyllama-1.1b-v1.0", 32, 4, 64, 2048, 10000.0, 64, 0, NULL),
    MORE("llama3.1-8b", 32, 8, 128, 4096, 5e5, 128, NULL, LLAMA3(8)),
    MORE("llama3.1-70b", 64, 8, 128, 8192, 5e5, 128, NULL, LLAMA3(8)),
    MORE("llama3.2-1b", 32, 8, 64, 2048, 5e5, 64, NULL, LLAMA3(32)),
    MORE("llama3.2-3b", 24, 8, 128, 3072, 5e5, 128, NULL, LLAMA3(32)),
    ROPE("llama4-scout-17b-16e", 40, 8, 128, 5120, 10000.0, 128, 0,
         "QK norm without weights, attention in chunks of 8192, the layers without RoPE (every 4th) and the RoPE base "
         "are "
         "not modelled"),
    ROPE("mistral-7b-v0.1", 32, 8, 128, 4096, 10000.0, 128, 4096, NULL),
    ROPE("mistral-7b-v0.3", 32, 8, 128, 4096, 1e6, 128, 0, NULL),
    MORE("ministral3-3b-2512", 32, 8, 128, 3072, 1e6, 128, "queries scaled by position are not modelled",
         YARN(16, 16384, .mscale = 1, .mscale_all_dim = 1)),
    ROPE("mixtral-8x7b-v0.1", 32, 8, 128, 4096, 1e6, 128, 0, NULL),
    PLAIN("gpt2", 12, 12, 64, 768),
    PLAIN("gpt_bigcode-1b", 16, 1, 128, 2048),
    MORE("gpt-j-6b", 16, 16, 256, 4096, 10000.0, 64, NULL, .rope_pairing = VKA_ROPE_INTERLEAVED),
    ROPE("redpajama-3b", 32, 32, 80, 2560, 10000.0, 80, 0, NULL),
    ROPE("phi-1.5", 32, 32, 64, 2048, 10000.0, 32, 0, NULL),
    ROPE("phi-2", 32, 32, 80, 2560, 10000.0, 32, 0, NULL),
    ROPE("phi-3.5-mini", 32, 32, 96, 3072, 10000.0, 96, 262144, LONGROPE),
    ROPE("phi-4-mini", 24, 8, 128, 3072, 10000.0, 96, 262144, LONGROPE),
    ROPE("qwen1.8b", 16, 16, 128, 2048, 10000.0, 128, 0, NULL),
    ROPE("qwen2-0.5b", 14, 2, 64, 896, 1e6, 64, 0, NULL),
    ROPE("qwen2-1.5b", 12, 2, 128, 1536, 1e6, 128, 0, NULL),
    ROPE("qwen2.5-3b", 16, 2, 128, 2048, 1e6, 128, 0, NULL),
    ROPE("qwen2-7b", 28, 4, 128, 3584, 1e6, 128, 0, NULL),
    MORE("qwen3-0.6b", 16, 8, 128, 1024, 1e6, 128, NULL, NORM),
    MORE("qwen3-1.7b", 16, 8, 128, 2048, 1e6, 128, NULL, NORM),
    MORE("qwen3-4b", 32, 8, 128, 2560, 1e6, 128, NULL, NORM),
    MORE("qwen3-8b", 32, 8, 128, 4096, 1e6, 128, NULL, NORM),
    MORE("qwen3-next-80b-a3b", 16, 2, 256, 2048, 10000.0, 64, "the RoPE base is not modelled", NORM,
         .norm_unit_offset = 1, .gate = VKA_GATE_SIGMOID),
    MORE("gpt-oss-120b", 64, 8, 64, 2880, 150000.0, 64, OTHER_LAYERS, YARN(32, 4096, .no_truncate = 1), .window = 128,
         .sinks = 1),
    ROPE("gemma-2b", 8, 1, 256, 2048, 10000.0, 256, 0, NULL),
    MORE("gemma2-2b", 8, 4, 256, 2304, 10000.0, 256, OTHER_LAYERS, .window = 4096, .softcap = 50),
    MORE("gemma2-9b", 16, 8, 256, 3584, 10000.0, 256, OTHER_LAYERS, .window = 4096, .softcap = 50),
    ROW("gemma2-27b", 32, 16, 128, 128, 4608, 1.0 / 12, OTHER_LAYERS, .rope_theta = 10000.0, .rotary_dim = 128,
        .window = 4096, .softcap = 50),
    MORE("gemma3-1b-it", 4, 1, 256, 1152, 10000.0, 256, "every sixth layer has no window and RoPE base 1000000", NORM,
         .norm_unit_offset = 1, .window = 512),
    ROPE("chatglm-6b", 32, 2, 128, 4096, 10000.0, 128, 0, "ChatGLM's own RoPE" NOT_MODELLED),
    ROPE("internlm2-7b", 32, 8, 128, 4096, 1e6, 128, 0, NULL),
    ROPE("internlm2.5-7b", 32, 8, 128, 4096, 1e6, 128, 0, DYNAMIC("2")),
    ROPE("starcoder2-7b", 36, 4, 128, 4608, 1e6, 128, 4096, NULL),
    ROPE("stablelm-3b", 32, 32, 80, 2560, 10000.0, 20, 0, NULL),
    ROPE("stablelm2-1.6b", 32, 32, 64, 2048, 10000.0, 16, 0, NULL),
    ROPE("smollm2-135m", 9, 3, 64, 576, 1e5, 64, 0, NULL),
    ROPE("smollm2-360m", 15, 5, 64, 960, 1e5, 64, 0, NULL),
    ROPE("smollm-1.7b", 32, 32, 64, 2048, 10000.0, 64, 0, NULL),
    MORE("aya-23-8b", 32, 8, 128, 4096, 10000.0, 128, NULL, .rope_pairing = VKA_ROPE_INTERLEAVED),
    ROPE("minicpm-2b", 36, 36, 64, 2304, 1e6, 64, 0, DYNAMIC("4")),
    ROPE("orion-14b", 40, 40, 128, 5120, 10000.0, 128, 0, NULL),
    LATENT("deepseek-v2-lite", 16, 2048, SCALE_192 *MSCALE_707 *MSCALE_707, 0, .mscale = 0.707,
           .mscale_all_dim = 0.707),
    LATENT("deepseek-v3", 128, 7168, SCALE_192 *MSCALE_1 *MSCALE_1, 1536, .mscale = 1, .mscale_all_dim = 1),
};

size_t vka_preset_count(void)
{
    return sizeof(presets) / sizeof(presets[0]);
}

const vka_preset *vka_preset_at(size_t index)
{
    return index < vka_preset_count() ? &presets[index] : NULL;
}

/* Lists the names near `name`, or with `name` NULL all of them, with commas between; returns how many. */
static size_t list_names(const char *name, char *out, size_t capacity)
{
    size_t count = 0, length = 0;

    out[0] = '\0';
    for (size_t i = 0; i < vka_preset_count() && length < capacity; i++) {
        if (name && !vka_near(name, presets[i].name))
            continue;
        length += (size_t)snprintf(out + length, capacity - length, "%s%s", count ? ", " : "", presets[i].name);
        count++;
    }
    return count;
}

vka_status vka_preset_find(const char *name, const vka_preset **preset, vka_error *error)
{
    char names[2048];

    if (!name || !preset)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", name ? "preset" : "name");
    for (size_t i = 0; i < vka_preset_count(); i++) {
        if (strcmp(presets[i].name, name) != 0)
            continue;
        *preset = &presets[i];
        return VKA_OK;
    }
    if (list_names(name, names, sizeof(names)) > 0)
        return vka_fail(error, VKA_ERR_ARGUMENT, "there is no preset '%.64s'; near it: %s", name, names);
    list_names(NULL, names, sizeof(names));
    return vka_fail(error, VKA_ERR_ARGUMENT, "there is no preset '%.64s'; the presets are: %s", name, names);
}
