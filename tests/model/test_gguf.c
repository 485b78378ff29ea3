/* GGUF files: what is not sound is refused with a message that names it; blocks decode to what the gguf package makes
 * of them. Sound files as a whole are run by test_layer_hf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/gguf_config.h"

enum {
    ROOM = 4096,
    TYPE_U32 = 4,
    TYPE_F32 = 6,
    TYPE_BOOL = 7,
    TYPE_TEXT = 8,
    TYPE_ARRAY = 9,
    F32 = 0,
    Q4_K = 12,
    IQ2_S = 22
};

/* A file that is written piece by piece. */
typedef struct image {
    unsigned char bytes[ROOM];
    size_t size;
} image;

static void put(image *file, uint64_t value, size_t bytes)
{
    assert_true(file->size + bytes <= ROOM);
    memcpy(file->bytes + file->size, &value, bytes);
    file->size += bytes;
}

static void put_text(image *file, const char *text)
{
    put(file, strlen(text), 8);
    assert_true(file->size + strlen(text) <= ROOM);
    memcpy(file->bytes + file->size, text, strlen(text));
    file->size += strlen(text);
}

static void put_head(image *file, uint32_t version, uint64_t tensors, uint64_t keys)
{
    *file = (image){.size = 0};
    put(file, 0x46554747, 4);
    put(file, version, 4);
    put(file, tensors, 8);
    put(file, keys, 8);
}

static void put_u32(image *file, const char *key, uint32_t value)
{
    put_text(file, key);
    put(file, TYPE_U32, 4);
    put(file, value, 4);
}

static void put_key_text(image *file, const char *key, const char *value)
{
    put_text(file, key);
    put(file, TYPE_TEXT, 4);
    put_text(file, value);
}

static void put_f32(image *file, const char *key, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    put_text(file, key);
    put(file, TYPE_F32, 4);
    put(file, bits, 4);
}

static void put_flag(image *file, const char *key, uint64_t value)
{
    put_text(file, key);
    put(file, TYPE_BOOL, 4);
    put(file, value, 1);
}

static void put_tensor(image *file, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset)
{
    put_text(file, name);
    put(file, 2, 4);
    put(file, cols, 8);
    put(file, rows, 8);
    put(file, type, 4);
    put(file, offset, 8);
}

static void put_data(image *file, size_t bytes)
{
    file->size = (file->size + 31) / 32 * 32 + bytes;
    assert_true(file->size <= ROOM);
}

static void refused(const image *file, size_t size, vka_status status, const char *words)
{
    /* a block of its own size, so that a read past it is seen */
    unsigned char *exact = vka_alloc(NULL, size + 1, 1);
    vka_gguf *made = NULL;
    vka_error error = {0};

    memcpy(exact, file->bytes, size);
    assert_int_equal(vka_gguf_parse(&made, exact, size, "input", &error), status);
    assert_null(made);
    if (!strstr(error.message, words) || !strstr(error.message, "input"))
        fail_msg("'%s' does not say '%s'", error.message, words);
    vka_free(NULL, exact);
}

static void headers(void **state)
{
    image file;

    (void)state;
    put_head(&file, 3, 0, 0);
    refused(&file, 3, VKA_ERR_FORMAT, "does not begin with 'GGUF'");
    refused(&file, 20, VKA_ERR_FORMAT, "number of keys");
    put_head(&file, 1, 0, 0);
    refused(&file, file.size, VKA_ERR_UNSUPPORTED, "version 1, expected 2 or 3");
    put_head(&file, 3u << 24, 0, 0);
    refused(&file, file.size, VKA_ERR_UNSUPPORTED, "big-endian?");
    put_head(&file, 3, UINT64_MAX, 0);
    refused(&file, file.size, VKA_ERR_FORMAT, "tensors cannot be in the 0 bytes");
    put_head(&file, 3, 0, UINT64_MAX / 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "keys cannot be in the 0 bytes");
}

