#!/usr/bin/env python3
"""Makes tests/data/rope/rope.safetensors: inverse frequencies and factors as Hugging Face transformers computes them.

Made with, and checked at run time (Python 3.11, CPU):
    torch 2.15.0, transformers 5.24.0, safetensors 0.8.0

Per case NAME: `NAME.inverse` [pairs] and `NAME.factor` [1] (on cosine and sine), from transformers' own functions, in
their float32. For the two kinds of mrope: `NAME.positions` [3, rows], `NAME.cos` and `NAME.sin` [rows, pairs], from the
rotary embeddings of Qwen2-VL (sections in order) and Qwen3-VL (interleaved). The C test holds the same parameters.

Usage: make_rope_reference.py [FILE]   (default: rope/rope.safetensors beside this file)
"""

import pathlib
import sys

import safetensors
import safetensors.torch
import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding

VERSIONS = {torch: "2.15.0", transformers: "5.24.0", safetensors: "0.8.0"}

DIVISORS = dict(short_factor=[1 + i / 8 for i in range(32)], long_factor=[1.5 + i for i in range(32)])
YARN = dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=4096)
LONG = dict(rope_type="longrope", original_max_position_embeddings=4096, **DIVISORS)
DYNAMIC = dict(rope_type="dynamic", factor=2.0)
LLAMA3 = dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)

# name: (head_dim, theta, max_position_embeddings, length, rope_parameters)
CASES = {
    "default": (64, 1e4, 2048, None, dict(rope_type="default")),
    "linear": (64, 1e4, 2048, None, dict(rope_type="linear", factor=4.0)),
    "dynamic_within": (64, 1e4, 2048, 100, DYNAMIC),
    "dynamic_twice": (64, 1e4, 2048, 4096, DYNAMIC),
    "dynamic_odd": (64, 1e4, 2048, 3001, DYNAMIC),
    "yarn": (64, 1e4, 163840, None, YARN),
    "yarn_mscale": (64, 1e4, 163840, None, dict(YARN, mscale=0.707, mscale_all_dim=1.0)),
    "yarn_attention_factor": (64, 1e4, 163840, None, dict(YARN, attention_factor=1.25, beta_fast=16.0, beta_slow=2.0)),
    "yarn_no_truncate": (64, 150000.0, 131072, None, dict(YARN, factor=32.0, truncate=False)),
    "longrope_short": (64, 1e4, 131072, 4096, LONG),
    "longrope_long": (64, 1e4, 131072, 4097, LONG),
    "longrope_attention_factor": (64, 1e4, 131072, 4097, dict(LONG, attention_factor=1.25)),
    "llama3": (128, 5e5, 131072, None, dict(LLAMA3, factor=8.0)),
    "llama3_small": (64, 5e5, 131072, None, dict(LLAMA3, factor=32.0)),
}


def inverse_frequencies(head_dim, theta, positions, length, parameters):
    config = LlamaConfig(
        hidden_size=4 * head_dim,
        num_attention_heads=4,
        head_dim=head_dim,
        max_position_embeddings=positions,
        rope_parameters=dict(parameters, rope_theta=theta),
    )
    if parameters["rope_type"] == "default":
        return LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    return ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, torch.device("cpu"), seq_len=length)


def mrope(config_class, embedding_class, section):
    config = config_class(
        hidden_size=256,
        num_attention_heads=4,
        head_dim=64,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=section, mrope_interleaved=True),
    )
    generator = torch.Generator().manual_seed(11)
    positions = torch.randint(0, 100, (3, 9), generator=generator)
    config.head_dim = 64
    cos, sin = embedding_class(config)(torch.zeros(1), positions[:, None, :])
    return dict(positions=positions.float(), cos=cos[0, :, :32], sin=sin[0, :, :32])


def main():
    for module, version in VERSIONS.items():
        if module.__version__.split("+")[0] != version:
            sys.exit(f"{module.__name__} is {module.__version__}, expected {version}")
    out = {}
    for name, case in CASES.items():
        inverse, factor = inverse_frequencies(*case)
        out[name + ".inverse"] = inverse.float()
        out[name + ".factor"] = torch.tensor([factor], dtype=torch.float32)
    for name, made in {
        "sections": mrope(Qwen2VLTextConfig, Qwen2VLRotaryEmbedding, [8, 12, 12]),
        "interleaved": mrope(Qwen3VLTextConfig, Qwen3VLTextRotaryEmbedding, [14, 10, 8]),
    }.items():
        out.update({f"{name}.{key}": value.float().contiguous().clone() for key, value in made.items()})
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "rope/rope.safetensors")
    safetensors.torch.save_file(out, path)


main()
