"""A stopping rule at work in a loop: after each training, what the model predicts and how right it is.

Shapes: N rows of the pool's sample; M held-out items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from askance.embedding import Embedding, sources
from askance.embedding.committee import Committee
from askance.embedding.rows import is_table, row_count, rows_at
from askance.errors import InputError, LabelError
from askance.seeding import Draws
from askance.selection.classes import are_names, numbers_of
from askance.selection.embed import embed
from askance.selection.probabilities import is_estimator
from askance.selection.trainer import is_trainer
from askance.stopping.rules import Checkpoint, StopFunction, StoppingRule, of

if TYPE_CHECKING:
    from askance.selection.encoded import EncodedRegression

SAMPLE = 2000  # rows of the pool on which successive models are compared


class StoppingCheck:
    """Asks a rule about each model of a run.

    Args:
        stop: the rule, or a plain function of the checkpoints.
        pool: what the run asks about.
        size: its rows.
        held_out: (X, y) that is never asked about.
        seed: of the run; it draws the sample.
        classes: the run's names of classes; held-out labels that are names are then numbers too.
    """

    def __init__(
        self,
        stop: StoppingRule | StopFunction,
        pool: Any,
        size: int,
        held_out: tuple[Any, Any] | None,
        seed: int,
        classes: Sequence[str] | None = None,
    ) -> None:
        self.rule = of(stop)
        self.history: list[Checkpoint] = []
        self._pool = pool
        draws = Draws(seed).generator("stop")
        self._rows = np.sort(draws.choice(size, min(SAMPLE, size), replace=False))
        self._held_out = None if held_out is None else _checked(held_out, classes)
        if held_out is None and "correct" in self.rule.needs:
            raise InputError(
                f"{self.rule.name} looks at each held-out item: give the loop held_out=(X, y)"
            )

    def fitted(self, model: Any, labeled: Callable[[], Any], options: Mapping[str, Any]) -> Any:
        """Of an encoder, the regression on its features, which the next pick shares.

        Other models come back as they are, and so does an encoder of which the rule sees nothing.

        Args:
            model: what the run asks with.
            labeled: gives (X, y).
            options: of the pick.
        """
        looks = "predictions" in self.rule.needs or self._held_out is not None
        if not looks or not is_encoder(model):
            return model
        from askance.selection.encoded import regression_of

        return regression_of(model, labeled(), self._pool, options)

    def reason(
        self, model: Any, labels: int, accuracy: float | None, options: Mapping[str, Any]
    ) -> str | None:
        """Why to stop after this model, or None.

        Args:
            model: what the run asks with, after `fitted`.
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
            said = _classes(model, X, passes)
            if are_names(said) != are_names(y):
                raise LabelError(
                    f"the model says {said[0]!r} where the label of held_out is {y[0]!r}: give both as "
                    f"names or both as numbers; classes=[…] of the loop says which is which"
                )
            correct = said == y
            accuracy = None
        elif accuracy is None and "accuracy" in self.rule.needs:
            raise InputError(
                f"{self.rule.name} needs the accuracy of each model: give the loop held_out=(X, y), or "
                f"call run.log(accuracy=…) before run.ask"
            )
        self.history.append(Checkpoint(labels, predictions, correct, accuracy))
        return self.rule(self.history)

    def _predictions(self, model: Any, options: Mapping[str, Any]) -> NDArray[Any]:
        if isinstance(model, Embedding):
            return _classes(model[self._rows], None, options)
        if (regression := _regression(model)) is not None:
            return regression.classes_of_rows(self._rows)
        take = rows_at if is_table(self._pool) else sources.take
        return _classes(model, take(self._pool, self._rows), options)


def is_encoder(model: Any) -> bool:
    """Whether the model is an encoder or the name of one: without a label it predicts nothing yet."""
    known = model is None or isinstance(model, (nn.Module, Committee, Embedding))
    if known or is_estimator(model) or is_trainer(model):
        return False
    from askance.encoders import Encoder  # reading images takes libraries of its own

    return isinstance(model, (str, Encoder)) and _regression(model) is None


def _regression(model: Any) -> EncodedRegression | None:
    """The model, where it is a regression on an encoder's features."""
    if not hasattr(model, "classes_of_rows"):
        return None
    from askance.selection.encoded import EncodedRegression

    return model if isinstance(model, EncodedRegression) else None


def _classes(model: Any, data: Any, options: Mapping[str, Any]) -> NDArray[Any]:
    """(N,) the class that the model gives each row."""
    if (regression := _regression(model)) is not None:
        return regression.classes_of(data, "held-out items")
    if is_estimator(model) and hasattr(model, "predict_proba"):
        places = np.asarray(model.predict_proba(data)).argmax(axis=1)
        return np.asarray(model.classes_)[places] if hasattr(model, "classes_") else places
    if isinstance(model, (nn.Module, Committee)) or is_trainer(model):
        model = embed(model, data, **options)
    elif data is not None or not isinstance(model, Embedding):
        raise InputError(
            f"a stopping rule looks at a model's predictions: ask with the model itself or with an "
            f"encoder, got a {type(model).__name__}"
        )
    if model.logits is None:
        raise InputError("a stopping rule looks at predictions, and this Embedding has no logits")
    classes: NDArray[np.int64] = model.logits.argmax(dim=1).cpu().numpy()
    return classes


def _checked(held_out: Any, classes: Sequence[str] | None) -> tuple[Any, NDArray[Any]]:
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        raise InputError(f"held_out must be (X, y), got a {type(held_out).__name__}")
    X, y = held_out
    size = row_count(X) if is_table(X) else sources.size(X)
    if not size:
        raise InputError("held_out must have one item or more")
    if are_names(y):
        names = np.asarray(y) if classes is None else numbers_of(y, tuple(classes))
        if len(names) != size:
            raise LabelError(f"held_out has {size} items and {len(names)} labels")
        return X, names
    labels = sources.as_labels(y, size)
    if labels.ndim != 1:
        raise InputError("stopping rules take one class an item, held_out has several")
    return X, labels.numpy()