static void metadata(void **state)
{
    image file;

    (void)state;
    put_head(&file, 3, 0, 2);
    put_u32(&file, "a", 1);
    put_u32(&file, "a", 1);
    refused(&file, file.size, VKA_ERR_FORMAT, "'a' is there twice");
    put_head(&file, 3, 0, 1);
    put_u32(&file, "a", 1);
    refused(&file, file.size - 1, VKA_ERR_FORMAT, "cut short?");
    put_head(&file, 3, 0, 1);
    put_text(&file, "key");
    put(&file, 13, 4);
    put(&file, 0, 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "'key' has a type that is not known");
    put_head(&file, 3, 0, 1);
    put_text(&file, "key");
    put(&file, TYPE_F32, 4);
    put(&file, 0x7f800000, 4);
    refused(&file, file.size, VKA_ERR_FORMAT, "no finite number");
    put_head(&file, 3, 0, 1);
    put_text(&file, "key");
    put(&file, TYPE_ARRAY, 4);
    put(&file, TYPE_U32, 4);
    put(&file, UINT64_MAX / 4 + 1, 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "longer than the file");
    put_head(&file, 3, 0, 1);
    put_text(&file, "key");
    put(&file, TYPE_ARRAY, 4);
    put(&file, TYPE_ARRAY, 4);
    put(&file, 1, 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "or of arrays");
    put_head(&file, 3, 0, 1);
    put_key_text(&file, "key", "\xff\xfe");
    refused(&file, file.size, VKA_ERR_FORMAT, "no UTF-8 text");
    put_head(&file, 3, 0, 1);
    put_text(&file, "key");
    put(&file, TYPE_TEXT, 4);
    put(&file, 2, 8);
    put(&file, 'a', 2); /* and NUL */
    refused(&file, file.size, VKA_ERR_FORMAT, "without NUL");
    put_head(&file, 3, 0, 1);
    put_flag(&file, "key", 2);
    refused(&file, file.size, VKA_ERR_FORMAT, "neither true nor false");
    put_head(&file, 3, 0, 1);
    put_key_text(&file, "", "a");
    refused(&file, file.size, VKA_ERR_FORMAT, "a key of 0 bytes");
    put_head(&file, 3, 0, 1);
    put(&file, UINT64_MAX, 8);
    put(&file, 0, 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "a key at byte 32 needs 18446744073709551615 bytes");
    put_head(&file, 3, 0, 1);
    put_text(&file, "tokenizer.list"); /* stepped over, and still inside the file */
    put(&file, TYPE_ARRAY, 4);
    put(&file, TYPE_TEXT, 4);
    put(&file, UINT64_MAX, 8);
    refused(&file, file.size, VKA_ERR_FORMAT, "longer than the file");
}

static void accepted(const image *file)
{
    vka_gguf *made = NULL;
    vka_error error = {0};

    if (vka_gguf_parse(&made, file->bytes, file->size, "input", &error) != VKA_OK)
        fail_msg("%s", error.message);
    vka_gguf_close(&made);
}

/* What only describes the file may hold anything. */
static void keys_of_no_use(void **state)
{
    image file;

    (void)state;
    put_head(&file, 2, 0, 3);
    put_key_text(&file, "general.author", "\xff\xfe");
    put_f32(&file, "tokenizer.score", 1e30f * 1e30f);
    put_text(&file, "tokenizer.scores");
    put(&file, TYPE_ARRAY, 4);
    put(&file, TYPE_F32, 4);
    put(&file, 1, 8);
    put(&file, 0x7fc00000, 4);
    accepted(&file);
}

