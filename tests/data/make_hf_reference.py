#!/usr/bin/env python3
"""Makes the checkpoints and reference outputs under tests/data/hf (see README.md beside this file).

Made with, and checked at run time (Python 3.11, CPU):
    torch 2.15.0, transformers 5.24.0, safetensors 0.8.0, huggingface_hub 2.4.0

The models are small and random, of the families' own classes. A model runs as a whole (its own masks, rotary embedding
and cache, eager attention, float32); hooks record what goes into each attention module and what comes out. Nothing of
attention is computed here. A second run of the same classes with every float32 of theirs replaced by float64 says how
far the float32 outputs are from exact ones: that is printed, for the README.

Usage: make_hf_reference.py [FOLDER]   (default: hf beside this file)
"""

import contextlib
import json
import math
import pathlib
import shutil
import sys

import huggingface_hub
import safetensors
import safetensors.torch
import torch
import transformers
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3Model,
)

VERSIONS = {torch: "2.15.0", transformers: "5.24.0", safetensors: "0.8.0", huggingface_hub: "2.4.0"}
PREFILL = 24
DECODE = 6
PROBES = 4

# Parts of a model that are not attention: as small as they can be.
REST = dict(vocab_size=8, intermediate_size=8, max_position_embeddings=64, bos_token_id=None, eos_token_id=None)

CASES = {
    # Head size 20 (no multiple of 8), configuration as transformers 4 wrote it, without head_dim; two shards.
    "llama": dict(
        model=LlamaForCausalLM,
        config=LlamaConfig(
            hidden_size=120,
            num_hidden_layers=1,
            num_attention_heads=6,
            num_key_value_heads=3,
            rms_norm_eps=1e-5,
            **REST,
        ),
        dtype=torch.float32,
        old_config=True,
        shard_bytes=100_000,
    ),
    # Biases on q, k, v and o; one KV head; heads * head_dim above hidden_size.
    "llama-bias": dict(
        model=LlamaForCausalLM,
        config=LlamaConfig(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=32,
            attention_bias=True,
            rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
            **REST,
        ),
        dtype=torch.float32,
    ),
    # A window shorter than the prompt; F16 weights; configuration as transformers 4 wrote it.
    "mistral": dict(
        model=MistralForCausalLM,
        config=MistralConfig(
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=4,
            sliding_window=7,
            rms_norm_eps=1e-5,
            **REST,
        ),
        dtype=torch.float16,
        old_config=True,
    ),
    # Biases on q, k and v; layer 0 sees everything, layer 1 has a window; BF16 weights.
    "qwen2": dict(
        model=Qwen2ForCausalLM,
        config=Qwen2Config(
            hidden_size=112,
            num_hidden_layers=2,
            num_attention_heads=14,
            num_key_value_heads=2,
            use_sliding_window=True,
            sliding_window=10,
            max_window_layers=1,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
            **REST,
        ),
        dtype=torch.bfloat16,
    ),
    # QK-norm; a head size that is not hidden_size / heads; a model without a head, so tensors lack the prefix "model.".
    "qwen3": dict(
        model=Qwen3Model,
        config=Qwen3Config(
            hidden_size=80,
            num_hidden_layers=1,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=24,
            rms_norm_eps=1e-6,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
            **REST,
        ),
        dtype=torch.float32,
    ),
}


def check_versions():
    for module, version in VERSIONS.items():
        found = module.__version__.split("+")[0]
        if found != version:
            sys.exit(f"{module.__name__} is {found}, but the reference is made with {version}")


@contextlib.contextmanager
def float64_everywhere():
    """Modules that ask for float32 by name (softmax, RMSNorm, rotary angles) get float64 instead."""
    saved = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved
        torch.set_default_dtype(torch.float32)


def build(case, weights=None):
    config = case["config"]
    config._attn_implementation = "eager"
    model = case["model"](config).eval()
    if weights is not None:
        model.load_state_dict(weights)
    return model


def random_weights(case, generator):
    """Values that keep the size of activations, make softmax pick some keys, and are exact in the stored type."""
    weights = build(case).state_dict()
    for name, tensor in weights.items():
        values = torch.randn(tensor.shape, generator=generator)
        if name.endswith("norm.weight"):
            values = 1 + 0.25 * values
        elif name.endswith(".bias"):
            values = 0.5 * values
        else:
            values = values / math.sqrt(tensor.shape[-1])
            if "q_proj" in name or "k_proj" in name:
                values = 1.5 * values
        weights[name] = values.to(case["dtype"]).to(torch.float32)
    return weights


