"""Random weights of a model of any class, and what of them is stored."""

import json
import math
import re

import huggingface_hub
import torch

PROBES = 4

# Projections that make Q or K, also where V comes out of the same matrix: larger, so that softmax picks some keys.
SHARP = r"q_proj|k_proj|qkv|query|\.key\.|c_attn|q_b_proj|kv_b_proj|kv_a_proj"


def random_weights(case, generator):
    """Values that keep the size of activations, make softmax pick some keys, and are exact in the stored type.

    Vectors keep what their class starts them with (norms: 1, or 0 where 1 + weight multiplies) and vary around it.
    """
    sharp, factor = case.get("sharp", SHARP), case.get("sharpness", 1.5)
    torch.manual_seed(0)
    weights = case["build"](case).state_dict()
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            continue
        values = torch.randn(tensor.shape, generator=generator)
        if name.endswith("bias"):
            values = 0.5 * values
        elif name.endswith(".sinks"):
            values = 1 + values
        elif tensor.ndim == 1:
            values = tensor + 0.25 * values
        else:
            values = values / math.sqrt(tensor.shape[-1])
            if re.search(sharp, name):
                values = factor * values
        weights[name] = values.to(case["dtype"]).to(torch.float32)
    return weights


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


def save_config(folder, case):
    config = case["config"]
    path = folder / "config.json"
    if isinstance(config, dict):
        path.write_text(json.dumps(config, indent=2) + "\n")
        return
    config.architectures = [case["model"].__name__]
    config.dtype = case["dtype"]
    config.save_pretrained(folder)
    if case.get("old_config"):
        text = json.dumps(old_spelling(json.loads(path.read_text())), indent=2)
        path.write_text(text + "\n")


def save_checkpoint(folder, case, weights):
    """The attention tensors under their real names, and config.json."""
    stored = case.get("stored", r"\.self_attn\.")
    tensors = {name: t.to(case["dtype"]).contiguous() for name, t in weights.items() if re.search(stored, name)}
    save_config(folder, case)
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