static void alignments(void **state)
{
    static const uint32_t wrong[] = {0, 3, 48, UINT32_MAX};
    image file;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put_head(&file, 3, 1, 1);
        put_u32(&file, "general.alignment", wrong[i]);
        put_tensor(&file, "w", 8, 2, F32, 0);
        put_data(&file, 1024);
        refused(&file, file.size, VKA_ERR_FORMAT, "general.alignment is");
    }
    put_head(&file, 3, 1, 1);
    put_key_text(&file, "general.alignment", "32");
    put_tensor(&file, "w", 8, 2, F32, 0);
    put_data(&file, 1024);
    refused(&file, file.size, VKA_ERR_FORMAT, "general.alignment is");
}

static void truncation_at_every_byte(void **state)
{
    image file;

    (void)state;
    put_head(&file, 3, 2, 3);
    put_key_text(&file, "general.architecture", "llama");
    put_flag(&file, "flag", 1);
    put_text(&file, "list");
    put(&file, TYPE_ARRAY, 4);
    put(&file, TYPE_U32, 4);
    put(&file, 2, 8);
    put(&file, 7, 8);
    put_tensor(&file, "w", 8, 2, F32, 0);
    put_tensor(&file, "k", 256, 1, Q4_K, 64);
    put_data(&file, 64 + 144);
    accepted(&file);
    for (size_t size = 0; size < file.size; size++)
        refused(&file, size, VKA_ERR_FORMAT, "input");
}

static void tensors(void **state)
{
    image file;

    (void)state;
    put_head(&file, 3, 1, 0);
    put_tensor(&file, "w", 8, 2, F32, 0);
    put_data(&file, 63);
    refused(&file, file.size, VKA_ERR_FORMAT, "'w' lies beyond the end");
    put_head(&file, 3, 1, 0);
    put_tensor(&file, "w", UINT64_MAX / 4, 2, F32, 0);
    refused(&file, file.size, VKA_ERR_FORMAT, "'w' has more elements");
    put_head(&file, 3, 1, 0);
    put_tensor(&file, "w", 8, 0, F32, 0);
    refused(&file, file.size, VKA_ERR_FORMAT, "'w' has a dimension of 0");
    put_head(&file, 3, 1, 0);
    put_tensor(&file, "w", 128, 2, Q4_K, 0);
    refused(&file, file.size, VKA_ERR_FORMAT, "'w' has rows that are not whole blocks");
    put_head(&file, 3, 1, 0);
    put_tensor(&file, "w", 8, 2, F32, 16);
    put_data(&file, 128);
    refused(&file, file.size, VKA_ERR_FORMAT, "multiple of general.alignment");
    put_head(&file, 3, 2, 0);
    put_tensor(&file, "w", 8, 2, F32, 0);
    put_tensor(&file, "u", 8, 2, F32, 32);
    put_data(&file, 128);
    refused(&file, file.size, VKA_ERR_FORMAT, "overlaps");
    put_head(&file, 3, 2, 0);
    put_tensor(&file, "w", 8, 2, F32, 0);
    put_tensor(&file, "w", 8, 2, F32, 64);
    put_data(&file, 128);
    refused(&file, file.size, VKA_ERR_FORMAT, "'w' is there twice");
}

/* ---- what a sound file says ---- */

static void put_llama(image *file, uint64_t more_keys)
{
    put_head(file, 3, 0, 7 + more_keys);
    put_key_text(file, "general.architecture", "llama");
    put_u32(file, "llama.block_count", 2);
    put_u32(file, "llama.embedding_length", 64);
    put_u32(file, "llama.attention.head_count", 4);
    put_u32(file, "llama.attention.head_count_kv", 2);
    put_u32(file, "llama.context_length", 128);
    put_u32(file, "llama.rope.dimension_count", 16);
}

static vka_status configure(const image *file, vka_layer_desc *desc, vka_error *error)
{
    vka_gguf *made = NULL;
    vka_config config = {0};
    vka_status status = vka_gguf_parse(&made, file->bytes, file->size, "input", error);

    if (status == VKA_OK)
        status = vka_gguf_config(&config, made, "input", error);
    if (status == VKA_OK)
        status = vka_config_layer(&config, VKA_BLOCK_SELF, 1, desc, "input", error);
    vka_config_free(&config);
    vka_gguf_close(&made);
    return status;
}

