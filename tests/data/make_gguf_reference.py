#!/usr/bin/env python3
"""Makes tests/data/gguf (see README.md beside this file), with the versions in hf_reference/versions.py and gguf 0.19.0.

blocks.safetensors: random blocks of each quantised type, and what the gguf package's dequantize() makes of them.
NAME.gguf: checkpoints of tests/data/hf in llama.cpp's names, keys and order of rows; their outputs are those of hf/NAME.
llama-quantised: a Llama with every quantised type; transformers computed the outputs from the dequantised weights. The
package has no quantiser for the K types, so those tensors are random blocks.

Usage: make_gguf_reference.py [FOLDER]   (default: gguf beside this file)
"""

import importlib.metadata
import json
import math
import pathlib
import re
import shutil
import sys

import numpy
import safetensors.numpy
import safetensors.torch
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, quants
from transformers import LlamaConfig, LlamaForCausalLM

from hf_reference import case as cases
from hf_reference import run, versions, weights

GGUF_VERSION = "0.19.0"
HERE = pathlib.Path(__file__).parent
STORED = {torch.float32: Type.F32, torch.float16: Type.F16, torch.bfloat16: Type.BF16}
NAMES = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "qkv_proj": "attn_qkv",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "query_key_value": "attn_qkv",
    "dense": "attn_output",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
}


def random_blocks(kind, count, generator):
    """Blocks whose values spread around 0 with a deviation near 0.1."""
    size = quants.GGML_QUANT_SIZES[kind][1]
    blocks = generator.integers(0, 256, (count, size), dtype=numpy.uint8)

    def put(at, value):
        scale = (value * generator.uniform(0.5, 1.5, count)).astype(numpy.float16)
        blocks[:, at : at + 2] = scale.view(numpy.uint8).reshape(count, 2)
        return scale.astype(numpy.float32)

    if kind in (Type.Q4_K, Type.Q5_K):
        middle, step = (7.5, 5e-4) if kind == Type.Q4_K else (15.5, 2.5e-4)
        least = (put(0, step) * middle).astype(numpy.float16)
        blocks[:, 2:4] = least.view(numpy.uint8).reshape(count, 2)
    elif kind == Type.Q6_K:
        put(208, 4e-4)
        blocks[:, 192:208] = generator.integers(-20, 21, (count, 16), dtype=numpy.int8).view(numpy.uint8)
    else:
        put(0, 0.02 if kind == Type.Q4_0 else 0.0014)
    return blocks


def make_blocks(root):
    generator = numpy.random.default_rng(1)
    found = {}
    for kind in (Type.Q8_0, Type.Q4_0, Type.Q4_K, Type.Q5_K, Type.Q6_K):
        blocks = random_blocks(kind, 7, generator)
        found[kind.name + ".blocks"] = blocks
        found[kind.name + ".values"] = quants.dequantize(blocks, kind)
    safetensors.numpy.save_file(found, root / "blocks.safetensors")


def permuted(tensor, heads):
    """Rows (half, i) of a head become (i, half): llama.cpp turns neighbours where transformers turns halves."""
    rest = tensor.shape[1:]
    return tensor.reshape(heads, 2, -1, *rest).swapaxes(1, 2).reshape(tensor.shape)


def add(writer, name, tensor, kind):
    values = numpy.ascontiguousarray(tensor.float().numpy())
    if kind == Type.F32 or tensor.ndim == 1:
        writer.add_tensor(name, values)
    else:
        writer.add_tensor(name, quants.quantize(values, kind), raw_dtype=kind)


def ungrouped(tensor, groups, size):
    """Rows [its Q heads | K | V] of each KV head become [all of Q | all of K | all of V], as the converter writes them."""
    heads = tensor.reshape(groups, -1, size, *tensor.shape[1:])
    return torch.cat([part.reshape(-1, *tensor.shape[1:]) for part in (heads[:, :-2], heads[:, -2:-1], heads[:, -1:])])


def gguf_name(name):
    """The number of the layer, then the last part that NAMES has, or what follows the block's name."""
    layer, rest = re.search(r"(?:layers|layer|h)\.(\d+)\.\w*(?:attn|attention)\.(.*)", name).groups()
    part, *kind = re.sub(r"^(self|output)\.", "", rest).split(".")
    stem = NAMES.get(part, "attn_" + part)
    return f"blk.{layer}.{stem}.{kind[0] if kind else 'weight'}"


