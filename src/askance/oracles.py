"""Oracles: who labels the rows of the pool that a rule asks for.

An answer depends on its row alone, not on when it is asked for or with which other rows. So a run that
is resumed gets the same answers again.

    Noisy(Truth(labels), rate=0.1, classes=10)      # wrappers around any other oracle
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding.sources import as_labels
from askance.errors import AskanceError, InputError, LabelError, UnknownError
from askance.seeding import Draws
from askance.selection.classes import are_names, checked_names, numbers_of

Rows = NDArray[np.int64]

KINDS: dict[str, tuple[str, ...]] = {
    "truth": (),
    "noisy": ("rate",),
    "abstaining": ("rate",),
    "costly": ("low", "high"),
}
"""The oracles an experiment can name, and the numbers each needs."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one question, and what it cost.

    Args:
        rows: (A,) the rows that were answered, in the order asked.
        labels: (A,) their classes.
        cost: of all rows asked for, answered or not.
    """

    rows: Rows
    labels: Tensor
    cost: float


class Oracle(Protocol):
    """Anything that can be asked for rows of the pool."""

    def answer(self, rows: Rows) -> Answers:
        """The labels of these rows, (A,) int64, as far as the oracle answers them."""


class Truth:
    """Answers every row with its label, at a cost of 1 a row.

    Args:
        labels: (N,) the class of each row of the pool, as a number or, with `classes`, as a name.
        classes: names of all classes, in the order of the model's outputs.
    """

    def __init__(self, labels: Any, classes: Sequence[str] | None = None) -> None:
        if classes is not None and are_names(labels):
            labels = numbers_of(labels, checked_names(classes))
        self.labels = as_labels(labels, len(labels))

    def answer(self, rows: Rows) -> Answers:
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= len(self.labels)):
            raise LabelError(
                f"the oracle knows rows 0 to {len(self.labels) - 1}, it was asked for "
                f"{int(rows.min())} to {int(rows.max())}"
            )
        return Answers(rows, self.labels[torch.from_numpy(rows)], float(len(rows)))


@dataclass(frozen=True, eq=False)
class Noisy:
    """Gives a wrong class for a share of the rows; every wrong class is equally likely.

    Args:
        oracle: gives the right answers.
        rate: the probability that an answer is wrong.
        classes: C.
        seed: names the draws.
    """

    oracle: Oracle
    rate: float
    classes: int
    seed: int = 0

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        if self.classes < 2:
            raise InputError(f"a wrong answer needs at least 2 classes, got {self.classes}")

    def answer(self, rows: Rows) -> Answers:
        answers = self.oracle.answer(rows)
        draws = Draws(self.seed)
        wrong = draws.uniform("noisy", answers.rows) < self.rate
        # 1 to C − 1 classes further on, modulo C: any class but the right one.
        steps = 1 + np.floor(draws.uniform("noisy class", answers.rows) * (self.classes - 1))
        shift = torch.from_numpy(np.where(wrong, steps, 0).astype(np.int64))
        return replace(answers, labels=(answers.labels + shift) % self.classes)


@dataclass(frozen=True, eq=False)
class Abstaining:
    """Leaves a share of the rows unanswered, always the same ones; asking still costs.

    Args:
        oracle: who answers the others.
        rate: the probability that a row is never answered.
        seed: names the draws.
    """

    oracle: Oracle
    rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    def answer(self, rows: Rows) -> Answers:
        answers = self.oracle.answer(rows)
        answered = Draws(self.seed).uniform("abstaining", answers.rows) >= self.rate
        labels = answers.labels[torch.from_numpy(answered)]
        return Answers(answers.rows[answered], labels, answers.cost)


@dataclass(frozen=True, eq=False)
class Costly:
    """Asks a price for each row, by its position in the pool.

    Args:
        oracle: who answers.
        costs: (N,) the price of each row, ≥ 0.
    """

    oracle: Oracle
    costs: Sequence[float] | NDArray[np.float64]

    def __post_init__(self) -> None:
        costs = np.asarray(self.costs, dtype=np.float64)
        if costs.ndim != 1 or not np.isfinite(costs).all() or (costs < 0).any():
            raise InputError("costs must be one finite number ≥ 0 for each row of the pool")
        object.__setattr__(self, "costs", costs)

    def answer(self, rows: Rows) -> Answers:
        if len(rows) and int(rows.max()) >= len(self.costs):
            raise InputError(
                f"there are costs for {len(self.costs)} rows, row {int(rows.max())} was asked for"
            )
        cost = math.fsum(np.asarray(self.costs)[rows])
        return replace(self.oracle.answer(rows), cost=cost)


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise InputError(f"rate must be a probability, got {rate!r}")


def make(kind: str, labels: Any, classes: int, **options: float) -> Oracle:
    """The oracle an experiment names: its kind, and numbers.

    "truth"; "noisy" and "abstaining" with a `rate`; "costly" with prices drawn evenly from `low` to
    `high` for each row. A `seed` names the draws of the last three.
    """
    for _, problem in problems(kind, options):
        raise problem
    truth, seed = Truth(labels), int(options.get("seed", 0))
    if kind == "noisy":
        return Noisy(truth, options["rate"], classes, seed)
    if kind == "abstaining":
        return Abstaining(truth, options["rate"], seed)
    if kind == "costly":
        low, high = options["low"], options["high"]
        shares = Draws(seed).uniform("costly", range(len(truth.labels)))
        return Costly(truth, low + (high - low) * shares)
    return truth


def problems(kind: str, options: Mapping[str, float]) -> Iterator[tuple[str, AskanceError]]:
    """Why `make` cannot make this oracle: the option each error is about, or "kind"."""
    if kind not in KINDS:
        yield "kind", UnknownError.of("oracle", kind, KINDS)
        return
    needed = KINDS[kind]
    possible = (*needed, "seed") if needed else ()
    for name in options:
        if name not in possible:
            yield name, UnknownError.of(f"option of the oracle {kind!r}", name, possible)
    missing = [name for name in needed if name not in options]
    if missing:
        yield "kind", InputError(f"the oracle {kind!r} needs {' and '.join(missing)}")
        return
    if not 0 <= options.get("rate", 0) <= 1:
        yield "rate", InputError(f"rate must be a probability, got {options['rate']!r}")
    if kind == "costly" and not 0 <= options["low"] <= options["high"] < math.inf:
        low, high = options["low"], options["high"]
        message = f"the oracle 'costly' needs 0 ≤ low ≤ high, got {low} and {high}"
        yield "low" if low < 0 else "high", InputError(message)
    seed = options.get("seed", 0)
    if seed < 0 or seed != int(seed):
        message = f"the oracle's seed must be a whole number ≥ 0, got {seed}"
        yield "seed", InputError(message)
