"""What a case is, and how decoders of transformers run."""

import torch
from transformers import DynamicCache

from .taps import Tap

PREFILL = 24
DECODE = 6

# Parts of a model that are not attention: as small as they can be.
REST = dict(vocab_size=8, intermediate_size=8, max_position_embeddings=64, bos_token_id=None, eos_token_id=None)


def build(case):
    """A model of the case's class. Weights are set by who calls."""
    config = case["config"]
    config._attn_implementation = case.get("implementation", "eager")
    config._experts_implementation = "eager"
    return case["model"](config).eval()


def steps(hidden, generator, prefill=PREFILL, decode=DECODE, batch=None):
    """Hidden states of a prefill and of single tokens after it."""
    shape = (batch or 1,)
    first = torch.randn(*shape, prefill, hidden, generator=generator)
    return [first] + [torch.randn(*shape, 1, hidden, generator=generator) for _ in range(decode)]


def one_scene(case, generator):
    return [dict(steps=steps(case["hidden"], generator))]


def inner(case, model):
    """The part of a model that takes inputs_embeds and a cache."""
    for part in case.get("inner", "").split("."):
        model = getattr(model, part) if part else model
    return model


def run_decoder(case, model, scene):
    text = inner(case, model)
    cache = DynamicCache(config=text.config)
    done = 0
    for step in scene["steps"]:
        extra = {}
        if "positions" in scene:
            extra["position_ids"] = scene["positions"][:, None, done : done + step.shape[1]]
        text(inputs_embeds=step, cache=cache, use_cache=True, **extra)
        done += step.shape[1]


def layer_taps(case, model):
    """One tap for each layer that has an attention module."""
    blocks = inner(case, model).get_submodule(case.get("blocks", "layers"))
    found = []
    for i, block in enumerate(blocks):
        attention = block
        for part in case.get("attention", "self_attn").split("."):
            attention = getattr(attention, part, None)
        if attention is not None:
            name = next(n for n, module in model.named_modules() if module is attention)
            found.append(Tap(f"layer{i}", name + ".", attention))
    return found


def decoder(model, config, hidden=None, dtype=torch.float32, **more):
    """A case: `inner`, `blocks` and `attention` are paths of submodules."""
    case = dict(
        model=model,
        config=config,
        hidden=hidden or config.get_text_config().hidden_size,
        dtype=dtype,
        build=build,
        scenes=one_scene,
    )
    case["run"] = lambda built, scene: run_decoder(case, built, scene)
    case["taps"] = lambda built: layer_taps(case, built)
    case["inner"] = "model"
    case.update(more)
    return case
