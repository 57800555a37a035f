"""Several models' answers to one question: an ensemble, or one network with dropout left on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from askance._checks import check_whole
from askance.embedding.forward import Evaluation
from askance.errors import InputError
from askance.seeding import Draws

_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@dataclass(frozen=True, eq=False)
class Committee:
    """Models to be asked together; `askance.committee` makes one.

    Args:
        models: the members, or one network with dropout.
        members: how many members that one network has; None where each model is one.
        draws: what decides which units a member is without.
    """

    models: tuple[nn.Module, ...]
    members: int | None
    draws: Draws


def committee(
    model: nn.Module | Sequence[nn.Module], members: int | None = None, *, seed: int = 0
) -> Committee:
    """Members whose disagreement `bald` and `powerbald` look at; given to `select` as the model.

    Of one network with dropout, members are drawn: each is the network without the units that its
    `nn.Dropout`, `Dropout1d`, `2d` and `3d` layers drop, the same for every point (MC dropout, Gal &
    Ghahramani 2016, with masks that are kept). The first axis of what such a layer is given has to be
    the batch. Of a list of models, each is a member.

    Rules that need logits alone, such as `entropy`, look at the mean of the members' probabilities.

    Args:
        model: a network with dropout, or two or more trained models with the same classes.
        members: how many to draw of one network; 10 when None.
        seed: which units they are without.

    Example:
        >>> import askance, torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
        >>> members = askance.committee(net, members=20)
        >>> picks = askance.select(members, None, torch.randn(50, 4), 5, strategy="bald")
        >>> len(picks.indices)
        5
    """
    check_whole("seed", seed, 0)
    if isinstance(model, nn.Module):
        check_whole("members", members, 2, or_none=True)
        model = getattr(model, "_orig_mod", model)  # a compiled model's hooks may be traced away
        if not _dropout_layers(model):
            raise InputError(
                f"the {type(model).__name__} has no nn.Dropout, Dropout1d, 2d or 3d with p above 0, "
                f"so all members would agree; give it such a layer and train it with that, or pass "
                f"several trained models: askance.committee([first, second])"
            )
        return Committee((model,), members or 10, Draws(seed))
    models = tuple(model)
    if len(models) < 2 or not all(isinstance(each, nn.Module) for each in models):
        kinds = ", ".join(type(each).__name__ for each in models) or "nothing"
        raise InputError(
            f"a committee must be one torch.nn.Module with dropout, or two and more; got {kinds}"
        )
    if members is not None:
        raise InputError(f"each of the {len(models)} models is one member; leave members= out")
    return Committee(models, None, Draws(seed))


class CommitteeEvaluation(Evaluation):
    """A committee held in evaluation mode. A call gives the logits of every member, (B, M, C)."""

    def __init__(self, committee: Committee, device: torch.device | str | None = None) -> None:
        super().__init__(committee.models[0], device=device, features=False)
        self._members = committee.members
        self._passes = [
            Evaluation(each, device=device, features=False) for each in committee.models
        ]
        self._draws = committee.draws
        self._masks: _Masks | None = None

    def __enter__(self) -> CommitteeEvaluation:
        with ExitStack() as stack:
            for each in self._passes:
                stack.enter_context(each)
            if self._members is not None:
                self._masks = _Masks(self.model, self._draws)
                stack.callback(self._masks.remove)
            self._exit = stack.pop_all()
        self.device = self._passes[0].device
        return self

    def prepare(self, inputs: Any) -> Any:
        """The batch as it is: each member prepares it for itself."""
        return inputs

    def __call__(self, inputs: Any) -> tuple[Tensor, None]:
        answers = []
        for each in self._passes:
            prepared = each.prepare(inputs)
            for member in range(self._members or 1):
                if self._masks is not None:
                    self._masks.member = member
                answers.append(each(prepared)[0].to(self.device))
        shapes = sorted({tuple(logits.shape) for logits in answers})
        if len(shapes) > 1:
            raise InputError(
                f"the members of a committee must answer with the same classes, they gave logits of "
                f"shapes {shapes[0]} and {shapes[-1]} for one batch"
            )
        return torch.stack(answers, dim=1), None


class _Masks:
    """Hooks that drop, for one member at a time, the same units of every point.

    A mask is a function of the seed, the member, the layer, and how often the layer was called before
    in the same pass. So it does not depend on the order of points, or on batches.
    """

    def __init__(self, model: nn.Module, draws: Draws) -> None:
        self.member = 0
        self._draws = draws
        self._calls: Counter[str] = Counter()
        self._known: dict[tuple[Any, ...], Tensor] = {}
        self._hooks = [model.register_forward_pre_hook(lambda *_: self._calls.clear())]
        for name, layer in _dropout_layers(model):
            self._hooks.append(layer.register_forward_hook(self._dropping(name)))

    def remove(self) -> None:
        """Leave the model without hooks."""
        for hook in self._hooks:
            hook.remove()

    def _dropping(self, name: str) -> Any:
        def drop(layer: Any, _: Any, output: Tensor) -> Tensor:
            call = self._calls[name]
            self._calls[name] += 1
            shape = output.shape[1:]
            if not isinstance(layer, nn.Dropout):  # whole channels
                shape = shape[:1] + (1,) * (output.ndim - 2)
            key = (self.member, name, call, shape)
            if key not in self._known:
                self._known[key] = self._mask(f"dropout {key[:3]}", shape, layer.p)
            return output * self._known[key].to(output)

        return drop

    def _mask(self, purpose: str, shape: tuple[int, ...], p: float) -> Tensor:
        """(1, *shape): 0 for a unit that is dropped, 1/(1 − p) for one that is left."""
        left = self._draws.generator(purpose).random((1, *shape)) >= p
        return torch.from_numpy(left / (1 - p) if p < 1 else left * 0.0)


def _dropout_layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    layers = model.named_modules()
    return [(name, layer) for name, layer in layers if isinstance(layer, _DROPOUT) and layer.p > 0]