def record(model, steps):
    """Runs the steps one after the other with one cache; returns what each attention module took and gave."""
    inner = getattr(model, "model", model)
    layers = [dict(input=[], output=[]) for _ in inner.layers]

    def hook(layer):
        def keep(module, args, kwargs, result):
            hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
            layers[layer]["input"].append(hidden[0].clone())
            layers[layer]["output"].append(result[0][0].clone())

        return keep

    handles = [
        block.self_attn.register_forward_hook(hook(i), with_kwargs=True) for i, block in enumerate(inner.layers)
    ]
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        for step in steps:
            inner(inputs_embeds=step[None], cache=cache, use_cache=True)
    for handle in handles:
        handle.remove()
    return layers


def old_spelling(config):
    """The same configuration in the keys that transformers 4 wrote."""
    rope = config.pop("rope_parameters")
    del config["transformers_version"]
    config["rope_theta"] = rope["rope_theta"]
    config["rope_scaling"] = None
    config["torch_dtype"] = config.pop("dtype")
    if config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]:
        del config["head_dim"]
    return config


def save_checkpoint(folder, case, weights):
    tensors = {name: t.to(case["dtype"]).contiguous() for name, t in weights.items() if ".self_attn." in name}
    config = case["config"]
    config.architectures = [case["model"].__name__]
    config.dtype = case["dtype"]
    config.save_pretrained(folder)
    if case.get("old_config"):
        path = folder / "config.json"
        text = json.dumps(old_spelling(json.loads(path.read_text())), indent=2)
        path.write_text(text + "\n")
    huggingface_hub.save_torch_state_dict(tensors, folder, max_shard_size=case.get("shard_bytes", 10**9))
    return tensors


def probes(tensors, prefix, generator):
    """A few elements of each tensor: rows of (row, column, value)."""
    found = {}
    for name, tensor in tensors.items():
        if not name.startswith(prefix):
            continue
        matrix = tensor.to(torch.float32).reshape(-1, tensor.shape[-1])
        rows = torch.randint(matrix.shape[0], (PROBES,), generator=generator)
        cols = torch.randint(matrix.shape[1], (PROBES,), generator=generator)
        found["probe." + name] = torch.stack([rows.float(), cols.float(), matrix[rows, cols]], dim=1)
    return found


def error(layers, exact, layer, step):
    """Largest |float32 - float64| of a step, and the root mean square of the float64 values."""
    want = exact[layer]["output"][step]
    return (layers[layer]["output"][step].double() - want).abs().max().item(), want.pow(2).mean().sqrt().item()


def make(root, name, case, seed):
    generator = torch.Generator().manual_seed(seed)
    folder = root / name
    folder.mkdir(parents=True)
    weights = random_weights(case, generator)
    hidden = case["config"].hidden_size
    steps = [torch.randn(PREFILL, hidden, generator=generator)]
    steps += [torch.randn(1, hidden, generator=generator) for _ in range(DECODE)]
    layers = record(build(case, weights), steps)
    tensors = save_checkpoint(folder, case, weights)
    root_name = "model." if any(n.startswith("model.") for n in tensors) else ""
    for i, layer in enumerate(layers):
        reference = {
            "prefill_input": layer["input"][0],
            "prefill_output": layer["output"][0],
            "decode_input": torch.cat(layer["input"][1:]),
            "decode_output": torch.cat(layer["output"][1:]),
            "positions": torch.arange(PREFILL + DECODE),
            **probes(tensors, f"{root_name}layers.{i}.self_attn.", generator),
        }
        safetensors.torch.save_file(
            {key: value.contiguous() for key, value in reference.items()}, folder / f"reference-layer{i}.safetensors"
        )
        # Each module alone in float64, from the very inputs of the float32 run.
        print_errors(name, i, case, weights, layers)


def print_errors(name, i, case, weights, layers):
    with float64_everywhere():
        model = build(case, {key: value.double() for key, value in weights.items()})
        inner = getattr(model, "model", model)
        feed = iter([t.double()[None] for t in layers[i]["input"]])
        handle = inner.layers[i].self_attn.register_forward_pre_hook(
            lambda module, args, kwargs: (args, {**kwargs, "hidden_states": next(feed)}), with_kwargs=True
        )
        steps = [t.double() for t in layers[i]["input"]]
        exact = record(model, steps)
        handle.remove()
    prefill, size = error(layers, exact, i, 0)
    decode = max(error(layers, exact, i, step)[0] for step in range(1, DECODE + 1))
    print(f"{name} layer {i}: prefill {prefill:.2e}, decode {decode:.2e}, rms of outputs {size:.2f}")


def main():
    check_versions()
    torch.set_num_threads(1)
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "hf")
    shutil.rmtree(root, ignore_errors=True)
    for seed, (name, case) in enumerate(CASES.items()):
        make(root, name, case, seed)


if __name__ == "__main__":
    main()
