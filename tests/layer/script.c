/* See script.h. */
#include "layer/script.h"

/* Devices 0 and 2 are of one kind. */
const layer_case script_cases[SCRIPT_CASES] = {
    [SCRIPT_ONE_RANK] = {.name = "one rank",
                         .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8},
                         .place = "0"},
    [SCRIPT_ONE_DEVICE] = {.name = "ranks of one device",
                           .desc = {.hidden_size = 200, .heads = 8, .kv_heads = 2, .head_dim = 8},
                           .tp = 4,
                           .place = "0*4"},
    [SCRIPT_BALANCED] = {.name = "balanced",
                         .desc = {.hidden_size = 65, .heads = 12, .kv_heads = 12, .head_dim = 8},
                         .tp = 6,
                         .page_size = 1},
    [SCRIPT_REPLICATED] =
        {.name = "interleaved, replicated KV, window",
         .desc = {.hidden_size = 65, .heads = 8, .kv_heads = 2, .head_dim = 5, .rotary_dim = 4, .window = 7},
         .tp = 8,
         .place = "0,1,0,1,1,0,1,0",
         .page_size = 7},
    [SCRIPT_ONE_KV_HEAD] = {.name = "one KV head, F16",
                            .desc = {.hidden_size = 7, .heads = 16, .kv_heads = 1, .head_dim = 8, .v_head_dim = 3},
                            .tp = 8,
                            .place = "0*3,1*5",
                            .weights = VKA_F16,
                            .cache = VKA_F16,
                            .o_bias = true},
    [SCRIPT_QK_NORM] = {.name = "QK-norm, biases, partial RoPE, BF16",
                        .desc = {.hidden_size = 1000,
                                 .heads = 8,
                                 .kv_heads = 4,
                                 .head_dim = 8,
                                 .rotary_dim = 6,
                                 .rope_theta = 1e6,
                                 .qk_norm = VKA_QK_NORM_PER_HEAD,
                                 .norm_eps = 1e-5},
                        .tp = 2,
                        .place = "1,0",
                        .weights = VKA_BF16,
                        .cache = VKA_F16,
                        .qkv_bias = true,
                        .o_bias = true,
                        .page_size = 64},
    [SCRIPT_IDLE] =
        {.name = "an idle device, no RoPE, head size 1",
         .desc = {.hidden_size = 1, .heads = 6, .kv_heads = 3, .head_dim = 1, .rope_type = VKA_ROPE_NONE, .scale = 2.5},
         .tp = 3,
         .place = "1*3"},
    [SCRIPT_REPRODUCIBLE] = {.name = "reproducible",
                             .desc = {.hidden_size = 65, .heads = 9, .kv_heads = 3, .head_dim = 8},
                             .tp = 3,
                             .qkv_bias = true,
                             .o_bias = true,
                             .reproducible = true},
    [SCRIPT_HEAD_64] = {.name = "head size 64",
                        .desc = {.hidden_size = 128, .heads = 4, .kv_heads = 2, .head_dim = 64},
                        .tp = 2,
                        .place = "0,1"},
    [SCRIPT_LATENT] = {.name = "latent attention, F16 cache",
                       .desc = {.hidden_size = 65,
                                .heads = 8,
                                .kv_heads = 8,
                                .head_dim = 11,
                                .v_head_dim = 9,
                                .rotary_dim = 4,
                                .rotary_offset = 7,
                                .window = 30,
                                .kv_lora_rank = 19,
                                .q_lora_rank = 13},
                       .tp = 4,
                       .place = "0,1,1,0",
                       .weights = VKA_F16,
                       .cache = VKA_F16,
                       .page_size = 5},
};

static void call(layer_rig *rig, const script_tensors *tensors, const vka_batch_entry *entries, uint32_t count)
{
    rig_forward(rig, &(rig_call){.entries = entries,
                                 .count = count,
                                 .input = tensors->input,
                                 .output = tensors->output,
                                 .input_gap = tensors->input_gap,
                                 .output_gap = tensors->output_gap});
}

void run_script(layer_rig *rig, const script_tensors *tensors)
{
    uint32_t a = rig_sequence(rig), b = rig_sequence(rig), c = rig_sequence(rig);

    call(rig, tensors, (const vka_batch_entry[]){{a, 9}, {b, 1}}, 2);
    call(rig, tensors, (const vka_batch_entry[]){{c, 3}, {a, 1}, {b, 40}}, 3);
    call(rig, tensors, (const vka_batch_entry[]){{b, 1}, {c, 1}, {a, 1}}, 3);
    call(rig, tensors, (const vka_batch_entry[]){{a, 1}}, 1);
}

void run_case(vka_context *context, const layer_case *setup)
{
    static const script_tensors plain;
    layer_rig rig;

    rig_open(&rig, context, setup);
    run_script(&rig, &plain);
    rig_close(&rig);
}
