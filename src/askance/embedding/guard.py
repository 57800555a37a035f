"""Leave everything as it was: the model, and the global random generators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module, device: torch.device | None) -> Iterator[torch.device]:
    """Hold `model` in evaluation mode on `device` and put everything back, whatever happens.

    Flags are set and restored one by one, not through `eval()` and `train()`: layers that override
    those (merged adapters, frozen batch-norm) would come back different.
    """
    modules = list(model.modules())
    # A frozen TorchScript module has no mode to be in.
    flags = [(module, module.training) for module in modules if hasattr(module, "training")]
    home = _device_of(model)
    target = home if device is None else device
    # Moving replaces buffers, and of parameters and gradients either the storage or the tensors
    # themselves; the originals are kept and put back, bit for bit.
    moved = target != home
    parameters = [
        (module, name, p, p.data, p.grad, None if p.grad is None else p.grad.data)
        for module in (modules if moved else [])
        for name, p in module._parameters.items()
        if p is not None
    ]
    buffers = [
        (module, name, buffer)
        for module in (modules if moved else [])
        for name, buffer in module._buffers.items()
    ]
    try:
        for module, _ in flags:
            module.training = False
        if moved:
            model.to(target)
        with torch.no_grad():
            yield target
    finally:
        for module, flag in flags:
            module.training = flag
        for module, name, parameter, data, grad, grad_data in parameters:
            module._parameters[name] = parameter
            parameter.data = data
            if grad is not None and grad_data is not None:
                grad.data = grad_data
            parameter.grad = grad
        for module, name, buffer in buffers:
            module._buffers[name] = buffer


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the global generators of Python, NumPy and torch, which data loaders draw from."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def reseed(seed: int) -> None:
    """Seed all of them; to be called where they are preserved."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    # Not `torch.manual_seed`: before CUDA is in use that would leave a seed waiting for its start.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


@contextmanager
def full_precision(device: torch.device | None) -> Iterator[None]:
    """Products of float32 made in float32: scores are differences, and TF32 keeps three digits."""
    kind = "cpu" if device is None else device.type
    products = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(kind, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(products)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Tensors made without a dtype are of this one, whatever the process has set."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _device_of(model: nn.Module) -> torch.device:
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")
