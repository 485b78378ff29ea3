"""Decoders of transformers: causal self attention with a cache."""

import torch
from transformers import (
    DbrxConfig,
    DbrxForCausalLM,
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTBigCodeConfig,
    GPTBigCodeForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3Config,
    Qwen3Model,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Starcoder2Config,
    Starcoder2ForCausalLM,
)

from .case import DECODE, PREFILL, REST, decoder, steps

F16, BF16 = torch.float16, torch.bfloat16

# Geometry of most cases: 8 query heads of 16, so that tp = 1, 2, 4 and 8 are valid, and 2 or 4 KV heads.
HEADS = dict(hidden_size=64, num_attention_heads=8, num_key_value_heads=2, head_dim=16)
MOE = dict(moe_intermediate_size=8, shared_expert_intermediate_size=8, num_experts=2, num_experts_per_tok=1)


def rope(theta, **more):
    return {"rope_theta": theta, "rope_type": "default", **more}


def text_then_image(case, generator):
    """Temporal, height and width positions as Qwen2-VL counts them: 5 of text, an image of 3 x 4, text again."""
    text = torch.arange(5).expand(3, 5)
    image = 5 + torch.stack([torch.zeros(12, dtype=torch.long), torch.arange(12) // 4, torch.arange(12) % 4])
    rest = int(image.max()) + 1 + torch.arange(PREFILL + DECODE - 17).expand(3, -1)
    positions = torch.cat([text, image, rest], dim=1)
    tensors = {name: {"positions": positions} for name in ("layer0", "layer1")}
    return [dict(steps=steps(case["hidden"], generator), positions=positions, tensors=tensors)]


def below_and_above(case, generator):
    """One sequence that stays inside the original context of 32 tokens, and one that begins past it."""
    return [
        dict(steps=steps(case["hidden"], generator)),
        dict(steps=steps(case["hidden"], generator, prefill=40), suffix="-long"),
    ]


# The order of cases is that of their random seeds: new ones go to the end of LATER.
CASES = {
    # Head size 20 (no multiple of 8), configuration as transformers 4 wrote it, without head_dim; two shards.
    "llama": decoder(
        LlamaForCausalLM,
        LlamaConfig(
            hidden_size=120,
            num_hidden_layers=1,
            num_attention_heads=6,
            num_key_value_heads=3,
            rms_norm_eps=1e-5,
            **REST,
        ),
        old_config=True,
        shard_bytes=100_000,
    ),
    # Biases on q, k, v and o; one KV head; heads * head_dim above hidden_size.
    "llama-bias": decoder(
        LlamaForCausalLM,
        LlamaConfig(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=32,
            attention_bias=True,
            rope_parameters=rope(500000.0),
            **REST,
        ),
    ),
    # A window shorter than the prompt; F16 weights; configuration as transformers 4 wrote it.
    "mistral": decoder(
        MistralForCausalLM,
        MistralConfig(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=4,
            sliding_window=7,
            rms_norm_eps=1e-5,
            **REST,
        ),
        dtype=F16,
        old_config=True,
    ),
    # Biases on q, k and v; layer 0 sees everything, layer 1 has a window; BF16 weights.
    "qwen2": decoder(
        Qwen2ForCausalLM,
        Qwen2Config(
            hidden_size=112,
            num_hidden_layers=2,
            num_attention_heads=14,
            num_key_value_heads=2,
            use_sliding_window=True,
            sliding_window=10,
            max_window_layers=1,
            rope_parameters=rope(1000000.0),
            **REST,
        ),
        dtype=BF16,
    ),
    # QK-norm; a head size that is not hidden_size / heads; a model without a head, so tensors lack the prefix "model.".
    "qwen3": decoder(
        Qwen3Model,
        Qwen3Config(
            hidden_size=80,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=24,
            rms_norm_eps=1e-6,
            rope_parameters=rope(1000000.0),
            **REST,
        ),
        inner="",
    ),
    # The wavelength bands of Llama 3.1 all lie inside the 8 pairs.
    "llama3-rope": decoder(
        LlamaForCausalLM,
        LlamaConfig(
            num_hidden_layers=1,
            rope_parameters=rope(
                1000.0,
                rope_type="llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
            **HEADS,
            **{**REST, "max_position_embeddings": 512},
        ),
        dtype=F16,
    ),
    "llama-linear": decoder(
        LlamaForCausalLM,
        LlamaConfig(num_hidden_layers=1, rope_parameters=rope(1000.0, rope_type="linear", factor=3.0), **HEADS, **REST),
        dtype=F16,
    ),
    # Dynamic NTK, past max_position_embeddings: every length has its own base, cached keys keep theirs.
    "llama-dynamic": decoder(
        LlamaForCausalLM,
        LlamaConfig(
            num_hidden_layers=1,
            rope_parameters=rope(1000.0, rope_type="dynamic", factor=4.0),
            **HEADS,
            **{**REST, "max_position_embeddings": 16},
        ),
        dtype=F16,
    ),
    # Output gate per head, (1 + w) norms, partial rotary; layer 0 is a linear one and is not stored.
    "qwen3-next": decoder(
        Qwen3NextForCausalLM,
        Qwen3NextConfig(
            num_hidden_layers=2,
            layer_types=["linear_attention", "full_attention"],
            linear_num_key_heads=1,
            linear_num_value_heads=1,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            rope_parameters=rope(10000.0, partial_rotary_factor=0.25),
            decoder_sparse_step=1,
            **MOE,
            **HEADS,
            **REST,
        ),
        dtype=BF16,
    ),
    # The same with interleaved mrope sections, inside text_config, under the prefix model.language_model.
    "qwen3.5": decoder(
        Qwen3_5ForConditionalGeneration,
        Qwen3_5Config(
            text_config=dict(
                num_hidden_layers=2,
                layer_types=["linear_attention", "full_attention"],
                linear_num_key_heads=1,
                linear_num_value_heads=1,
                linear_key_head_dim=8,
                linear_value_head_dim=8,
                rope_parameters=rope(
                    10000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True
                ),
                **HEADS,
                **REST,
            ),
            vision_config=dict(
                depth=1, hidden_size=8, intermediate_size=8, num_heads=1, out_hidden_size=64, num_position_embeddings=4
            ),
        ),
        dtype=BF16,
        inner="model.language_model",
        stored=r"language_model.*\.self_attn\.",
        scenes=text_then_image,
    ),
    # Scores are capped, scaled by query_pre_attn_scalar; layer 0 has a window, layer 1 has none.
    "gemma2": decoder(
        Gemma2ForCausalLM,
        Gemma2Config(
            num_hidden_layers=2,
            query_pre_attn_scalar=10,
            attn_logit_softcapping=3.0,
            sliding_window=9,
            **{**HEADS, "num_key_value_heads": 4},
            **REST,
        ),
        dtype=BF16,
    ),
    # (1 + w) norms of Q and K; windows and a local RoPE base on layer 0, linear RoPE scaling on layer 1.
    "gemma3": decoder(
        Gemma3ForCausalLM,
        Gemma3TextConfig(
            num_hidden_layers=2,
            query_pre_attn_scalar=10,
            sliding_window=9,
            layer_types=["sliding_attention", "full_attention"],
            rope_parameters={
                "sliding_attention": rope(100.0),
                "full_attention": rope(10000.0, rope_type="linear", factor=4.0),
            },
            **{**HEADS, "num_key_value_heads": 4},
            **REST,
        ),
        dtype=BF16,
    ),
    # One merged matrix [q | k | v]; three quarters of a head turn; other factors above 32 tokens than below.
    "phi3": decoder(
        Phi3ForCausalLM,
        Phi3Config(
            hidden_size=128,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=4,
            original_max_position_embeddings=32,
            rope_parameters=rope(
                1000.0,
                rope_type="longrope",
                partial_rotary_factor=0.75,
                short_factor=[1.0, 1.05, 1.1, 1.2, 1.4, 1.7],
                long_factor=[1.1, 1.5, 2.0, 2.8, 4.0, 6.0],
            ),
            pad_token_id=None,
            **{**REST, "max_position_embeddings": 128},
        ),
        dtype=BF16,
        scenes=below_and_above,
    ),
    # One matrix with [q | k | v] for each head, biases, half of a head turns.
    "gpt-neox": decoder(
        GPTNeoXForCausalLM,
        GPTNeoXConfig(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            rope_parameters=rope(10000.0, partial_rotary_factor=0.5),
            **REST,
        ),
        dtype=F16,
        inner="gpt_neox",
        attention="attention",
        stored=r"\.attention\.",
    ),
    # Neighbouring elements turn together.
    "gptj": decoder(
        GPTJForCausalLM,
        GPTJConfig(
            vocab_size=8,
            n_embd=64,
            n_layer=1,
            n_head=8,
            n_positions=64,
            n_inner=8,
            rotary_dim=4,
            bos_token_id=None,
            eos_token_id=None,
        ),
        dtype=F16,
        inner="transformer",
        blocks="h",
        attention="attn",
        stored=r"\.attn\.",
    ),
    # Sinks, biases everywhere, yarn whose ramp is not cut to whole pairs; layer 0 has a window, layer 1 has none.
    "gpt-oss": decoder(
        GptOssForCausalLM,
        GptOssConfig(
            num_hidden_layers=2,
            num_local_experts=2,
            num_experts_per_tok=1,
            sliding_window=9,
            rope_parameters=rope(
                100.0,
                rope_type="yarn",
                factor=8.0,
                beta_fast=32.0,
                beta_slow=1.0,
                truncate=False,
                original_max_position_embeddings=256,
            ),
            **HEADS,
            **{**REST, "max_position_embeddings": 2048},
        ),
        dtype=BF16,
    ),
    # RMSNorm over the full width of Q and of K.
    "olmo2": decoder(
        Olmo2ForCausalLM,
        Olmo2Config(
            num_hidden_layers=1,
            rope_parameters=rope(500000.0),
            pad_token_id=None,
            **{**HEADS, "num_key_value_heads": 4},
            **REST,
        ),
        dtype=BF16,
    ),
    # Biases everywhere and a window; 12 heads, so that tp = 3 and 6 are valid too.
    "starcoder2": decoder(
        Starcoder2ForCausalLM,
        Starcoder2Config(
            hidden_size=96,
            num_hidden_layers=1,
            num_attention_heads=12,
            num_key_value_heads=2,
            sliding_window=9,
            rope_parameters=rope(100000.0),
            **REST,
        ),
        dtype=F16,
    ),
    # One merged matrix [q | k | v], clamped; nested keys.
    "dbrx": decoder(
        DbrxForCausalLM,
        DbrxConfig(
            vocab_size=8,
            d_model=64,
            n_heads=8,
            n_layers=1,
            max_seq_len=64,
            attn_config=dict(clip_qkv=1.5, kv_n_heads=4, rope_theta=500000.0),
            ffn_config=dict(ffn_hidden_size=8, hidden_size=64, moe_num_experts=2, moe_top_k=1),
            rope_parameters=rope(500000.0),
        ),
        dtype=BF16,
        inner="transformer",
        blocks="blocks",
        attention="norm_attn_norm.attn",
        stored=r"\.attn\.",
    ),
    # One K and V head for all, behind the queries in one matrix (Falcon 7B).
    "falcon-multi-query": decoder(
        FalconForCausalLM,
        FalconConfig(
            vocab_size=8,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            multi_query=True,
            max_position_embeddings=64,
            ffn_hidden_size=8,
            rope_parameters=rope(10000.0),
        ),
        dtype=BF16,
        inner="transformer",
        blocks="h",
        attention="self_attention",
        stored=r"\.self_attention\.",
    ),
    # K and V behind the queries of each group (Falcon 40B).
    "falcon-groups": decoder(
        FalconForCausalLM,
        FalconConfig(
            vocab_size=8,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_kv_heads=2,
            new_decoder_architecture=True,
            max_position_embeddings=64,
            ffn_hidden_size=8,
            rope_parameters=rope(10000.0),
        ),
        dtype=BF16,
        inner="transformer",
        blocks="h",
        attention="self_attention",
        stored=r"\.self_attention\.",
    ),
    # ALiBi instead of RoPE, biases, [q | k | v] for each head (Falcon RW). Not eager: that of transformers 5.24 adds
    # the bias to the mask and to the scores, so twice.
    "falcon-alibi": decoder(
        FalconForCausalLM,
        FalconConfig(
            vocab_size=8,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            multi_query=False,
            alibi=True,
            bias=True,
            parallel_attn=False,
            max_position_embeddings=64,
            ffn_hidden_size=8,
        ),
        dtype=BF16,
        implementation="sdpa",
        inner="transformer",
        blocks="h",
        attention="self_attention",
        stored=r"\.self_attention\.",
    ),
    # One K and V head for all, merged and with biases; no RoPE (positions are learned, outside attention).
    "gpt-bigcode": decoder(
        GPTBigCodeForCausalLM,
        GPTBigCodeConfig(
            vocab_size=8,
            n_positions=64,
            n_embd=64,
            n_layer=1,
            n_head=8,
            n_inner=8,
            bos_token_id=None,
            eos_token_id=None,
        ),
        dtype=F16,
        inner="transformer",
        blocks="h",
        attention="attn",
        stored=r"\.attn\.",
    ),
    # Latent K and V, V heads of another size than K heads; Q straight from the hidden state. The latents' norms have an
    # epsilon of 1e-6 whatever the configuration says.
    "deepseek-v2": decoder(
        DeepseekV2ForCausalLM,
        DeepseekV2Config(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=8,
            q_lora_rank=None,
            kv_lora_rank=24,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            v_head_dim=12,
            first_k_dense_replace=1,
            rms_norm_eps=1e-3,
            rope_parameters=rope(1000.0),
            **REST,
        ),
        dtype=F16,
    ),
    # Latent Q too; yarn with mscale, which also changes the softmax scale.
    "deepseek-v3": decoder(
        DeepseekV3ForCausalLM,
        DeepseekV3Config(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=8,
            q_lora_rank=32,
            kv_lora_rank=24,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            v_head_dim=16,
            first_k_dense_replace=1,
            rms_norm_eps=1e-3,
            rope_parameters=rope(
                100.0,
                rope_type="yarn",
                factor=8.0,
                beta_fast=32.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=0.6,
                original_max_position_embeddings=256,
            ),
            **{**REST, "max_position_embeddings": 2048},
        ),
        dtype=F16,
    ),
    # mrope sections one after the other, biases on q, k and v.
    "qwen2.5-vl": decoder(
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLConfig(
            text_config=dict(
                hidden_size=64,
                num_hidden_layers=1,
                num_attention_heads=8,
                num_key_value_heads=2,
                rope_parameters=rope(10000.0, mrope_section=[1, 1, 2]),
                **REST,
            ),
            vision_config=dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=1, out_hidden_size=64),
        ),
        dtype=BF16,
        inner="model.language_model",
        stored=r"language_model.*\.self_attn\.",
        scenes=text_then_image,
    ),
    # mrope sections interleaved, QK-norm.
    "qwen3-vl": decoder(
        Qwen3VLForConditionalGeneration,
        Qwen3VLConfig(
            text_config=dict(
                num_hidden_layers=1,
                rope_parameters=rope(10000.0, mrope_section=[4, 2, 2], mrope_interleaved=True),
                **HEADS,
                **REST,
            ),
            vision_config=dict(
                depth=1,
                hidden_size=8,
                intermediate_size=8,
                num_heads=1,
                out_hidden_size=64,
                num_position_embeddings=4,
                deepstack_visual_indexes=[0],
            ),
        ),
        dtype=BF16,
        inner="model.language_model",
        stored=r"language_model.*\.self_attn\.",
        scenes=text_then_image,
    ),
}

LATER = {
    # Merged and transposed, with biases; no RoPE.
    "gpt2": decoder(
        GPT2LMHeadModel,
        GPT2Config(
            vocab_size=8,
            n_positions=64,
            n_embd=64,
            n_layer=1,
            n_head=8,
            n_inner=8,
            bos_token_id=None,
            eos_token_id=None,
        ),
        dtype=F16,
        inner="transformer",
        blocks="h",
        attention="attn",
        stored=r"\.attn\.",
    ),
}
