"""Find the classifier's last linear layer and listen to it.

The head is the `nn.Linear` whose output *is* what the model returns as its logits. That is checked on
real data, not guessed from names: a model's last module by name need not be the last one called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from askance.errors import HeadError, UnknownError


class HeadRecorder:
    """Records what one linear layer is given and gives, call by call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[Tensor, Tensor]] = []

    def __call__(
        self, _module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Tensor
    ) -> None:
        features = args[0] if args else named["input"]
        # Copies, because a model may go on to change either in place.
        self.calls.append((features.clone(), output.clone()))

    def take(self) -> tuple[Tensor, Tensor]:
        """The (features, logits) of the one call since the last `take`, as matrices."""
        calls, self.calls = self.calls, []
        if len(calls) != 1:
            raise HeadError(
                f"the head {self.name!r} must be called once in a forward pass, "
                f"it was called {len(calls)} times; name another layer with head=..."
            )
        features, logits = (_one_row_a_point(self.name, tensor) for tensor in calls[0])
        return features, logits


@contextmanager
def recording(model: nn.Module, name: str) -> Iterator[HeadRecorder]:
    """A `HeadRecorder` on the named layer, removed on leaving."""
    recorder = HeadRecorder(name)
    handle = linear_layers(model)[name].register_forward_hook(recorder, with_kwargs=True)
    try:
        yield recorder
    finally:
        handle.remove()


@contextmanager
def hearing(layers: dict[str, nn.Linear]) -> Iterator[dict[str, HeadRecorder]]:
    """A `HeadRecorder` on each of the layers, removed on leaving."""
    recorders = {name: HeadRecorder(name) for name in layers}
    handles = [
        layers[name].register_forward_hook(recorder, with_kwargs=True)
        for name, recorder in recorders.items()
    ]
    try:
        yield recorders
    finally:
        for handle in handles:
            handle.remove()


def linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    """Every `nn.Linear` by its name in the model ('' where the model is itself one)."""
    return {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}


def resolve_head(model: nn.Module, head: str | None, run: Callable[[], Any]) -> str:
    """The name of the head: `head` where it is given and real, else the one found by running.

    Args:
        model: any module.
        head: a layer's name, or None to look for it.
        run: calls the model on a batch of real data and returns what it returned.
    """
    layers = linear_layers(model)
    if head is not None:
        if head in layers:
            _check_width(head, layers[head].out_features, answers_of(run()))
            return head
        if head in dict(model.named_modules()):
            raise HeadError(
                f"head={head!r} must name an nn.Linear; it is a "
                f"{type(model.get_submodule(head)).__name__}"
            )
        raise UnknownError.of("head", head, layers)
    if not layers:
        raise HeadError(
            "the model has no nn.Linear layer, so there is no last layer to take "
            "gradients of; this rule needs a linear classifier on top. Rules that look at logits alone "
            "(entropy, margin, least-confidence) take any model in askance.select"
        )
    with hearing(layers) as recorders:
        returned = run()
    answers = answers_of(returned)
    heads = [
        name
        for name, recorder in recorders.items()
        if any(gives(output, answer) for _, output in recorder.calls for answer in answers)
    ]
    if len(heads) == 1:
        return heads[0]
    shapes = ", ".join(str(tuple(a.shape)) for a in answers) or type(returned).__name__
    if not heads:
        raise HeadError(
            f"no nn.Linear gives what the model returns ({shapes}); name the layer that makes the "
            f"logits with head=... (one of {', '.join(map(repr, layers))}), or use a rule that needs "
            f"no head (entropy, margin, least-confidence)"
        )
    raise HeadError(
        f"several linear layers give what the model returns: "
        f"{', '.join(map(repr, heads))}; choose one with head=..."
    )


def _check_width(head: str, outputs: int, answers: list[Tensor]) -> None:
    """Refuse a layer that gives another number of outputs than anything the model returns."""
    widths = {answer.shape[-1] for answer in answers if answer.ndim > 0}
    if widths and outputs not in widths:
        raise HeadError(
            f"head={head!r} has {outputs} outputs, the model returns "
            f"{' and '.join(map(str, sorted(widths)))}; name the layer that makes the logits"
        )


def answers_of(returned: Any) -> list[Tensor]:
    """The tensors in a model's return value that may be its logits."""
    if isinstance(returned, Tensor):
        return [returned]
    logits = (
        returned.get("logits") if isinstance(returned, dict) else getattr(returned, "logits", None)
    )
    if isinstance(logits, Tensor):
        return [logits]
    values = returned.values() if isinstance(returned, dict) else returned
    if isinstance(returned, (dict, tuple, list)):
        return [
            value for value in values if isinstance(value, Tensor) and value.is_floating_point()
        ]
    return []


def same(output: Tensor, answer: Tensor) -> bool:
    """Whether a layer's output is the answer as it is; it may have become another dtype."""
    if output.numel() != answer.numel() or output.shape[-1] != answer.shape[-1]:
        return False
    if not answer.is_floating_point():
        return False
    output = output.reshape(answer.shape).to(answer)
    return torch.allclose(output, answer, rtol=0, atol=0, equal_nan=True)


def gives(output: Tensor, answer: Tensor) -> bool:
    """Whether a layer's output is the answer, as it is or through a softmax."""
    if output.numel() != answer.numel() or output.shape[-1] != answer.shape[-1]:
        return False
    if same(output, answer):
        return True
    output = output.reshape(answer.shape).to(answer.device)
    if not torch.isfinite(output).all():
        return False
    # A model that returns (log-)probabilities is trained through the same cross-entropy of `output`.
    atol = 1e-3 if answer.dtype.itemsize < 4 else 1e-6
    wide = output.float()
    return any(
        torch.allclose(squash(wide, dim=-1), answer.float(), rtol=1e-3, atol=atol)
        for squash in (torch.softmax, torch.log_softmax)
    )


def _one_row_a_point(name: str, tensor: Tensor) -> Tensor:
    if tensor.ndim < 2 or tensor.numel() != tensor.shape[0] * tensor.shape[-1]:
        raise HeadError(
            f"the head {name!r} must see one row for each point, it saw shape {tuple(tensor.shape)}; "
            f"pool over positions before the head, or name another layer with head=..."
        )
    return tensor.reshape(tensor.shape[0], tensor.shape[-1])
