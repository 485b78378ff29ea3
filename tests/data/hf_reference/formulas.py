"""Families that transformers does not have, built from their formulas with scaled_dot_product_attention(enable_gqa).

InternS2-Mobius (full attention): q_proj gives [query | gate] for each head; RMSNorm with 1 + w on q and k, over the
head; the first part of a head turns, by three positions, interleaved; out * sigmoid(gate), o_proj.

Cosmos3: to_qkv gives [q | k | v]; norm_q and norm_k over the head, eps 1e-6, then RoPE on the whole head, by three
positions, interleaved. Text: causal; hands on K and V. Where its q and k have no norms (qk_norm_for_text false), the
keys handed on have one (k_norm_und_for_gen, before RoPE). Images: not causal; keys are the text's, then their own.
"""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from .decoders import text_then_image
from .taps import Tap

BF16 = torch.bfloat16


class HeadNorm(nn.Module):
    """RMSNorm over the last dimension; start 0 where 1 + weight multiplies."""

    def __init__(self, size, eps, offset=0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), 1.0 - offset))
        self.eps, self.offset = eps, offset

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (self.offset + self.weight)


def angles(positions, pairs, theta, section):
    """[3, tokens] positions to [tokens, pairs]: pairs 1, 4, .. take the height, 2, 5, .. the width, as far as their
    sections go; the others the time."""
    inv = theta ** (-torch.arange(pairs) * 2.0 / (2 * pairs))
    row = torch.zeros(pairs, dtype=torch.long)
    row[1 : 3 * section[1] : 3] = 1
    row[2 : 3 * section[2] : 3] = 2
    return positions[row].T * inv


def turn(x, angle):
    """The first 2 * pairs elements of each head, half split. x [tokens, heads, size]."""
    pairs = angle.shape[1]
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1)


def attend(q, k, v, mask):
    """[tokens, heads, size] each."""
    out = scaled_dot_product_attention(
        q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None], attn_mask=mask, enable_gqa=True
    )
    return out[0].transpose(0, 1)


def causal(new, total):
    return torch.ones(new, total, dtype=torch.bool).tril(total - new)


