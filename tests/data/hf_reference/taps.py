"""What goes into attention modules and what comes out, while a model runs as a whole."""

import dataclasses

import torch


@dataclasses.dataclass
class Tap:
    """One attention block of a model, of which a reference file is made."""

    name: str  # reference-NAME.safetensors
    prefix: str  # of its tensors
    block: torch.nn.Module  # takes the hidden states
    result: torch.nn.Module = None  # gives the output, where that is another module


def _hidden(args, kwargs):
    return kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]


def _replaced(args, kwargs, call):
    if "hidden_states" in kwargs:
        kwargs = {**kwargs, "hidden_states": call["input"]}
    else:
        args = (call["input"], *args[1:])
    if call["kv"] is not None:
        kwargs = {**kwargs, "key_value_states": call["kv"]}
    return args, kwargs


def record(taps, run, feed=None):
    """run() with hooks; returns, for each tap, its calls: input, kv (states that K and V come from), output.

    With feed (such a result) every block gets the inputs recorded there instead of those that the model makes.
    """
    calls = [[] for _ in taps]
    handles = []

    def before(tap):
        def hook(module, args, kwargs):
            if feed:
                args, kwargs = _replaced(args, kwargs, feed[tap][len(calls[tap])])
            kv = kwargs.get("key_value_states")
            calls[tap].append(dict(input=_hidden(args, kwargs).clone(), kv=None if kv is None else kv.clone()))
            return args, kwargs

        return hook

    def after(tap):
        def hook(module, args, result):
            output = result if torch.is_tensor(result) else result[0]
            calls[tap][-1]["output"] = output.clone()
            if not torch.is_tensor(result) and len(result) == 3 and isinstance(result[2], dict):
                calls[tap][-1].update(result[2])

        return hook

    for i, tap in enumerate(taps):
        handles.append(tap.block.register_forward_pre_hook(before(i), with_kwargs=True))
        handles.append((tap.result or tap.block).register_forward_hook(after(i)))
    with torch.no_grad():
        run()
    for handle in handles:
        handle.remove()
    return calls
