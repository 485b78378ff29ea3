"""The same modules in float64, to say how exact their float32 outputs are."""

import contextlib

import torch


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
