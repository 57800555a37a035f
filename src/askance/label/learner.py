"""Train on the answers, guess the rest, pick what to ask next: one round, a function of its task.

A task names items by id and content, never by row: the data may change between two rounds. What is not
there with that content is left out. Nothing here knows a person or a store.

Shapes: N items; C classes; D features.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askance import models, strategies
from askance.embedding import Embedding, embed
from askance.embedding.device import usable_or_best
from askance.embedding.factory import import_from
from askance.encoders.linear import (
    LinearModel,
    Standardiser,
    fit_linear,
    unseen_probabilities,
)
from askance.errors import DataError
from askance.images import SIDE, decode_image
from askance.label.bundle import Bundle, ItemEncoder, encoder_for
from askance.label.contents import checked_content
from askance.label.doubts import Doubt, doubts, sampled
from askance.label.items import Items
from askance.label.likeness import Likeness
from askance.label.pretrained import EncodedItems, PretrainedInputs, Progress
from askance.label.source import LINEAR, LabelingOptions
from askance.seeding import Draws
from askance.selection import Explanation, select
from askance.training import Recipe, TrainingJob, fit

log = logging.getLogger(__name__)

Rows = NDArray[np.int64]
_READ = 500  # images between two signs


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """One round's work.

    Args:
        version: the new model's number, from 1; its draws are those of round version − 1.
        items: id and digest of what has an answer to train on, in the order of answers.
        labels: their classes.
        classes: names; the network's outputs, in order.
        exclude: ids not to ask for.
        n: how many to ask for, at most.
        out: where to write the model and what it says of every item.
    """

    version: int
    items: tuple[tuple[str, str], ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    exclude: frozenset[str]
    n: int
    out: Path


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """What came of a task; `guesses`, `confidence` and `support` are of the N items `ids`.

    Of an item with an answer they are what a model says that has not seen the answer, where the model
    is `linear`. `support` is the probability of the answer; NaN where there is none.
    Each pick has an explanation and a doubt. With labels of `one_class` alone they are drawn at random.
    """

    picks: list[str]
    explanations: list[Explanation]
    doubts: list[Doubt]
    ids: list[str]
    guesses: NDArray[np.int64]
    confidence: NDArray[np.float32]
    support: NDArray[np.float32]
    seconds: float
    one_class: bool = False


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The inputs of all items, what made them, and the rows that could not be read."""

    encoder: ItemEncoder | PretrainedInputs
    inputs: Tensor
    unreadable: Rows

    @cached_property
    def standardiser(self) -> Standardiser:
        """Of inputs (N, D), by all items that can be read."""
        readable = np.delete(np.arange(len(self.inputs)), self.unreadable)
        return Standardiser.of(self.inputs.cpu().numpy()[readable])


