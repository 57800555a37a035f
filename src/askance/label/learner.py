"""Train on the answers, guess the rest, pick what to ask next: one round, a function of its task.

Rows are positions among the items as they were read. Nothing here knows a person or a store.

Shapes: N items; C classes; D features.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askance import models, strategies
from askance.data.images import SIDE, decoded
from askance.embedding import Embedding
from askance.embedding.device import usable_or_best
from askance.errors import DataError
from askance.label.bundle import Bundle, Encoder, encoder_for
from askance.label.items import Items, read
from askance.label.source import Options, Source
from askance.query import Explanation, select
from askance.seeding import Draws
from askance.training import Job, Recipe, fit

log = logging.getLogger(__name__)

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """One round's work.

    Args:
        version: the new model's number, from 1; its draws are those of round version − 1.
        rows: what has an answer to train on, in the order of answers.
        labels: their classes.
        classes: names; the network's outputs, in order.
        exclude: rows not to ask for.
        n: how many to ask for, at most.
        out: where to write the model and what it says of every item.
    """

    version: int
    rows: Rows
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    exclude: Rows
    n: int
    out: Path


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a task; `guesses` and `confidence` are of all N items."""

    picks: Rows
    explanations: list[Explanation]
    guesses: NDArray[np.int64]
    confidence: NDArray[np.float32]
    seconds: float


class Learner:
    """The items as inputs of a network, and the rounds on them."""

    def __init__(self, items: Items, options: Options) -> None:
        self.items, self.options = items, options
        self.name = options.model_for(items.kind)
        self.device = usable_or_best(options.device)
        if ":" in self.name and str(Path.cwd()) not in sys.path:
            # A network of one's own may lie where the command is given.
            sys.path.append(str(Path.cwd()))

    @classmethod
    def of(cls, source: Source, options: Options) -> Learner:
        return cls(read(source), options)

    @cached_property
    def _encoded(self) -> tuple[Encoder, Tensor, Rows]:
        """The encoder, the inputs of all items, and the rows that could not be read."""
        unreadable: list[int] = []
        raw: Any = self.items.texts
        if self.items.kind == "features":
            raw = self.items.features
        elif self.items.kind == "image":
            raw = np.zeros((len(self.items), SIDE, SIDE, 3), dtype=np.uint8)
            for row, file in enumerate(self.items.files):
                try:
                    raw[row] = decoded(file, str(file))
                except DataError as error:
                    log.warning("left out: %s", error)
                    unreadable.append(row)
        encoder = encoder_for(self.items.kind, raw)
        return encoder, encoder(raw).to(self.device), np.asarray(unreadable, np.int64)

    @property
    def unreadable(self) -> Rows:
        """Images that cannot be read: not asked about, not trained on, not guessed."""
        return self._encoded[2]

    def build(self, classes: int, draws: Draws) -> nn.Module:
        shape = tuple(self._encoded[1].shape[1:])
        return models.build(self.name, shape, classes, draws)

    def first(self, n: int, exclude: Rows) -> Rows:
        """A first batch that covers the raw inputs: a random one, then farthest first."""
        _, inputs, unreadable = self._encoded
        exclude = np.union1d(exclude, unreadable)
        free = np.setdiff1d(np.arange(len(inputs)), exclude)
        start = free[Draws(self.options.seed).generator("start").integers(len(free))]
        if min(n, len(free)) < 2:
            return np.asarray([start][:n], np.int64)
        pool = Embedding(features=inputs.flatten(1))
        chosen = select(
            None,
            (pool[np.asarray([start])], torch.zeros(1, dtype=torch.int64)),
            pool,
            min(n, len(free)) - 1,
            strategy="kcenter",
            exclude=np.union1d(exclude, [start]),
        )
        return np.concatenate([[start], chosen.indices])

    def learn(self, task: Task) -> Outcome:
        """Train from scratch, look at every item, and pick the next ones by the rule."""
        began = time.perf_counter()
        encoder, inputs, unreadable = self._encoded
        options = self.options
        draws = Draws(options.seed, task.version - 1)
        readable = ~np.isin(task.rows, unreadable)
        labels = torch.from_numpy(task.labels[readable])
        rows = task.rows[readable]
        build = partial(self.build, len(task.classes))
        job = Job(rows, labels, options.learning_rate, draws)
        fitted = fit(build, inputs, [job], Recipe(epochs=options.epochs))
        model, embedding = fitted.model(0), fitted.embed(inputs)[0]
        assert embedding.logits is not None
        confidence, guesses = torch.softmax(embedding.logits, dim=1).max(dim=1)
        picks, explanations = self._ask(task, model, embedding, rows, labels, draws)
        Bundle(model, self.name, task.classes, encoder).save(
            task.out, version=task.version, trained_on=len(rows), strategy=options.strategy
        )
        return Outcome(
            picks,
            explanations,
            guesses.cpu().numpy(),
            confidence.cpu().numpy(),
            time.perf_counter() - began,
        )

    def _ask(
        self,
        task: Task,
        model: nn.Module,
        embedding: Embedding,
        rows: Rows,
        labels: Tensor,
        draws: Draws,
    ) -> tuple[Rows, list[Explanation]]:
        exclude = np.union1d(task.exclude, self.unreadable)
        n = min(task.n, len(embedding) - len(exclude))
        if n <= 0:
            return np.empty(0, np.int64), []
        rule = strategies.get(self.options.strategy)
        inputs = self._encoded[1]
        # A rule that differentiates the network is given the network.
        whole = "inputs" in rule.needs
        picks = select(
            model if whole else None,
            (inputs[torch.from_numpy(rows)] if whole else embedding[rows], labels),
            inputs if whole else embedding,
            n,
            strategy=rule,
            seed=draws,
            exclude=exclude,
        )
        return picks.indices, picks.explain()