static void says(const image *file, vka_status status, const char *words)
{
    vka_layer_desc desc;
    vka_error error = {0};

    if (configure(file, &desc, &error) != status || !strstr(error.message, words))
        fail_msg("status %d, '%s', expected %d and '%s'", (int)error.status, error.message, (int)status, words);
}

static void descriptions(void **state)
{
    image file;
    vka_layer_desc desc;
    vka_error error = {0};

    (void)state;
    put_llama(&file, 0);
    if (configure(&file, &desc, &error) != VKA_OK)
        fail_msg("%s", error.message);
    assert_int_equal(desc.heads, 4);
    assert_int_equal(desc.kv_heads, 2);
    assert_int_equal(desc.head_dim, 16);
    assert_int_equal(desc.rope_pairing, VKA_ROPE_INTERLEAVED);
    assert_int_equal(desc.window, 0);
    put_llama(&file, 1);
    put_u32(&file, "llama.attention.sliding_window", 9);
    assert_int_equal(configure(&file, &desc, &error), VKA_OK);
    assert_int_equal(desc.window, 9); /* Mistral */
}

/* The keys that every decoder has, for a model of `layers` layers with 4 heads of 16 in 96 elements, and more. */
static void put_model(image *file, const char *name, uint32_t layers, uint64_t more_keys)
{
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {{"embedding_length", 96},       {"context_length", 128},      {"attention.head_count", 4},
                {"attention.head_count_kv", 2}, {"attention.key_length", 16}, {"attention.value_length", 16}};
    char key[64];

    put_head(file, 3, 0, 3 + sizeof(keys) / sizeof(keys[0]) + more_keys);
    put_key_text(file, "general.architecture", name);
    snprintf(key, sizeof(key), "%s.block_count", name);
    put_u32(file, key, layers);
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", name);
    put_f32(file, key, 1e-6f);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        snprintf(key, sizeof(key), "%s.%s", name, keys[i].key);
        put_u32(file, key, keys[i].value);
    }
}

static void described(const image *file, uint32_t layer, vka_layer_desc *desc)
{
    vka_gguf *made = NULL;
    vka_config config = {0};
    vka_error error = {0};
    vka_status status = vka_gguf_parse(&made, file->bytes, file->size, "input", &error);

    if (status == VKA_OK)
        status = vka_gguf_config(&config, made, "input", &error);
    if (status == VKA_OK)
        status = vka_config_layer(&config, VKA_BLOCK_SELF, layer, desc, "input", &error);
    if (status != VKA_OK)
        fail_msg("%s", error.message);
    vka_config_free(&config);
    vka_gguf_close(&made);
}

static bool near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

/* Windows, scales and norms of Gemma: what llama.cpp knows of the family, and the file does not say. */
static void gemma(void **state)
{
    image file;
    vka_layer_desc desc;

    (void)state;
    put_model(&file, "gemma2", 4, 2);
    put_u32(&file, "gemma2.attention.sliding_window", 9);
    put_f32(&file, "gemma2.attn_logit_softcapping", 50);
    described(&file, 0, &desc);
    assert_int_equal(desc.window, 9);
    assert_true(desc.softcap == 50 && near(desc.scale, 0.25) && desc.rope_pairing == VKA_ROPE_HALF_SPLIT);
    described(&file, 1, &desc);
    assert_int_equal(desc.window, 0);
    put_model(&file, "gemma2", 46, 2); /* the 27B model */
    put_u32(&file, "gemma2.attention.sliding_window", 9);
    put_f32(&file, "gemma2.attn_logit_softcapping", 50);
    described(&file, 0, &desc);
    assert_true(near(desc.scale * desc.scale, 1.0 / 24));
    put_model(&file, "gemma3", 7, 4);
    put_u32(&file, "gemma3.attention.sliding_window", 9);
    put_f32(&file, "gemma3.rope.freq_base", 1e6f);
    put_key_text(&file, "gemma3.rope.scaling.type", "linear");
    put_f32(&file, "gemma3.rope.scaling.factor", 8);
    described(&file, 4, &desc);
    assert_int_equal(desc.window, 9);
    assert_int_equal(desc.rope_type, VKA_ROPE_DEFAULT);
    assert_true(desc.rope_theta == 1e4);
    assert_int_equal(desc.qk_norm, VKA_QK_NORM_PER_HEAD);
    assert_int_equal(desc.norm_unit_offset, 0); /* the converter has added the 1 */
    described(&file, 5, &desc);
    assert_int_equal(desc.window, 0);
    assert_int_equal(desc.rope_type, VKA_ROPE_LINEAR);
    assert_true(desc.rope_theta == 1e6 && desc.rope_scaling.factor == 8);
}

