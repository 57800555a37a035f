"""The rows of a store as records."""

from __future__ import annotations

import json
import math
import operator
import sqlite3
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.errors import StoreError
from askance.experiments.schema import BY_CLASS, LATER, TRAINING

# In the order in which they happen; "labeled" is the labelled set's own forward pass and reference.
STAGES = ("train", "evaluate", "labeled", "forward", "score", "select")
POSITIONS, SCORES = "<i8", "<f4"  # what the blobs hold


@dataclass(frozen=True)
class Origin:
    """What the numbers of a store are of.

    Args:
        fingerprint, source, subset: of the data; see `askance.data.Dataset`.
        network: what it is made of, a line a part. None of its numbers: those a seed decides.
        sizes: how many items of the data are in the pool, for validation and for the test, and how many
            classes there are, by these words.
        file: the experiment's file, where it has one of its own.
    """

    fingerprint: str
    source: str
    subset: str | None = None
    network: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    file: str | None = None


@dataclass(frozen=True)
class SweepResult:
    """One learning rate and seed, tried before the runs.

    Args:
        accuracy: on the validation split, after training on a set of the final budget's size.
        trained: whether a network trained on a first labelled set too, see `is_untrained`; None where
            it was not recorded.
    """

    learning_rate: float
    seed: int
    accuracy: float
    seconds: float
    peak_mb: float | None = None
    trained: bool | None = None

    def __post_init__(self) -> None:
        if self.trained is not None:  # a store has 0 and 1
            object.__setattr__(self, "trained", bool(self.trained))


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """One round of one run: a model trained on `labels` points, and what was picked with it.

    Args:
        strategy: the rule's label.
        labels: size of the labelled set the model was trained on.
        accuracy: on the test split, in [0, 1].
        loss: on the test split; of a run that diverged it may be infinite or NaN.
        picks: int64 pool positions, best first; empty in the last round.
        scores: float32, the rule's score of each pick, or None.
        seconds: by stage; of `STAGES`, those that were measured.
        peak_mb: by stage, the peak memory in MB.
        train_loss, train_accuracy: of the trained network on its own labelled set.
        majority: the share of the largest class in that set. All three are None where they were not
            recorded.
        predictions: int64, the model's classes of a sample of the test split, the same in all rounds.
            None where no stopping rule asks for them. A store keeps them in a table of their own.
        balanced_accuracy, macro_f1: on the test split, as `askance.training.Score` has them. Both are
            None where they were not recorded.
    """

    strategy: str
    seed: int
    round: int
    labels: int
    accuracy: float
    loss: float
    learning_rate: float
    picks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    scores: NDArray[np.floating[Any]] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_mb: Mapping[str, float] = field(default_factory=dict)
    train_loss: float | None = None
    train_accuracy: float | None = None
    majority: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    predictions: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        where = f"{self.strategy}, seed {self.seed}, round {self.round}"
        # Numbers come from numpy and torch, and SQLite knows Python's alone.
        for name in ("seed", "round", "labels"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        for name in ("accuracy", "loss", "learning_rate", *LATER):
            value = getattr(self, name)
            number = None if value is None and name in LATER else float(value)
            object.__setattr__(self, name, number)
        object.__setattr__(self, "picks", rows(self.picks, f"{where}: picks"))
        if self.scores is not None:
            with np.errstate(over="ignore"):  # what float32 cannot hold is infinite
                scores = np.asarray(self.scores, dtype=np.float32)
            if scores.shape != self.picks.shape:
                raise StoreError(f"{where}: {len(scores)} scores for {len(self.picks)} picks")
            object.__setattr__(self, "scores", scores)
        for name in ("accuracy", "train_accuracy", "majority", *BY_CLASS):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise StoreError(f"{where}: {name} must be in [0, 1], got {value!r}")
        for names in (TRAINING, BY_CLASS):
            if len({getattr(self, name) is None for name in names}) > 1:
                raise StoreError(f"{where}: {', '.join(names)} are recorded together or not at all")
        for name in ("seconds", "peak_mb"):
            for stage, value in getattr(self, name).items():
                if stage not in STAGES:
                    raise StoreError(
                        f"{where}: unknown stage {stage!r}; known: {', '.join(STAGES)}"
                    )
                if not (math.isfinite(value) and value >= 0):
                    raise StoreError(f"{where}: {name} of {stage} must be ≥ 0, got {value!r}")

    def to_row(self) -> dict[str, Any]:
        """As the table `round` holds it."""
        return {
            name: value if value is None or name not in _STORED_AS else _STORED_AS[name][0](value)
            for name, value in vars(self).items()
            if name != "predictions"
        }

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> RoundRecord:
        """The record of a row of the table `round`."""
        values = {name: row[name] for name in row.keys() if name != "committed"}  # noqa: SIM118
        for name, (_, read) in _STORED_AS.items():
            if values.get(name) is not None:
                values[name] = read(values[name])
        # NULL is NaN where a loss was measured.
        if values["loss"] is None:
            values["loss"] = math.nan
        if values.get("train_accuracy") is not None and values["train_loss"] is None:
            values["train_loss"] = math.nan
        try:
            return cls(**values)
        except TypeError as error:
            raise StoreError(
                f"a round in the store is damaged ({error}); restore a copy"
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoundRecord) and self.to_row() == other.to_row()

    __hash__ = None  # type: ignore[assignment]


def is_untrained(train_accuracy: float, majority: float, labels: int) -> bool:
    """Whether a network shows no sign of training: train_accuracy ≤ q + 2√(q(1 − q)/L).

    q is the share of the largest class among its L labels: what always answering that class would be
    right in, with two standard deviations of chance on top.
    """
    return train_accuracy <= majority + 2 * math.sqrt(majority * (1 - majority) / labels)


def packed(values: NDArray[Any], kind: str) -> bytes:
    """Numbers as a blob: the first byte of each, then the second of each, …, deflated.

    Positions in a pool have the same high bytes and scores nearly the same exponents, so that they cost
    little side by side: a store is half of what it would be. No numbers are no bytes.
    """
    if not len(values):
        return b""
    bytes_NB = np.ascontiguousarray(values, dtype=kind).view(np.uint8).reshape(len(values), -1)
    return zlib.compress(bytes_NB.T.tobytes(), 9)


def unpacked(blob: bytes, kind: str) -> NDArray[Any]:
    """The numbers of a blob."""
    try:
        bytes_BN = np.frombuffer(zlib.decompress(blob) if blob else b"", np.uint8)
        values = bytes_BN.reshape(np.dtype(kind).itemsize, -1).T.copy().view(kind).ravel()
    except (zlib.error, ValueError) as error:
        raise StoreError(f"numbers in the store are damaged ({error}); restore a copy") from error
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def rows(values: object, what: str) -> NDArray[np.int64]:
    """Pool positions as an int64 array of one dimension: none is negative, and none comes twice."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise StoreError(
            f"{what} must be one-dimensional integers, got {array.dtype} {array.shape}"
        )
    array = array.astype(np.int64)
    if array.min() < 0 or len(np.unique(array)) != len(array):
        raise StoreError(f"{what} must be different positions ≥ 0")
    return array


def _not_nan(loss: float) -> float | None:
    """SQLite has no NaN."""
    return None if math.isnan(loss) else loss


def _by_stage(values: Mapping[str, float]) -> str:
    """Four digits of each: a clock is no surer, and a store of many rounds is smaller for it."""
    return json.dumps({stage: float(f"{value:.4g}") for stage, value in values.items()})


def read_json(text: str) -> Any:
    """What a column says in JSON."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"a text in the store is damaged ({error}); restore a copy") from error


def _read_by_stage(text: str) -> dict[str, float]:
    values = read_json(text)
    sound = isinstance(values, dict) and all(type(v) in (int, float) for v in values.values())
    if not sound:
        raise StoreError(f"a text in the store is damaged ({text[:40]!r}); restore a copy")
    return values


# How the columns that SQLite has no type for are written and read.
_STORED_AS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "loss": (_not_nan, float),
    "train_loss": (_not_nan, float),
    "picks": (partial(packed, kind=POSITIONS), partial(unpacked, kind=POSITIONS)),
    "scores": (partial(packed, kind=SCORES), partial(unpacked, kind=SCORES)),
    "seconds": (_by_stage, _read_by_stage),
    "peak_mb": (_by_stage, _read_by_stage),
}
