/* How families lay their tensors out: rows taken apart in the right order, and every way in which a merged tensor can
 * fail to belong. Every element of a tensor here is the number of its row (of a bias: of the element). */
#include "model/scratch_folder.h"

#include <math.h>

enum { HIDDEN = 8, MAX_ROWS = 64, MAX_TENSORS = 16 };

static float numbers[MAX_ROWS * HIDDEN];
static float counts[MAX_ROWS];

static void fill(void)
{
    for (int i = 0; i < MAX_ROWS * HIDDEN; i++)
        numbers[i] = (float)(i / HIDDEN);
    for (int i = 0; i < MAX_ROWS; i++)
        counts[i] = (float)i;
}

typedef struct tensors {
    vka_named_tensor list[MAX_TENSORS];
    size_t count;
} tensors;

static void matrix(tensors *all, const char *name, uint64_t rows)
{
    all->list[all->count++] =
        (vka_named_tensor){.name = name, .dtype = VKA_F32, .dims = 2, .shape = {rows, HIDDEN}, .data = numbers};
}

static void vector(tensors *all, const char *name, uint64_t size)
{
    all->list[all->count++] =
        (vka_named_tensor){.name = name, .dtype = VKA_F32, .dims = 1, .shape = {size}, .data = counts};
}

typedef struct loaded {
    vka_model *model;
    vka_model_layer *layer;
    const vka_layer_weights *weights;
    const vka_layer_desc *desc;
} loaded;

static vka_status load(loaded *out, const char *config, const tensors *all, vka_block block, vka_error *error)
{
    vka_status status;

    *out = (loaded){0};
    write_text("config.json", config);
    write_tensors("model.safetensors", all->list, all->count);
    status = vka_model_open(&out->model, folder, error);
    if (status == VKA_OK)
        status = vka_model_layer_load(&out->layer, out->model, block, 0, error);
    out->weights = vka_model_layer_weights(out->layer);
    out->desc = vka_model_layer_desc(out->layer);
    return status;
}

static void release(loaded *of)
{
    vka_model_layer_free(&of->layer);
    vka_model_close(&of->model);
}

static loaded loads(const char *config, const tensors *all, vka_block block)
{
    vka_error error = {0};
    loaded made;

    if (load(&made, config, all, block, &error) != VKA_OK)
        fail_msg("%s", error.message);
    return made;
}

static void fails(const char *config, const tensors *all, vka_block block, vka_status status, const char *reason)
{
    vka_error error = {0};
    loaded made;
    vka_status got = load(&made, config, all, block, &error);

    release(&made);
    if (got != status || !strstr(error.message, reason))
        fail_msg("status %d, '%s', expected %d with '%s'", (int)got, error.message, (int)status, reason);
}

static float element(const vka_tensor *tensor, uint64_t row, uint64_t col)
{
    uint64_t stride = tensor->row_stride ? tensor->row_stride : tensor->cols;
    float value;

    assert_true(row < tensor->rows && col < tensor->cols && tensor->dtype == VKA_F32);
    memcpy(&value, (const char *)tensor->data + (row * stride + col) * sizeof(value), sizeof(value));
    return value;
}

/* `rows` rows that come in runs of `run`, of which the i-th begins at first + i * stride in the file. */
static void rows_are(const vka_tensor *tensor, uint64_t rows, uint64_t first, uint64_t run, uint64_t stride)
{
    bool is_vector = tensor->rows == 1;

    assert_int_equal(is_vector ? tensor->cols : tensor->rows, rows);
    for (uint64_t i = 0; i < rows; i++) {
        float want = (float)(first + i / run * stride + i % run);

        assert_true(element(tensor, is_vector ? 0 : i, is_vector ? i : HIDDEN - 1) == want);
    }
}

#define HEADS(q) "\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":" #q
#define NEOX     "{\"model_type\":\"gpt_neox\"," HEADS(4) ",\"rotary_pct\":1}"
#define NEOX_AT  "gpt_neox.layers.0.attention."