static void rope_scaling(void **state)
{
    image file;
    vka_layer_desc desc;

    (void)state;
    put_model(&file, "llama", 2, 1);
    put_f32(&file, "llama.rope.scaling.factor", 4); /* without a type: linear */
    described(&file, 0, &desc);
    assert_true(desc.rope_type == VKA_ROPE_LINEAR && desc.rope_scaling.factor == 4);
    put_model(&file, "llama", 2, 2);
    put_key_text(&file, "llama.rope.scaling.type", "none");
    put_f32(&file, "llama.rope.scaling.factor", 4);
    described(&file, 0, &desc);
    assert_int_equal(desc.rope_type, VKA_ROPE_DEFAULT);
    put_model(&file, "qwen3", 2, 3);
    put_key_text(&file, "qwen3.rope.scaling.type", "yarn");
    put_f32(&file, "qwen3.rope.scaling.factor", 4);
    put_u32(&file, "qwen3.rope.scaling.original_context_length", 32);
    described(&file, 0, &desc);
    assert_true(desc.rope_type == VKA_ROPE_YARN && desc.rope_scaling.original_context == 32);
    assert_int_equal(desc.rope_scaling.no_truncate, 0);
    put_model(&file, "qwen3", 2, 4);
    put_key_text(&file, "qwen3.rope.scaling.type", "yarn");
    put_f32(&file, "qwen3.rope.scaling.factor", 4);
    put_u32(&file, "qwen3.rope.scaling.original_context_length", 32);
    put_f32(&file, "qwen3.rope.scaling.attn_factor", 1.2f);
    says(&file, VKA_ERR_UNSUPPORTED, "qwen3.rope.scaling.attn_factor is not 1");
}

static void divisors_that_are_no_numbers(void **state)
{
    image file;

    (void)state;
    put_model(&file, "llama", 2, 0);
    memcpy(file.bytes + 8, &(uint64_t){1}, 8); /* tensors */
    put_text(&file, "rope_freqs.weight");
    put(&file, 1, 4);
    put(&file, 8, 8);
    put(&file, F32, 4);
    put(&file, 0, 8);
    put_data(&file, 32);
    memset(file.bytes + file.size - 16, 0xff, 16);
    says(&file, VKA_ERR_FORMAT, "element 4 of tensor 'rope_freqs.weight' is no finite number");
}

