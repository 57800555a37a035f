"""A model's logits as it returns them: what a rule that needs no features can do without a head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from askance.embedding.head import answers_of, gives, hearing, linear_layers, same
from askance.errors import HeadError


@dataclass(frozen=True)
class LogitsReader:
    """Where the logits are in what a model returns.

    Args:
        place: which of the tensors that it returns.
        head: the linear layer that gives it, if there is one alone; its inputs are features.
        squashed: whether the model returns a (log-)softmax of what that layer gives. The layer's own
            outputs are then the logits.
    """

    place: int
    head: str | None = None
    squashed: bool = False

    def __call__(self, returned: Any) -> Tensor:
        """The logits (B, C) of a batch, as a copy: a model may go on to change its own."""
        tensors = answers_of(returned)
        if self.place >= len(tensors):
            raise HeadError(
                f"a model must return as much for each batch; it returned {self.place + 1} tensors or "
                f"more for the first, and {len(tensors)} for another"
            )
        return one_row_a_point(tensors[self.place]).clone()


def logits_reader(model: nn.Module, run: Callable[[], Any]) -> LogitsReader:
    """Where a model's logits are, found by calling it on a batch of real data.

    A head is looked for, but not needed: it tells which of several tensors are the logits, and
    what they were before a softmax.

    Args:
        model: any module.
        run: calls the model and returns what it returned.
    """
    with hearing(linear_layers(model)) as recorders:
        returned = run()
    tensors = answers_of(returned)
    if not tensors:
        raise HeadError(
            f"the model must return its logits: a tensor (B, C), an object with .logits, or a mapping "
            f"with 'logits'; it returned {_described(returned)}"
        )
    found = [
        (name, place, output)
        for name, recorder in recorders.items()
        for place, tensor in enumerate(tensors)
        for _, output in recorder.calls[:1]
        if len(recorder.calls) == 1 and gives(output, tensor)
    ]
    if len(found) == 1:
        name, place, output = found[0]
        return LogitsReader(place, name, squashed=not same(output, tensors[place]))
    places = {place for _, place, _ in found} or set(range(len(tensors)))
    if len(places) == 1:
        return LogitsReader(places.pop())
    shapes = " and ".join(str(tuple(tensor.shape)) for tensor in tensors)
    names = ", ".join(repr(name) for name, _, _ in found)
    which = f"name the layer that makes them with head=... (one of {names}), or " if names else ""
    raise HeadError(
        f"the model returns several tensors, {shapes}, and nothing tells which are the logits; "
        f"{which}return an object with .logits, or a mapping with 'logits'"
    )


def one_row_a_point(answer: Tensor) -> Tensor:
    """(B, C) of a tensor with one axis of classes: (B, C, 1, 1), (B, 1, C) and the like."""
    wide = [size for size in answer.shape[1:] if size != 1]
    if answer.ndim == 0 or len(wide) > 1:
        raise HeadError(
            f"the model must return one row of logits for each point, it returned shape "
            f"{tuple(answer.shape)}; pool over positions"
        )
    return answer.reshape(len(answer), wide[0] if wide else 1)


def _described(returned: Any) -> str:
    kind = type(returned).__name__
    return f"a {kind} without a tensor of floating-point numbers"