class Learner:
    """The items as inputs of a network, and the rounds on them.

    Args:
        items: what there is to label.
        options: how to train.
        sign: called every few images that are read, so that somebody knows that it goes on.
    """

    def __init__(
        self, items: Items, options: LabelingOptions, sign: Callable[[], None] | None = None
    ) -> None:
        self.items, self.options, self._sign = items, options, sign
        self._inputs: _Inputs | None = None
        self._pixels: dict[str, NDArray[np.uint8]] = {}  # by digest
        self._pretrained: EncodedItems | None = None
        self.name = options.model_for(items.kind)
        self.device = usable_or_best(options.device)
        if ":" in f"{self.name}{options.encoder}":
            # A network or an encoder of one's own may lie where the command is given.
            import_from(Path.cwd())

    def take(self, items: Items) -> None:
        """Go on with the data as it is now."""
        if items is not self.items:
            self.items, self._inputs = items, None

    @property
    def _encoded(self) -> _Inputs:
        if self._inputs is None:
            self._inputs = self._encode()
        return self._inputs

    def prepare(self, progress: Progress | None = None) -> list[str]:
        """Make the inputs ready, and name the items that cannot be read.

        Args:
            progress: called with (items done, items) as the work goes on.
        """
        if self._inputs is None:
            self._inputs = self._encode(progress)
        return self._ids(self._inputs.unreadable)

    def _encode(self, progress: Progress | None = None) -> _Inputs:
        if self.options.encodes:
            return self._encode_pretrained(progress)
        unreadable: list[int] = []
        raw: Any = self.items.texts
        if self.items.kind == "features":
            raw = self.items.features
        elif self.items.kind == "image":
            raw = np.zeros((len(self.items), SIDE, SIDE, 3), dtype=np.uint8)
            for row in range(len(self.items)):
                if self._sign is not None and row % _READ == 0:
                    self._sign()
                try:
                    raw[row] = self._decoded(row)
                except DataError as error:
                    log.warning("left out: %s", error)
                    unreadable.append(row)
            here = set(self.items.digests)
            self._pixels = {key: one for key, one in self._pixels.items() if key in here}
        encoder = encoder_for(self.items.kind, raw)
        inputs = encoder(raw).to(self.device)
        return _Inputs(encoder, inputs, np.asarray(unreadable, np.int64))

    def _encode_pretrained(self, progress: Progress | None) -> _Inputs:
        if self._pretrained is None:
            assert self.options.encoder is not None
            self._pretrained = EncodedItems(self.options.encoder, self.items.kind, self.device)
        features_ND, unreadable = self._pretrained.of(self.items, progress)
        if len(unreadable) == len(self.items):
            raise DataError(
                "none of the items can be read; see the log for what is wrong with each"
            )
        inputs = torch.from_numpy(features_ND).to(self.device)
        return _Inputs(self._pretrained.inputs, inputs, unreadable)

    def _decoded(self, row: int) -> NDArray[np.uint8]:
        """An image, of just the content that the item is known by."""
        file, digest = self.items.files[row], self.items.digests[row]
        if digest not in self._pixels:
            content = checked_content(file, digest, str(file))
            self._pixels[digest] = decode_image(content, str(file))
        return self._pixels[digest]

    def unreadable(self) -> list[str]:
        """Images that cannot be read: not asked about, not trained on, not guessed."""
        if self._inputs is not None and len(self._inputs.unreadable):
            self._inputs = None  # perhaps they can be read now; the others are at hand
        return self._ids(self._encoded.unreadable)

    def likeness(self) -> Likeness:
        """How the items look, to find those that look alike."""
        inputs_ND = self._encoded.inputs.flatten(1).cpu().numpy()
        if self.options.encodes:
            inputs_ND = self._encoded.standardiser(inputs_ND)
        return Likeness.of(self.items.ids, np.asarray(inputs_ND, np.float32))

    def _ids(self, rows: Rows) -> list[str]:
        return [self.items.ids[int(row)] for row in rows]

    def _rows(self, ids: Iterable[str]) -> Rows:
        """Where they are; what is gone is nowhere."""
        position = self.items.position
        return np.asarray(sorted(position[item] for item in ids if item in position), np.int64)

    def close(self) -> None:
        """End: nothing is held that has to be given back."""

    def build(self, classes: int, draws: Draws) -> nn.Module:
        """An untrained network for these inputs and so many classes."""
        shape = tuple(self._encoded.inputs.shape[1:])
        return models.build(self.name, shape, classes, draws)

    def first(self, n: int, exclude: Iterable[str]) -> list[str]:
        """A first batch that covers the items: by their features, or far apart in the raw inputs."""
        inputs = self._encoded.inputs
        taken = np.union1d(self._rows(exclude), self._encoded.unreadable)
        free = np.setdiff1d(np.arange(len(inputs)), taken)
        if self.options.first != "kcenter":
            flat = inputs.flatten(1).cpu().numpy()
            features = self._encoded.standardiser(flat) if inputs.ndim == 2 else flat
            count = min(n, len(free))
            if not count:
                return []
            draws = Draws(self.options.seed)
            return self._ids(
                select(
                    None, None, features, count, strategy="maxherding", seed=draws, exclude=taken
                ).indices
            )
        start = free[Draws(self.options.seed).generator("start").integers(len(free))]
        if min(n, len(free)) < 2:
            return self._ids(np.asarray([start][:n], np.int64))
        pool = Embedding(features=inputs.flatten(1))
        chosen = select(
            None,
            (pool[np.asarray([start])], torch.zeros(1, dtype=torch.int64)),
            pool,
            min(n, len(free)) - 1,
            strategy="kcenter",
            exclude=np.union1d(taken, [start]),
        )
        return self._ids(np.concatenate([[start], chosen.indices]))

    def learn(self, task: TrainingTask) -> TrainingOutcome:
        """Train from scratch, look at every item, and pick the next ones by the rule."""
        began = time.perf_counter()
        inputs, options = self._encoded.inputs, self.options
        draws = Draws(options.seed, task.version - 1)
        rows, usable = self._trainable(task)
        labels = torch.from_numpy(task.labels[usable])
        if not len(rows):
            raise DataError(
                f"none of the {len(task.items)} answered items can be read now; put the data back, or "
                f"answer others"
            )
        temperature, unseen_LC = 1.0, None
        model: nn.Module
        if self.name == LINEAR:
            model, temperature, unseen_LC = self._regression(rows, labels, len(task.classes))
            embedding = embed(model, inputs)
        else:
            build = partial(self.build, len(task.classes))
            job = TrainingJob(rows, labels, options.learning_rate, draws)
            fitted = fit(build, inputs, [job], Recipe(epochs=options.epochs))
            model, embedding = fitted.model(0), fitted.embed(inputs)[0]
        assert embedding.logits is not None
        # Rules see the logits as they are; people see probabilities that are about right.
        probs = torch.softmax(embedding.logits / temperature, dim=1)
        confidence, guesses = probs.max(dim=1)
        picks, explanations = self._ask(task, model, embedding, rows, labels, draws)
        if temperature != 1.0:
            explanations = [_calibrated(why, confidence) for why in explanations]
        Bundle(model, self.name, task.classes, self._encoded.encoder, temperature).save(
            task.out, version=task.version, trained_on=len(rows), strategy=options.strategy
        )
        said_LC = probs[torch.from_numpy(rows).to(probs.device)].cpu().numpy()
        guesses_N, confidence_N = guesses.cpu().numpy(), confidence.cpu().numpy()
        if unseen_LC is not None:
            told = ~np.isnan(unseen_LC[:, 0])
            said_LC[told] = unseen_LC[told]
            guesses_N[rows], confidence_N[rows] = said_LC.argmax(axis=1), said_LC.max(axis=1)
        support_N = np.full(len(guesses_N), np.nan, np.float32)
        support_N[rows] = said_LC[np.arange(len(rows)), labels.numpy()]
        return TrainingOutcome(
            picks,
            explanations,
            self._doubts(picks, probs, rows, draws),
            self.items.ids,
            guesses_N,
            confidence_N,
            support_N,
            time.perf_counter() - began,
            one_class=self.name == LINEAR and len(labels.unique()) == 1,
        )

    def _doubts(self, picks: Sequence[str], probs: Tensor, rows: Rows, draws: Draws) -> list[Doubt]:
        """Why the model asks about these, for people."""
        if not picks:
            return []

        def inputs(rows: Rows) -> NDArray[Any]:
            part = self._encoded.inputs[torch.from_numpy(rows)].flatten(1).cpu().numpy()
            return self._encoded.standardiser(part) if self.options.encodes else part

        position = self.items.position
        picked = np.asarray([position[item] for item in picks], np.int64)
        others = np.setdiff1d(np.arange(len(probs)), rows)
        sample = sampled(others, draws.generator("doubts"))
        probs_PC = probs[torch.from_numpy(picked)].cpu().numpy()
        return doubts(probs_PC, inputs(picked), inputs(rows), inputs(sample))

    def _regression(
        self, rows: Rows, labels: Tensor, classes: int
    ) -> tuple[LinearModel, float, NDArray[np.float64]]:
        """The regression on the inputs as a model, its temperature, and what it says of the labelled
        rows when it has not seen their labels."""
        standardise = self._encoded.standardiser
        features_LD = standardise(self._encoded.inputs[torch.from_numpy(rows)].cpu().numpy())
        fitted = fit_linear(features_LD, labels.numpy(), max(2, classes))
        unseen_LC = unseen_probabilities(features_LD, labels.numpy(), fitted)
        return fitted.module(standardise).to(self.device).eval(), fitted.temperature, unseen_LC

    def _trainable(self, task: TrainingTask) -> tuple[Rows, NDArray[np.bool_]]:
        """Rows of the answered items that are here, and which of the task's those are."""
        position, digests = self.items.position, self.items.digests
        rows = np.asarray([position.get(item, -1) for item, _ in task.items], np.int64)
        same = [
            row >= 0 and digests[row] == digest
            for row, (_, digest) in zip(rows, task.items, strict=True)
        ]
        usable = np.asarray(same, bool) & ~np.isin(rows, self._encoded.unreadable)
        return rows[usable], usable

    def _ask(
        self,
        task: TrainingTask,
        model: nn.Module,
        embedding: Embedding,
        rows: Rows,
        labels: Tensor,
        draws: Draws,
    ) -> tuple[list[str], list[Explanation]]:
        exclude = np.union1d(self._rows(task.exclude), self._encoded.unreadable)
        n = min(task.n, len(embedding) - len(exclude))
        if n <= 0:
            return [], []
        rule = strategies.get(self.options.strategy)
        if self.name == LINEAR and len(labels.unique()) == 1:
            rule = strategies.get("random")  # the regression's answer is the same for every item
        inputs = self._encoded.inputs
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
        return self._ids(picks.indices), picks.explain()


def _calibrated(why: Explanation, confidence: Tensor) -> Explanation:
    """The explanation with the confidence that people see elsewhere."""
    if why.confidence is None:
        return why
    return replace(why, confidence=float(confidence[why.index]))