static void each_head_has_its_own(void **state)
{
    tensors all = {0};
    loaded made;

    (void)state;
    matrix(&all, NEOX_AT "query_key_value.weight", 24);
    vector(&all, NEOX_AT "query_key_value.bias", 24);
    matrix(&all, NEOX_AT "dense.weight", 8);
    vector(&all, NEOX_AT "dense.bias", 8);
    vector(&all, NEOX_AT "masked_bias", 1);
    made = loads(NEOX, &all, VKA_BLOCK_SELF);
    rows_are(&made.weights->q, 8, 0, 2, 6);
    rows_are(&made.weights->k, 8, 2, 2, 6);
    rows_are(&made.weights->v, 8, 4, 2, 6);
    rows_are(&made.weights->q_bias, 8, 0, 2, 6);
    rows_are(&made.weights->v_bias, 8, 4, 2, 6);
    release(&made);
    all.list[1].shape[0] = 23;
    fails(NEOX, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "query_key_value.bias' has shape [1, 23], expected [1, 24]");
    all.list[1].name = "elsewhere";
    fails(NEOX, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "query_key_value.bias' is missing");
    all.list[0].shape[0] = 25;
    vector(&all, NEOX_AT "query_key_value.bias", 24);
    fails(NEOX, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "has shape [25, 8], expected [24, 8]: 8 + 8 + 8 for Q, K and V");
    all.list[0].name = "nowhere";
    fails(NEOX, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "query_key_value.weight' [heads * head_dim");
}

#define FALCON(more) "{\"model_type\":\"falcon\"," HEADS(4) more "}"
#define FALCON_AT    "transformer.h.0.self_attention."

static void groups_of_heads(void **state)
{
    tensors all = {0};
    loaded made;

    (void)state;
    matrix(&all, FALCON_AT "query_key_value.weight", 16);
    matrix(&all, FALCON_AT "dense.weight", 8);
    made = loads(FALCON(",\"new_decoder_architecture\":true,\"num_kv_heads\":2"), &all, VKA_BLOCK_SELF);
    rows_are(&made.weights->q, 8, 0, 4, 8);
    rows_are(&made.weights->k, 4, 4, 2, 8);
    rows_are(&made.weights->v, 4, 6, 2, 8);
    assert_null(made.weights->q_bias.data);
    release(&made);
    fails(FALCON(",\"new_decoder_architecture\":true,\"num_kv_heads\":3"), &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT,
          "expected [20, 8]");
    all.list[0].shape[0] = 12;
    made = loads(FALCON(",\"multi_query\":true"), &all, VKA_BLOCK_SELF);
    rows_are(&made.weights->q, 8, 0, 8, 0);
    rows_are(&made.weights->k, 2, 8, 2, 0);
    rows_are(&made.weights->v, 2, 10, 2, 0);
    release(&made);
    all.list[0].shape[0] = 20;
    fails(FALCON(",\"new_decoder_architecture\":true,\"num_kv_heads\":3"), &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT,
          "4 heads are no multiple of 3 KV heads");
}

