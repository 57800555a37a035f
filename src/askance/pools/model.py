"""A model that is built where it is needed: in a thread, a process, on another machine."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from askance.embedding.factory import called, imported
from askance.errors import InputError


class ModelSource(Protocol):
    """How to come by the model. Picklable."""

    def build(self) -> nn.Module:
        """A model of one's own, with its weights."""
        ...

    def digest(self) -> str:
        """The same for the same model, another for other weights."""
        ...


@dataclass(frozen=True)
class ModelRecipe:
    """A function that makes the model, called with the options, and a file of weights.

    Args:
        model: "package.module:function".
        weights: a state dict, `.safetensors` or what `torch.save` wrote (`.pt`, `.pth`, `.bin`). It is
            loaded with `weights_only`, so that it can hold tensors alone and run nothing.
        options: given to the function by name.
    """

    model: str
    weights: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def build(self) -> nn.Module:
        made = called(self.model, imported(self.model), dict(self.options))
        if self.weights is not None:
            state = _state(self.weights)
            try:
                made.load_state_dict(state)
            except RuntimeError as error:
                raise InputError(
                    f"the weights in {self.weights} are not of model {self.model!r}: {error}"
                ) from error
        return made

    def digest(self) -> str:
        digest = blake2b(repr((self.model, self.options)).encode(), digest_size=16)
        if self.weights is not None:
            with _weights_file(self.weights).open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class InMemoryModel:
    """A model that is there already; each `build` is a copy, so that none listens to another's head."""

    model: nn.Module

    def build(self) -> nn.Module:
        return copy.deepcopy(self.model)

    def digest(self) -> str:
        digest = blake2b(type(self.model).__qualname__.encode(), digest_size=16)
        for name, tensor in self.model.state_dict().items():
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return digest.hexdigest()


def as_model_source(model: nn.Module | ModelSource | None) -> ModelSource | None:
    """How to come by the model, whatever was given as one."""
    if isinstance(model, nn.Module):
        return InMemoryModel(model)
    return model


def _weights_file(path: str) -> Path:
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: no such file of weights")
    return file


def _state(path: str) -> dict[str, Any]:
    file = _weights_file(path)
    if file.suffix == ".safetensors":
        return _safetensors(file)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        reason, _, _ = str(error).partition("\n")
        raise InputError(
            f"{path}: no file of weights alone ({type(error).__name__}: {reason}); "
            f"save one with torch.save(model.state_dict(), path), or as .safetensors"
        ) from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict):
        raise InputError(f"{path}: expected a state dict, got a {type(state).__name__}")
    return state


def _safetensors(file: Path) -> dict[str, Any]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise InputError(
            f"{file}: reading it takes safetensors: pip install safetensors"
        ) from error
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: not a readable .safetensors file ({error})") from error
