/* Every type of RoPE in a configuration, in both spellings, and the keys that each must have or must not have. */
#include "model/config_case.h"

#define LLAMA                                                                                                          \
    "\"model_type\":\"llama\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"                   \
    "\"max_position_embeddings\":4096"

/* The same object as rope_scaling with type, with rope_type, and as rope_parameters. */
static vka_layer_desc spelled(const char *type, const char *keys)
{
    static const char *const spellings[] = {
        LLAMA ",\"rope_scaling\":{\"type\":\"%s\"%s}",
        LLAMA ",\"rope_scaling\":{\"rope_type\":\"%s\"%s}",
        LLAMA ",\"rope_parameters\":{\"rope_type\":\"%s\"%s}",
    };
    vka_layer_desc desc = {0};

    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        char body[512];
        vka_layer_desc next;

        snprintf(body, sizeof(body), spellings[i], type, keys);
        next = layer_of(body, 0);
        assert_true(i == 0 || next.rope_type == desc.rope_type);
        assert_true(i == 0 || next.rope_scaling.factor == desc.rope_scaling.factor);
        desc = next;
    }
    return desc;
}

static void refused_as(const char *type, const char *keys, vka_status status, const char *reason)
{
    char body[512];

    snprintf(body, sizeof(body), LLAMA ",\"rope_scaling\":{\"type\":\"%s\"%s}", type, keys);
    refused(body, status, reason);
}

static void one_factor(void **state)
{
    vka_layer_desc desc = spelled("linear", ",\"factor\":4");

    (void)state;
    assert_true(desc.rope_type == VKA_ROPE_LINEAR && desc.rope_scaling.factor == 4);
    desc = spelled("ntk", ",\"factor\":4");
    assert_true(desc.rope_type == VKA_ROPE_NTK && desc.rope_scaling.factor == 4);
    desc = spelled("dynamic", ",\"factor\":2,\"original_max_position_embeddings\":4096");
    assert_true(desc.rope_type == VKA_ROPE_DYNAMIC && desc.rope_scaling.context == 4096);
    refused_as("linear", "", VKA_ERR_FORMAT, "rope_scaling.factor is missing");
    refused_as("linear", ",\"factor\":0", VKA_ERR_FORMAT, "factor is 0");
    refused_as("linear", ",\"factor\":-2", VKA_ERR_FORMAT, "factor is -2");
    refused_as("linear", ",\"factor\":\"2\"", VKA_ERR_FORMAT, "factor is 2,");
    refused_as("linear", ",\"factor\":2,\"beta_fast\":32", VKA_ERR_UNSUPPORTED, "the key 'beta_fast'");
    refused_as("dynamic", ",\"factor\":2,\"original_max_position_embeddings\":2048", VKA_ERR_UNSUPPORTED,
               "is 2048 and max_position_embeddings 4096");
    refused("\"model_type\":\"llama\",\"hidden_size\":96,\"num_hidden_layers\":3,\"num_attention_heads\":6,"
            "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}",
            VKA_ERR_FORMAT, "max_position_embeddings is missing");
}

static void yarn(void **state)
{
    vka_layer_desc desc = spelled("yarn", ",\"factor\":16,\"original_max_position_embeddings\":1024,\"beta_fast\":16,"
                                          "\"beta_slow\":2,\"attention_factor\":1.5,\"mscale\":0.7,"
                                          "\"mscale_all_dim\":0.8,\"truncate\":false");
    const vka_rope_scaling *scaling = &desc.rope_scaling;

    (void)state;
    assert_true(desc.rope_type == VKA_ROPE_YARN && scaling->original_context == 1024 && scaling->beta_fast == 16);
    assert_true(scaling->beta_slow == 2 && scaling->attention_factor == 1.5 && scaling->no_truncate == 1);
    assert_true(scaling->mscale == 0.7 && scaling->mscale_all_dim == 0.8);
    desc = spelled("yarn", ",\"factor\":8,\"mscale\":0.7,\"mscale_all_dim\":0,\"beta_fast\":0");
    assert_true(scaling->mscale == 0 && scaling->mscale_all_dim == 0 && scaling->original_context == 4096);
    desc = spelled("yarn", ",\"original_max_position_embeddings\":1024");
    assert_true(scaling->factor == 4);
    refused_as("yarn", ",\"factor\":8,\"attention_factor\":-1", VKA_ERR_FORMAT, "attention_factor is -1");
    refused_as("yarn", ",\"factor\":8,\"original_max_position_embeddings\":0", VKA_ERR_FORMAT, "is 0, expected");
    refused_as("yarn", ",\"factor\":8,\"llama_4_scaling_beta\":0.1", VKA_ERR_UNSUPPORTED, "llama_4_scaling_beta");
    refused(LLAMA ",\"original_max_position_embeddings\":2048,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,"
                  "\"original_max_position_embeddings\":1024}",
            VKA_ERR_FORMAT, "given twice, as 2048");
}

static void llama3(void **state)
{
    static const char keys[] =
        ",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":1024";
    vka_layer_desc desc = spelled("llama3", keys);

    (void)state;
    assert_true(desc.rope_type == VKA_ROPE_LLAMA3 && desc.rope_scaling.low_freq_factor == 1);
    assert_true(desc.rope_scaling.high_freq_factor == 4 && desc.rope_scaling.original_context == 1024);
    refused_as("llama3", ",\"factor\":8,\"low_freq_factor\":1", VKA_ERR_FORMAT, "high_freq_factor is missing");
    refused_as("llama3", ",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4", VKA_ERR_FORMAT,
               "low_freq_factor is 4");
    refused_as("Llama3", keys, VKA_ERR_UNSUPPORTED, "rope type 'Llama3'");
}

static void longrope(void **state)
{
    static const char keys[] = ",\"long_factor\":[1,2,3,4,5,6,7,8],\"short_factor\":[1,1,1,1,1,1,1,1],"
                               "\"original_max_position_embeddings\":1024";
    vka_layer_desc desc = spelled("longrope", keys);

    (void)state;
    assert_true(desc.rope_type == VKA_ROPE_LONGROPE && desc.rope_scaling.factor == 4);
    assert_true(desc.rope_scaling.long_factor[7] == 8.0F && desc.rope_scaling.long_factor[8] == 0.0F);
    assert_int_equal(spelled("su", keys).rope_type, VKA_ROPE_LONGROPE);
    refused_as("longrope", "", VKA_ERR_FORMAT, "short_factor is no array");
    refused_as("longrope", ",\"short_factor\":[1,1,1,1,1,1,1,\"x\"]", VKA_ERR_FORMAT, "short_factor[7] is x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_factor),
        cmocka_unit_test(yarn),
        cmocka_unit_test(llama3),
        cmocka_unit_test(longrope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