def add_keys(writer, config):
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters")
    kv_heads = config.get("num_key_value_heads") or config.get("num_kv_heads")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(heads)
    if kv_heads:
        writer.add_head_count_kv(kv_heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(config.get("layer_norm_eps") or config["layer_norm_epsilon"])
    if rope:
        writer.add_rope_freq_base(rope["rope_theta"])
        writer.add_rope_dimension_count(int(size * rope.get("partial_rotary_factor", 1)))
    else:
        writer.add_causal_attention(False)  # BERT
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    return size, rope


def llama3_divisors(size, rope):
    """The bands of Llama 3.1 as divisors of the plain frequencies, which is what the converter stores."""
    plain = rope["rope_theta"] ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    length = 2 * math.pi / plain
    old, low, high = (rope[k] for k in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
    smooth = (old / length - low) / (high - low)
    between = 1 / ((1 - smooth) / rope["factor"] + smooth)
    found = torch.where(length > old / low, torch.tensor(rope["factor"], dtype=torch.float64), between)
    return torch.where(length < old / high, torch.ones_like(found), found)


def add_rope(writer, size, rope, config):
    kind = rope and rope["rope_type"]
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(size, rope).float().numpy())
    elif kind == "longrope":
        trained = config["original_max_position_embeddings"]
        grown = config["max_position_embeddings"] / trained
        writer.add_rope_scaling_orig_ctx_len(trained)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(grown) / math.log(trained)))
        for name in ("long", "short"):
            writer.add_tensor(f"rope_factors_{name}.weight", numpy.array(rope[name + "_factor"], numpy.float32))
    elif kind == "yarn":
        writer.add_string(f"{writer.arch}.rope.scaling.type", "yarn")
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(root, name, architecture):
    """A checkpoint of hf/NAME as a GGUF file."""
    config = json.loads((HERE / "hf" / name / "config.json").read_text())
    tensors = safetensors.torch.load_file(HERE / "hf" / name / "model.safetensors")
    writer = GGUFWriter(root / f"{name}.gguf", architecture)
    size, rope = add_keys(writer, config)
    add_rope(writer, size, rope, config)
    if architecture == "qwen2":
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])
    for tensor_name, tensor in sorted(tensors.items()):
        if architecture == "llama" and ("q_proj" in tensor_name or "k_proj" in tensor_name):
            tensor = permuted(tensor, tensor.shape[0] // size)
        if "query_key_value" in tensor_name:
            tensor = ungrouped(tensor, config.get("num_kv_heads") or config["num_attention_heads"], size)
        if "LayerNorm" in tensor_name:
            continue
        add(writer, gguf_name(tensor_name), tensor, STORED[tensor.dtype])
    write(writer)


# Tensors of two layers in every type; a row of Q, K or V is one block of the K types.
QUANTISED = [
    {"q_proj": Type.Q4_K, "k_proj": Type.Q5_K, "v_proj": Type.Q6_K, "o_proj": Type.Q8_0},
    {"q_proj": Type.Q4_0, "k_proj": Type.Q8_0, "v_proj": Type.BF16, "o_proj": Type.F16},
]


def quantised_case():
    config = LlamaConfig(
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        **cases.REST,
    )
    return cases.decoder(LlamaForCausalLM, config)


def quantised(kind, tensor, generator):
    """Rows of blocks or of plain elements."""
    if kind in (Type.Q4_K, Type.Q5_K, Type.Q6_K):
        return random_blocks(kind, tensor.numel() // 256, generator).reshape(tensor.shape[0], -1)
    return quants.quantize(tensor.numpy(), kind)


def make_quantised(root):
    case, generator = quantised_case(), torch.Generator().manual_seed(1)
    state, numbers = weights.random_weights(case, generator), numpy.random.default_rng(2)
    writer = GGUFWriter(root / "llama-quantised.gguf", "llama")
    size, _ = add_keys(writer, case["config"].to_dict())
    for layer, kinds in enumerate(QUANTISED):
        for part, kind in kinds.items():
            name = f"model.layers.{layer}.self_attn.{part}.weight"
            rows = quantised(kind, state[name], numbers)
            values = torch.from_numpy(quants.dequantize(rows, kind).copy())
            if part in ("q_proj", "k_proj"):  # the file is permuted, transformers is not
                rows = permuted(rows, state[name].shape[0] // size)
            state[name] = values.reshape(state[name].shape)
            writer.add_tensor(gguf_name(name), numpy.ascontiguousarray(rows), raw_dtype=kind)
    write(writer)
    folder = root / "llama-quantised"
    folder.mkdir()
    run.run_scene(folder, case, state, case["scenes"](case, generator)[0], {}, generator)


def main():
    versions.check()
    if importlib.metadata.version("gguf") != GGUF_VERSION:
        sys.exit(f"gguf is {importlib.metadata.version('gguf')}, but the reference is made with {GGUF_VERSION}")
    torch.set_num_threads(1)
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "gguf")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    make_blocks(root)
    convert(root, "llama3-rope", "llama")
    convert(root, "qwen2", "qwen2")
    convert(root, "qwen3", "qwen3")
    convert(root, "phi3", "phi3")
    convert(root, "gpt-oss", "gpt-oss")
    convert(root, "olmo2", "olmo2")
    convert(root, "gpt-neox", "gptneox")
    convert(root, "falcon-groups", "falcon")
    convert(root, "bert", "bert")
    make_quantised(root)


if __name__ == "__main__":
    main()
