"""A stopping rule at work in a loop: after each training, what the model predicts and how right it is.

Shapes: N rows of the pool's sample; M held-out items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from askance.embedding import Embedding, sources
from askance.embedding.committee import Committee
from askance.embedding.rows import is_table, row_count, rows_at
from askance.errors import InputError
from askance.seeding import Draws
from askance.selection.embed import embed
from askance.selection.probabilities import is_estimator
from askance.selection.trainer import is_trainer
from askance.stopping.rules import Checkpoint, StopFunction, StoppingRule, of

SAMPLE = 2000  # rows of the pool on which successive models are compared


class StoppingCheck:
    """Asks a rule about each model of a run.

    Args:
        stop: the rule, or a plain function of the checkpoints.
        pool: what the run asks about.
        size: its rows.
        held_out: (X, y) that is never asked about.
        seed: of the run; it draws the sample.
    """

    def __init__(
        self,
        stop: StoppingRule | StopFunction,
        pool: Any,
        size: int,
        held_out: tuple[Any, Any] | None,
        seed: int,
    ) -> None:
        self.rule = of(stop)
        self.history: list[Checkpoint] = []
        self._pool = pool
        draws = Draws(seed).generator("stop")
        self._rows = np.sort(draws.choice(size, min(SAMPLE, size), replace=False))
        self._held_out = None if held_out is None else _checked(held_out)
        if held_out is None and "correct" in self.rule.needs:
            raise InputError(
                f"{self.rule.name} looks at each held-out item: give the loop held_out=(X, y)"
            )

    def reason(
        self, model: Any, labels: int, accuracy: float | None, options: Mapping[str, Any]
    ) -> str | None:
        """Why to stop after this model, or None.

        Args:
            model: what the run asks with.
            labels: how many labels it was trained on.
            accuracy: as the caller measured it; used where nothing is held out.
            options: of the forward pass.
        """
        passes = {k: v for k, v in options.items() if k in ("head", "batch_size", "device")}
        predictions = None
        if "predictions" in self.rule.needs:
            predictions = self._predictions(model, passes)
        correct = None
        if self._held_out is not None:
            X, y = self._held_out
            correct = _classes(model, X, passes) == y
            accuracy = None
        elif accuracy is None and "accuracy" in self.rule.needs:
            raise InputError(
                f"{self.rule.name} needs the accuracy of each model: give the loop held_out=(X, y), or "
                f"call run.log(accuracy=…) before run.ask"
            )
        self.history.append(Checkpoint(labels, predictions, correct, accuracy))
        return self.rule(self.history)

    def _predictions(self, model: Any, options: Mapping[str, Any]) -> NDArray[np.int64]:
        if isinstance(model, Embedding):
            return _classes(model[self._rows], None, options)
        take = rows_at if is_table(self._pool) else sources.take
        return _classes(model, take(self._pool, self._rows), options)


def _classes(model: Any, data: Any, options: Mapping[str, Any]) -> NDArray[np.int64]:
    """(N,) the class that the model gives each row."""
    if is_estimator(model) and hasattr(model, "predict_proba"):
        places = np.asarray(model.predict_proba(data)).argmax(axis=1)
        return np.asarray(model.classes_)[places] if hasattr(model, "classes_") else places
    if isinstance(model, (nn.Module, Committee)) or is_trainer(model):
        model = embed(model, data, **options)
    elif data is not None or not isinstance(model, Embedding):
        raise InputError(
            f"a stopping rule looks at a model's predictions: ask with the model itself, got a "
            f"{type(model).__name__}"
        )
    if model.logits is None:
        raise InputError("a stopping rule looks at predictions, and this Embedding has no logits")
    classes: NDArray[np.int64] = model.logits.argmax(dim=1).cpu().numpy()
    return classes


def _checked(held_out: Any) -> tuple[Any, NDArray[np.int64]]:
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        raise InputError(f"held_out must be (X, y), got a {type(held_out).__name__}")
    X, y = held_out
    size = row_count(X) if is_table(X) else sources.size(X)
    if not size:
        raise InputError("held_out must have one item or more")
    labels = sources.as_labels(y, size)
    if labels.ndim != 1:
        raise InputError("stopping rules take one class an item, held_out has several")
    return X, labels.numpy()
