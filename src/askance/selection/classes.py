"""Names of classes: labels as the numbers that a model has for them, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from askance.embedding import Embedding
from askance.embedding.committee import Committee
from askance.errors import InputError, LabelError, NonFiniteError
from askance.selection.probabilities import is_estimator
from askance.strategies import Strategy

Names = tuple[Any, ...]


def class_names(model: object, labeled: Any, given: Sequence[str] | None) -> Names | None:
    """The names of the classes, in the order of the model's outputs; None where nothing tells them.

    Args:
        model: as of `select`. A fitted classifier has them in `classes_`.
        labeled: (X, y). Where an encoder is the model, a regression is fitted on y, and its classes
            are the names in y, in alphabetical order.
        given: what the caller says they are.
    """
    if given is not None:
        return checked_names(given)
    if is_estimator(model):
        classes = getattr(model, "classes_", None)
        if classes is None or isinstance(classes, list):  # a list of arrays: several outputs
            return None
        return tuple(np.asarray(classes).tolist())
    by_module = model is None or isinstance(model, (nn.Module, Committee))
    y = labeled[1] if isinstance(labeled, tuple) and len(labeled) == 2 else None
    return None if by_module or not are_names(y) else tuple(sorted(set(np.asarray(y).tolist())))


def checked_names(given: Sequence[str]) -> Names:
    """The names, once they are seen to be different texts."""
    names = () if isinstance(given, str) else tuple(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"classes must be the names of all classes, in the order of the model's outputs, got "
            f"{given!r}"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"classes must be different names, {twice!r} comes twice")
    return names


def are_names(labels: Any) -> bool:
    """Whether the labels are texts, and none is missing."""
    if labels is None or isinstance(labels, Tensor):
        return False
    try:
        each = np.asarray(labels)
    except ValueError:  # ragged: refused where the labels are read
        return False
    # Of a list its own: NumPy makes NaN among names a text.
    some = list(labels) if isinstance(labels, (list, tuple)) else each.tolist()
    return each.ndim == 1 and bool(some) and all(isinstance(label, str) and label for label in some)


def numbered(labeled: Any, names: Names | None) -> Any:
    """(X, y) with the number of each class in place of its name; anything else as it is."""
    if names is None or not isinstance(labeled, tuple) or len(labeled) != 2:
        return labeled
    X, y = labeled
    return (X, numbers_of(y, names)) if are_names(y) else labeled


def without_targets(rule: Strategy, labeled: Any) -> Any:
    """(X, y) without the numbers of a regression, for a rule that does not look at labels."""
    if not rule.takes_targets or not isinstance(labeled, tuple) or len(labeled) != 2:
        return labeled
    y = labeled[1].detach().cpu() if isinstance(labeled[1], Tensor) else labeled[1]
    values = np.asarray(y)
    if values.dtype.kind != "f" or values.ndim not in (1, 2):
        return labeled
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise NonFiniteError(f"the labels of a regression must be finite numbers, {bad} are not")
    return labeled[0], np.zeros(len(values), dtype=np.int64)


def numbers_of(labels: Any, names: Names) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of each label among the names."""
    place = {name: number for number, name in enumerate(names)}
    each = np.asarray(labels).tolist()
    unknown = sorted({str(label) for label in each if label not in place})
    if unknown:
        raise LabelError(
            f"the classes are {', '.join(map(repr, names))}; the labels also have "
            f"{', '.join(map(repr, unknown[:5]))}"
        )
    return np.array([place[label] for label in each], dtype=np.int64)


def named_blocks(blocks: Iterator[Embedding], names: Names | None) -> Iterator[Embedding]:
    """The same blocks, each seen to have a name for each output."""
    for block in blocks:
        if block.logits is not None:
            check_width(names, block.logits.shape[1])
        yield block


def check_width(names: Sequence[Any] | None, outputs: int) -> None:
    """Raise unless there is a name for each of the model's outputs."""
    if names is not None and len(names) != outputs:
        raise InputError(
            f"there are {len(names)} names of classes ({', '.join(map(str, names[:5]))}"
            f"{', …' if len(names) > 5 else ''}), and the model has {outputs} outputs; name all its "
            f"classes in the order of its outputs, with classes=[…] or --classes A,B,…"
        )