/* Keys that would change the result of a family that does not have them. */
static void keys_that_a_family_does_not_have(void **state)
{
    image file;

    (void)state;
    put_model(&file, "qwen2", 2, 1);
    put_u32(&file, "qwen2.attention.sliding_window", 9);
    says(&file, VKA_ERR_UNSUPPORTED, "not which layers have the window");
    put_model(&file, "olmo2", 2, 1);
    put_u32(&file, "olmo2.attention.sliding_window", 9); /* OLMo 3 */
    says(&file, VKA_ERR_UNSUPPORTED, "sliding_window");
    put_model(&file, "llama", 2, 1);
    put_f32(&file, "llama.attn_logit_softcapping", 50);
    says(&file, VKA_ERR_UNSUPPORTED, "attn_logit_softcapping");
    put_model(&file, "llama", 2, 1);
    put_u32(&file, "llama.attention.key_length_swa", 8);
    says(&file, VKA_ERR_UNSUPPORTED, "'llama.attention.key_length_swa' is 8");
    put_model(&file, "llama", 2, 1);
    put_flag(&file, "llama.attention.causal", 0);
    says(&file, VKA_ERR_UNSUPPORTED, "llama.attention.causal is not true");
    put_model(&file, "bert", 2, 1);
    put_flag(&file, "bert.attention.causal", 1);
    says(&file, VKA_ERR_UNSUPPORTED, "bert.attention.causal is not false");
}

static void what_is_not_understood_is_refused(void **state)
{
    image file;

    (void)state;
    put_head(&file, 3, 0, 1);
    put_key_text(&file, "general.architecture", "rwkv6");
    says(&file, VKA_ERR_UNSUPPORTED, "general.architecture is rwkv6; known are llama");
    put_head(&file, 3, 0, 0);
    says(&file, VKA_ERR_UNSUPPORTED, "general.architecture is missing");
    put_llama(&file, 1);
    put_u32(&file, "llama.attention.temperature_length", 9);
    says(&file, VKA_ERR_UNSUPPORTED, "'llama.attention.temperature_length' is 9");
    put_llama(&file, 1);
    put_key_text(&file, "llama.rope.scaling.type", "spiral");
    says(&file, VKA_ERR_UNSUPPORTED, "llama.rope.scaling.type is spiral");
    put_llama(&file, 1);
    put_u32(&file, "llama.attention.value_length", 8);
    says(&file, VKA_ERR_UNSUPPORTED, "attention.value_length is 8");
    put_llama(&file, 1);
    put_u32(&file, "split.count", 3);
    says(&file, VKA_ERR_UNSUPPORTED, "split over several files");
}

/* ---- blocks ---- */

static void blocks_are_what_the_gguf_package_makes_of_them(void **state)
{
    static const uint32_t ids[] = {2, 8, 12, 13, 14};
    vka_tensor_file *file = NULL;
    vka_error error = {0};

    (void)state;
    if (vka_tensor_file_open(&file, VKA_TEST_DATA "/blocks.safetensors", &error) != VKA_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const vka_block_format *format = vka_block_format_find(ids[i]);
        float values[7 * 256];
        char name[32];

        assert_non_null(format);
        snprintf(name, sizeof(name), "%s.blocks", format->name);
        const vka_named_tensor *blocks = vka_tensor_file_find(file, name);
        snprintf(name, sizeof(name), "%s.values", format->name);
        const vka_named_tensor *want = vka_tensor_file_find(file, name);
        assert_true(blocks && want && blocks->shape[1] == format->bytes && want->shape[1] == format->elements);
        assert_int_equal(blocks->shape[0], 7);
        vka_blocks_decode(values, format, blocks->data, blocks->shape[0]);
        assert_memory_equal(values, want->data, 7 * format->elements * sizeof(float));
    }
    vka_tensor_file_close(&file);
}

static void types_that_are_known_by_size_only(void **state)
{
    (void)state;
    assert_null(vka_block_format_find(IQ2_S)->decode);
    assert_string_equal(vka_block_format_find(IQ2_S)->name, "IQ2_S");
    assert_null(vka_block_format_find(5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(metadata),
        cmocka_unit_test(keys_of_no_use),
        cmocka_unit_test(alignments),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(tensors),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(gemma),
        cmocka_unit_test(rope_scaling),
        cmocka_unit_test(divisors_that_are_no_numbers),
        cmocka_unit_test(keys_that_a_family_does_not_have),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(blocks_are_what_the_gguf_package_makes_of_them),
        cmocka_unit_test(types_that_are_known_by_size_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