class Mobius(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.heads, self.size = text["num_attention_heads"], text["head_dim"]
        kv, hidden = text["num_key_value_heads"], text["hidden_size"]
        self.rope = text["rope_parameters"]
        self.pairs = int(self.size * self.rope["partial_rotary_factor"]) // 2
        self.q_proj = nn.Linear(hidden, self.heads * 2 * self.size, bias=False)
        self.k_proj = nn.Linear(hidden, kv * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, kv * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.q_norm = HeadNorm(self.size, text["rms_norm_eps"], offset=1)
        self.k_norm = HeadNorm(self.size, text["rms_norm_eps"], offset=1)

    def forward(self, hidden_states, positions, cache):
        x = hidden_states[0]
        angle = angles(positions, self.pairs, self.rope["rope_theta"], self.rope["mrope_section"])
        q, gate = self.q_proj(x).view(len(x), self.heads, 2 * self.size).chunk(2, dim=-1)
        q = turn(self.q_norm(q), angle)
        cache["k"].append(turn(self.k_norm(self.k_proj(x).view(len(x), -1, self.size)), angle))
        cache["v"].append(self.v_proj(x).view(len(x), -1, self.size))
        k, v = torch.cat(cache["k"]), torch.cat(cache["v"])
        out = attend(q, k, v, causal(len(x), len(k))) * torch.sigmoid(gate)
        return (self.o_proj(out.reshape(len(x), -1))[None],)


class Cosmos3(nn.Module):
    """Both pathways: with text_norm the text's q and k have norms; with out_norm the keys handed on have one."""

    def __init__(self, config, text_norm=True, out_norm=False):
        super().__init__()
        self.heads, self.kv = config["num_attention_heads"], config["num_key_value_heads"]
        self.size = config["head_dim"]
        self.theta, self.section = config["rope_theta"], config["rope_scaling"]["mrope_section"]
        hidden = config["hidden_size"]
        self.to_qkv = nn.Linear(hidden, (self.heads + 2 * self.kv) * self.size, bias=False)
        self.to_out = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.norm_q = HeadNorm(self.size, 1e-6) if text_norm else nn.Identity()
        self.norm_k = HeadNorm(self.size, 1e-6) if text_norm else nn.Identity()
        if out_norm:
            self.k_norm_und_for_gen = HeadNorm(self.size, 1e-6)

    def project(self, x, positions):
        qkv = self.to_qkv(x).view(len(x), -1, self.size)
        q, k, v = qkv.split([self.heads, self.kv, self.kv], dim=1)
        k = self.norm_k(k)
        handed = self.k_norm_und_for_gen(k) if hasattr(self, "k_norm_und_for_gen") else k
        angle = angles(positions, self.size // 2, self.theta, self.section)
        return turn(self.norm_q(q), angle), turn(k, angle), turn(handed, angle), v


class Cosmos3Causal(Cosmos3):
    def forward(self, hidden_states, positions):
        q, k, handed, v = self.project(hidden_states[0], positions)
        out = attend(q, k, v, causal(len(q), len(q)))
        extra = {"k_output": handed.flatten(1)[None], "v_output": v.flatten(1)[None]}
        return self.to_out(out.flatten(1))[None], None, extra


class Cosmos3Cross(Cosmos3):
    def forward(self, hidden_states, positions, text_k, text_v):
        q, k, _, v = self.project(hidden_states[0], positions)
        shape = (-1, self.kv, self.size)
        out = attend(q, torch.cat([text_k.view(shape), k]), torch.cat([text_v.view(shape), v]), None)
        return (self.to_out(out.flatten(1))[None],)


def nest(path, module):
    """A module that holds `module` under the path of its tensors' names."""
    for name in reversed(path.split(".")):
        holder = nn.Module()
        holder.add_module(name, module)
        module = holder
    return module


# ---- InternS2-Mobius ----

MOBIUS_PATH = "model.language_model.layers.1.self_attn"
MOBIUS = dict(
    architectures=["InternS2MobiusForConditionalGeneration"],
    model_type="interns2_mobius",
    text_config=dict(
        model_type="interns2_mobius_text",
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=16,
        layer_types=["linear_attention", "full_attention"],
        attn_output_gate=True,
        attention_bias=False,
        rms_norm_eps=1e-6,
        max_position_embeddings=64,
        rope_parameters=dict(
            rope_type="default",
            rope_theta=10000.0,
            partial_rotary_factor=0.5,
            mrope_section=[2, 1, 1],
            mrope_interleaved=True,
        ),
    ),
)


def run_mobius(model, scene):
    attention, cache, done = model.get_submodule(MOBIUS_PATH), dict(k=[], v=[]), 0
    for step in scene["steps"]:
        attention(step, scene["positions"][:, done : done + step.shape[1]], cache)
        done += step.shape[1]


# ---- Cosmos3 ----

COSMOS3 = dict(
    architectures=["Cosmos3VFMTransformer"],
    model_type="cosmos3",
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=16,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    rope_scaling=dict(rope_type="default", mrope_section=[4, 2, 2], mrope_interleaved=True),
    max_position_embeddings=64,
)
CAUSAL_PATH, CROSS_PATH = "language_model.layers.0.self_attn", "gen_layers.0.cross_attention"
TEXT, IMAGE = 11, 12


class Pathways(nn.Module):
    """One layer of each pathway."""

    def __init__(self, config):
        super().__init__()
        text_norm = config.get("qk_norm_for_text", True)
        out_norm = config.get("use_und_k_norm_for_gen", False)
        self.add_module("language_model", nest("layers.0.self_attn", Cosmos3Causal(config, text_norm, out_norm)))
        self.add_module("gen_layers", nest("0.cross_attention", Cosmos3Cross(config)))


def cosmos3_scenes(case, generator):
    """The text, then an image of 3 x 4 whose time begins after a margin."""
    text = torch.arange(TEXT).expand(3, -1)
    image = torch.stack([torch.full((IMAGE,), TEXT + 15), torch.arange(IMAGE) // 4, torch.arange(IMAGE) % 4])
    hidden = case["hidden"]
    return [
        dict(
            text=torch.randn(1, TEXT, hidden, generator=generator),
            image=torch.randn(1, IMAGE, hidden, generator=generator),
            text_positions=text,
            image_positions=image,
            tensors={"layer0": {"positions": text}, "cross0": {"positions": image}},
        )
    ]


def run_cosmos3(model, scene):
    _, _, handed = model.get_submodule(CAUSAL_PATH)(scene["text"], scene["text_positions"])
    model.get_submodule(CROSS_PATH)(
        scene["image"], scene["image_positions"], handed["k_output"][0], handed["v_output"][0]
    )


def cosmos3_taps(model):
    return [
        Tap("layer0", CAUSAL_PATH + ".", model.get_submodule(CAUSAL_PATH)),
        Tap("cross0", CROSS_PATH + ".", model.get_submodule(CROSS_PATH)),
    ]


def cosmos3(**options):
    config = {**COSMOS3, **options}
    return dict(
        config=config,
        hidden=config["hidden_size"],
        dtype=BF16,
        build=lambda case: Pathways(config).eval(),
        scenes=cosmos3_scenes,
        run=run_cosmos3,
        taps=cosmos3_taps,
        after={"cross0": "layer0"},
        stored="",
    )


CASES = {
    "interns2-mobius": dict(
        config=MOBIUS,
        hidden=64,
        dtype=BF16,
        build=lambda case: nest(MOBIUS_PATH, Mobius(MOBIUS["text_config"])).eval(),
        scenes=text_then_image,
        run=run_mobius,
        taps=lambda model: [Tap("layer1", MOBIUS_PATH + ".", model.get_submodule(MOBIUS_PATH))],
    ),
    # Norms on the text's q and k, which are handed on as they are (Nano, Super).
    "cosmos3": cosmos3(qk_norm_for_text=True, use_und_k_norm_for_gen=False),
    # No norms on the text's q and k; the keys handed on have one (Edge).
    "cosmos3-edge": cosmos3(qk_norm_for_text=False, use_und_k_norm_for_gen=True),
}