/* Powers of 2^-2 for four heads; for six, two more from the sequence of eight. Rounded to bfloat16, times the scale. */
static void slopes(void **state)
{
    static const double of_six[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
    tensors all = {0};
    loaded made;

    (void)state;
    matrix(&all, FALCON_AT "query_key_value.weight", 24);
    matrix(&all, FALCON_AT "dense.weight", 8);
    made = loads(FALCON(",\"multi_query\":false,\"alibi\":true"), &all, VKA_BLOCK_SELF);
    assert_int_equal(made.weights->alibi_slopes.cols, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fabs(element(&made.weights->alibi_slopes, 0, i) - of_six[i] * made.desc->scale) < 1e-8);
    release(&made);
    all.list[0].shape[0] = 36;
    all.list[0].shape[1] = 12;
    all.list[1].shape[0] = all.list[1].shape[1] = 12;
    made = loads("{\"model_type\":\"falcon\",\"hidden_size\":12,\"num_hidden_layers\":1,\"num_attention_heads\":6,"
                 "\"multi_query\":false,\"alibi\":true}",
                 &all, VKA_BLOCK_SELF);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(fabs(element(&made.weights->alibi_slopes, 0, i) - of_six[i] * made.desc->scale) < 1e-8);
    release(&made);
}

#define COSMOS3                                                                                                        \
    "{\"model_type\":\"cosmos3\"," HEADS(4) ",\"num_key_value_heads\":2,\"head_dim\":2,\"rope_scaling\":"              \
                                            "{\"mrope_section\":[1,0,0]},\"use_und_k_norm_for_gen\":true,\"rope_"      \
                                            "theta\":1e4,\"qk_norm_for_text\":false}"
#define UND "language_model.layers.0.self_attn."
#define GEN "gen_layers.0.cross_attention."

static void cosmos3(void **state)
{
    tensors all = {0}, separate = {0};
    loaded made;

    (void)state;
    matrix(&all, UND "to_qkv.weight", 16);
    matrix(&all, UND "to_out.weight", 8);
    vector(&all, UND "k_norm_und_for_gen.weight", 2);
    made = loads(COSMOS3, &all, VKA_BLOCK_SELF);
    rows_are(&made.weights->q, 8, 0, 8, 0);
    rows_are(&made.weights->k, 4, 8, 4, 0);
    rows_are(&made.weights->v, 4, 12, 4, 0);
    assert_non_null(made.weights->k_out_norm.data);
    release(&made);
    matrix(&all, UND "to_q.weight", 8);
    fails(COSMOS3, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "which hold the same weights");
    all.list[3].name = UND "add_q_proj.weight";
    fails(COSMOS3, &all, VKA_BLOCK_SELF, VKA_ERR_UNSUPPORTED, "add_q_proj.weight' of an attention block is not known");
    all.count = 2;
    fails(COSMOS3, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "k_norm_und_for_gen.weight' [head_dim] is missing");
    matrix(&separate, GEN "to_q.weight", 8);
    matrix(&separate, GEN "to_k.weight", 4);
    matrix(&separate, GEN "to_v.weight", 4);
    matrix(&separate, GEN "to_out.0.weight", 8);
    vector(&separate, GEN "norm_q.weight", 2);
    vector(&separate, GEN "norm_k.weight", 2);
    made = loads(COSMOS3, &separate, VKA_BLOCK_CROSS);
    assert_int_equal(made.desc->attend, VKA_ATTEND_FULL);
    release(&made);
}

#define GATED                                                                                                          \
    "{\"model_type\":\"qwen3_next\"," HEADS(2) ",\"num_key_value_heads\":1,\"head_dim\":4,"                            \
                                               "\"partial_rotary_factor\":0.5,\"full_attention_interval\":1%s}"
#define GATED_AT "model.layers.0.self_attn."

static void gates_show_in_the_rows_of_q(void **state)
{
    tensors all = {0};
    char plain[256], off[256];
    loaded made;

    (void)state;
    snprintf(plain, sizeof(plain), GATED, "");
    snprintf(off, sizeof(off), GATED, ",\"attn_output_gate\":false");
    matrix(&all, GATED_AT "q_proj.weight", 16);
    matrix(&all, GATED_AT "k_proj.weight", 4);
    matrix(&all, GATED_AT "v_proj.weight", 4);
    matrix(&all, GATED_AT "o_proj.weight", 8);
    vector(&all, GATED_AT "q_norm.weight", 4);
    vector(&all, GATED_AT "k_norm.weight", 4);
    made = loads(plain, &all, VKA_BLOCK_SELF);
    assert_int_equal(made.desc->gate, VKA_GATE_SIGMOID);
    release(&made);
    fails(off, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "q_proj.weight' has shape [16, 8], expected [8, 8]");
    all.list[0].shape[0] = 8;
    made = loads(plain, &all, VKA_BLOCK_SELF);
    assert_int_equal(made.desc->gate, VKA_GATE_NONE);
    release(&made);
    all.list[0].shape[0] = 12;
    fails(plain, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "q_proj.weight' has shape [12, 8], expected [16, 8]");
}

#define WHISPER                                                                                                        \
    "{\"model_type\":\"whisper\",\"d_model\":8,\"encoder_layers\":1,\"decoder_layers\":1,"                             \
    "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2}"
#define WHISPER_AT "model.decoder.layers.0.encoder_attn."

static void whisper_has_no_bias_on_k(void **state)
{
    tensors all = {0};
    loaded made;

    (void)state;
    matrix(&all, WHISPER_AT "q_proj.weight", 8);
    matrix(&all, WHISPER_AT "k_proj.weight", 8);
    matrix(&all, WHISPER_AT "v_proj.weight", 8);
    matrix(&all, WHISPER_AT "out_proj.weight", 8);
    vector(&all, WHISPER_AT "q_proj.bias", 8);
    vector(&all, WHISPER_AT "v_proj.bias", 8);
    vector(&all, WHISPER_AT "out_proj.bias", 8);
    made = loads(WHISPER, &all, VKA_BLOCK_CROSS);
    assert_true(made.weights->v_bias.data && !made.weights->k_bias.data && made.weights->o_bias.data);
    release(&made);
    fails(WHISPER, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "no tensor under 'model.decoder.layers.0.self_attn.'");
    fails(WHISPER, &all, VKA_BLOCK_ENCODER, VKA_ERR_FORMAT, "no tensor under 'model.encoder.layers.0.self_attn.'");
    vector(&all, WHISPER_AT "k_proj.bias", 8);
    fails(WHISPER, &all, VKA_BLOCK_CROSS, VKA_ERR_FORMAT, "k_proj.bias' is there");
}

/* [columns, rows]: an element here is the number of its column of the layer. */
static void transposed(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":1,\"n_head\":2}";
    static float columns[HIDDEN * 24];
    tensors all = {0};
    loaded made;

    (void)state;
    for (int i = 0; i < HIDDEN * 24; i++)
        columns[i] = (float)(i % 24) + 100.0F * (float)(i / 24);
    matrix(&all, "transformer.h.0.attn.c_attn.weight", HIDDEN);
    all.list[0].shape[1] = 24;
    all.list[0].data = columns;
    vector(&all, "transformer.h.0.attn.c_attn.bias", 24);
    matrix(&all, "transformer.h.0.attn.c_proj.weight", 8);
    vector(&all, "transformer.h.0.attn.c_proj.bias", 8);
    made = loads(config, &all, VKA_BLOCK_SELF);
    assert_true(made.weights->v.rows == 8 && made.weights->v.cols == HIDDEN);
    assert_true(element(&made.weights->q, 3, 5) == 503.0F && element(&made.weights->k, 0, 7) == 708.0F);
    assert_true(element(&made.weights->v, 7, 0) == 23.0F && element(&made.weights->o, 2, 6) == 6.0F);
    rows_are(&made.weights->k_bias, 8, 8, 8, 0);
    release(&made);
    all.list[0].shape[0] = 24;
    all.list[0].shape[1] = HIDDEN;
    fails(config, &all, VKA_BLOCK_SELF, VKA_ERR_FORMAT, "c_attn.weight' has shape [24, 8], expected [8, 24]");
}

static void laid_out_only(void **state)
{
    tensors all = {0};

    (void)state;
    matrix(&all, "transformer.h.0.attn.c_attn.weight", 24);
    fails("{\"model_type\":\"cohere\"," HEADS(2) "}", &all, VKA_BLOCK_SELF, VKA_ERR_UNSUPPORTED,
          "CohereForCausalLM are laid out, not run: its attention has not been checked");
}

#define SCRATCH(test) cmocka_unit_test_teardown(test, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH(each_head_has_its_own),
        SCRATCH(groups_of_heads),
        SCRATCH(slopes),
        SCRATCH(cosmos3),
        SCRATCH(gates_show_in_the_rows_of_q),
        SCRATCH(whisper_has_no_bias_on_k),
        SCRATCH(transposed),
        SCRATCH(laid_out_only),
    };

    fill();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
