"""One case: weights, runs, the checkpoint, the reference files, and how exact they are."""

import safetensors.torch
import torch

from . import exact, taps, weights


def to_double(value):
    if torch.is_tensor(value):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: to_double(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_double(item) for item in value]
    return value


def with_weights(case, state):
    model = case["build"](case)
    model.load_state_dict(state)
    return model


def rows(states, lengths):
    """[sequences, longest, hidden] to the rows of all sequences, without padding."""
    return torch.cat([sequence[:length] for sequence, length in zip(states, lengths)])


def reference(calls, scene):
    """The tensors of a reference file (README.md), from the calls of one tap."""
    first, later = calls[0], calls[1:]
    lengths = scene.get("lengths") or [first["input"].shape[1]] * first["input"].shape[0]
    found = {
        "prefill_input": rows(first["input"], lengths),
        "prefill_output": rows(first["output"], lengths),
    }
    if later:
        found["decode_input"] = torch.cat([call["input"][:, 0] for call in later])
        found["decode_output"] = torch.cat([call["output"][:, 0] for call in later])
    if first["kv"] is not None:
        kv_lengths = scene.get("kv_lengths") or [first["kv"].shape[1]] * first["kv"].shape[0]
        found["kv_input"] = rows(first["kv"], kv_lengths)
        found["kv_lengths"] = torch.tensor(kv_lengths)
    if len(lengths) > 1:
        found["lengths"] = torch.tensor(lengths)
    for extra in ("k_output", "v_output"):
        if extra in first:
            found[extra] = torch.cat([first[extra][0]] + [call[extra][0] for call in later])
    return found


def print_errors(label, got, want, scene):
    """Largest |float32 - float64| of any row that is stored, and the root mean square of the float64 ones."""
    a, b = reference(got, scene), reference(want, scene)

    def worst(name):
        return (a[name].double() - b[name]).abs().max().item() if name in a else 0

    size = b["prefill_output"].pow(2).mean().sqrt().item()
    decode = f"{worst('decode_output'):.2e}" if "decode_output" in a else "-"
    print(f"| {label} | {worst('prefill_output'):.2e} | {decode} | {size:.2f} |")


def run_scene(folder, case, state, scene, tensors, generator):
    model = with_weights(case, state)
    tapped = case["taps"](model)
    calls = taps.record(tapped, lambda: case["run"](model, scene))
    with exact.float64_everywhere():
        double = with_weights(case, to_double(state)).double()
        want = taps.record(
            case["taps"](double), lambda: case["run"](double, to_double(scene)), [to_double(c) for c in calls]
        )
    by_name = {tap.name: got for tap, got in zip(tapped, calls)}
    for tap, got, better in zip(tapped, calls, want):
        name = tap.name + scene.get("suffix", "")
        found = reference(got, scene)
        found.update(scene.get("tensors", {}).get(tap.name, {}))
        if tap.name in case.get("after", {}):
            earlier = reference(by_name[case["after"][tap.name]], scene)
            found.update(cached_k=earlier["k_output"], cached_v=earlier["v_output"])
        if "positions" not in found:
            found["positions"] = torch.arange(sum(call["input"].shape[1] for call in got))
        found.update(weights.probes(tensors, tap.prefix, generator))
        path = folder / f"reference-{name}.safetensors"
        safetensors.torch.save_file({key: value.contiguous() for key, value in found.items()}, path)
        print_errors(f"`{folder.name}` | {name}", got, better, scene)


def make(root, name, case, seed):
    generator = torch.Generator().manual_seed(seed)
    folder = root / name
    folder.mkdir(parents=True)
    state = case.get("weights", weights.random_weights)(case, generator)
    scenes = case["scenes"](case, generator)
    tensors = weights.save_checkpoint(folder, case, state)
    for scene in scenes:
        run_scene(folder, case, state, scene, tensors, generator)
