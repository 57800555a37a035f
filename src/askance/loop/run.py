"""Algorithm 1: label a first batch, then train, ask and label in every round.

It is written for a list of runs in lockstep. A *run* is one rule with one seed. A loop around your own
training is one run:

    for run in askance.loop(pool, oracle, strategy="powergrad", batch=20, rounds=10):
        model = train(*run.labeled)
        run.ask(model)

Where people answer there is no oracle: `run.waiting` has been asked, and `run.tell` takes the answers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from askance import strategies
from askance._checks import check_whole
from askance.embedding import Embedding, sources
from askance.embedding.committee import Committee
from askance.embedding.frames import is_frame
from askance.embedding.rows import is_table, row_count, rows_at, stacked_rows
from askance.errors import AskanceError, InputError
from askance.loop.answers import PeopleAnswers, plain_labels
from askance.loop.first import First, checked_batch, first_batch
from askance.loop.rows import RowLabels, both_labels, labels_that_exist
from askance.loop.saving import described, rule_record, write_run
from askance.loop.shown import html_curve
from askance.oracles import Oracle
from askance.seeding import Draws
from askance.selection import Selection, select
from askance.selection.classes import checked_names
from askance.selection.default import default_for
from askance.selection.excluded import Excluded
from askance.selection.probabilities import GivesProbabilities, is_estimator
from askance.selection.trainer import is_trainer
from askance.stopping.check import StoppingCheck, is_encoder
from askance.stopping.rules import Checkpoint, StopFunction, StoppingRule
from askance.strategies import Strategy
from askance.strategies.base import Need, check_one_model
from askance.tracking import Fact, Round, Tracker

log = logging.getLogger(__name__)

_HOW_TO_TELL = (
    "People's answers are told as rows (or ids) and a label for each: run.tell(rows, labels); of a "
    "mapping run.tell(list(answers), list(answers.values())); of a frame run.tell(frame['id'], "
    "frame['label']); of a series run.tell(series.index, series)"
)


class Run:
    """One rule with one seed: the rows it has asked for, and their labels. It iterates over its rounds.

    The first batch depends on the seed and on `first` alone, so that all rules of a seed start alike.

    Args: those of `askance.loop`, and
        label: what to call the run; the rule's name when None.
        begun: whether the tracker has heard of the run before.
    """

    def __init__(
        self,
        pool: Any,
        oracle: Oracle | None = None,
        strategy: str | Strategy | None = None,
        *,
        batch: int,
        rounds: int | None = None,
        seed: int = 0,
        labeled: Any = None,
        start: int | None = None,
        first: First = "random",
        exclude: Any = None,
        ids: Any = None,
        classes: Sequence[str] | None = None,
        label: str | None = None,
        track: Tracker | None = None,
        stop: StoppingRule | StopFunction | None = None,
        held_out: tuple[Any, Any] | None = None,
        begun: bool = False,
    ) -> None:
        size = _size_of(pool)
        if oracle is not None and not callable(getattr(oracle, "answer", None)):
            raise InputError(
                f"an oracle must have a method answer(rows), got a {type(oracle).__name__}; of known "
                f"labels make one with askance.oracles.Truth(y)"
            )
        check_whole("batch", batch, 1)
        check_whole("rounds", rounds, 0, or_none=True)
        check_whole("start", start, 0, or_none=True)
        closed = Excluded.of(exclude)
        if closed.ids:
            raise InputError("a loop's pool has no identifiers; exclude rows by index or by mask")
        closed.check_room(0, size)
        self.pool, self.oracle, self.size = pool, oracle, size
        self._is_default = strategy is None
        if strategy is None:  # until there is a model: of a network, or of what takes tables
            given: tuple[Need, ...] = ("logits",) if is_table(pool) else ("logits", "features")
            strategy = strategies.default({*given, "labeled"}).name
        self.strategy = strategies.of(strategy)
        check_one_model(self.strategy)
        self._label_given = label
        self.label = self.strategy.name if label is None else label
        self.batch, self.rounds, self.seed = batch, rounds, seed
        self.picks: list[NDArray[np.int64]] = []  # of each round so far
        self.spent = 0.0
        self.classes = None if classes is None else checked_names(classes)
        self.known = RowLabels(size, closed.positions, ids, self.classes)
        self._outside, known = labels_that_exist(labeled, self.known)
        self.track = track
        self.metrics: dict[str, float] = {}  # of this round's model
        self.history: list[tuple[int, dict[str, float]]] = []  # labels and metrics of each round
        self._last_tracked = -1  # the last round the tracker was told about
        self._yielded: int | None = None  # the round that iteration is at
        self.stopped: str | None = None  # why the stopping rule ended the run
        self._check: StoppingCheck | None = None
        if stop is not None:
            self._check = StoppingCheck(stop, pool, size, held_out, seed, self.classes)
        elif held_out is not None:
            raise InputError("held_out is for a stopping rule: give stop= too, or leave it out")
        self._has_begun = begun
        if known:
            self.known.tell(list(known), list(known.values()), "")
        if not isinstance(first, (str, Strategy)):
            start = len(first)
        elif start is None:
            start = 0 if known or self._outside is not None else batch
        self._check_room(start)
        if start:
            rows = first_batch(pool, size, start, first, seed, self.excluded)
            self._request(self._checked(rows, start))
        if not self._is_default:
            self._begin()

    @property
    def asked(self) -> NDArray[np.int64]:
        """Every row that was asked for or answered, in that order."""
        return self.known.asked

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of the pool that have a label."""
        return self.known.rows

    @property
    def labels(self) -> Any:
        """Their labels: a tensor of numbers, or an array of names where nobody said their order."""
        return self.known.labels

    @property
    def people(self) -> PeopleAnswers:
        """What people answered, each by themselves."""
        return self.known.people

    @property
    def labeled(self) -> tuple[Any, Any]:
        """(X, y) of what has a label: items outside the pool, then its rows as they were answered."""
        take = rows_at if is_table(self.pool) else sources.take
        if self._outside is None:
            return take(self.pool, self.rows), self.labels
        X, y = self._outside
        if not len(self.rows):
            return X, y
        return stacked_rows([X, take(self.pool, self.rows)]), both_labels(y, self.labels)

    @property
    def waiting(self) -> list[Any]:
        """What was asked for and is not answered yet: ids, or rows where there are none."""
        return self.known.named(self.known.waiting)

    @property
    def disputed(self) -> list[Any]:
        """What people answer differently, with no answer in the lead; it has no label yet."""
        return self.known.named(self.people.disputed)

    @property
    def has_items_outside(self) -> bool:
        """Whether some labels are of items that are not in the pool."""
        return self._outside is not None

    @property
    def excluded(self) -> NDArray[np.int64]:
        """The rows that may not be picked: asked for already, or never to be."""
        return np.concatenate([self.known.closed, self.asked])

    @property
    def round(self) -> int:
        """How many batches it has asked for."""
        return len(self.picks)

    @property
    def draws(self) -> Draws:
        """The randomness of this round, the same for every rule of the seed."""
        return Draws(self.seed, self.round)

    @property
    def finished(self) -> bool:
        """Whether the last batch has been asked for, or the stopping rule ended the run."""
        used_up = self.rounds is None and not self.known.free
        return self.round == self.rounds or self.stopped is not None or used_up

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """What the stopping rule knows of each model so far; empty without a rule."""
        return [] if self._check is None else list(self._check.history)

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Run:
        """The run at its next round; for the last time after the last batch was asked for."""
        if self._yielded == self.round:
            if not self.finished:
                raise not_asked(self)
            self.finish()
            raise StopIteration
        self._yielded = self.round
        return self

    def ask(
        self,
        model: nn.Module | GivesProbabilities | Embedding | Any | None,
        n: int | None = None,
        **options: Any,
    ) -> Selection:
        """Pick the next batch with this model and have it labelled; nothing after the last round.

        The model's `Embedding` of the whole pool may be given instead, or an encoder. `n` is
        how many to pick; the run's batch when None. Options go to `askance.select`: `head`,
        `batch_size`, `device`, limits on the batch (`groups`, `at_most`, `budget`, …). Under limits a
        round may have fewer picks. The prices of `oracles.Costly` are the `costs` of a `budget`.
        While there is no label, a rule that needs one gives way to the default for a first batch.
        """
        number, labels = self.round, len(self.rows)
        check_whole("n", n, 1, or_none=True)
        self._settle(model)
        if self.classes is not None:
            options = {"classes": self.classes, **options}
        has_model = self._has_labels or not is_encoder(model)
        if self._check is not None and not self.finished and has_model:
            accuracy = self.metrics.get("accuracy")
            model = self._check.fitted(model, lambda: self.labeled, options)
            self.stopped = self._check.reason(model, labels, accuracy, options)
        picks = Selection.nothing(self.strategy)
        if not self.finished:
            picks = self._picked(model, n, options)
            self._take(picks.indices, len(picks))
        self._report(number, labels, picks)
        return picks

    def _picked(self, model: Any, n: int | None, options: dict[str, Any]) -> Selection:
        if n is None:
            n = self.batch if self.rounds is not None else min(self.batch, self.known.free)
        costs = getattr(self.oracle, "costs", None)
        if "budget" in options and costs is not None:
            options = {"costs": costs, **options}
        pool, labeled, rule = self.pool, None, self.strategy
        answers = isinstance(model, (nn.Module, Committee))
        answers = answers or is_estimator(model) or is_trainer(model)
        if isinstance(model, Embedding):
            check_whole_pool(self, model)
            pool, labeled, model = model, (model[self.rows], self.labels), None
        elif not self._has_labels:
            if "labeled" in rule.needs or ("logits" in rule.needs and not answers):
                rule = strategies.of(default_for(None, None, pool).name)
        elif "labeled" in rule.uses or not answers:
            labeled = self.labeled
        picks = select(
            model, labeled, pool, n,
            strategy=rule, seed=self.draws, exclude=self.excluded, **options,
        )  # fmt: skip
        if self.known.ids is None:
            return picks
        return replace(picks, ids=tuple(map(str, self.known.named(picks.indices))))

    @property
    def _has_labels(self) -> bool:
        return len(self.rows) > 0 or self._outside is not None

    def log(self, **metrics: float) -> None:
        """Record measurements of this round's model, e.g. `run.log(accuracy=0.93)`.

        They are kept in `metrics` until the round is over, and then passed to the tracker.
        """
        for name, value in metrics.items():
            try:
                self.metrics[name] = float(value)
            except (TypeError, ValueError):
                raise InputError(f"a metric must be one number, {name} is {value!r}") from None

    def finish(self) -> None:
        """Report the last round to the tracker, if `ask` was not called after it."""
        if self.finished:
            self._report(self.round, len(self.rows), None)

    def _settle(self, model: Any) -> None:
        """Take the default rule for this model, where none was named; the first model decides."""
        if not self._is_default:
            return
        self._is_default = False
        embedded = isinstance(model, Embedding)
        pool = model if embedded else self.pool
        taken = default_for(None if embedded else model, (pool, ()), pool)
        self.strategy = strategies.of(taken.name)
        self.label = self._label_given or self.strategy.name

    def _begin(self) -> None:
        """Tell the tracker what begins, once."""
        if self.track is None or self._has_begun:
            return
        self._has_begun = True
        facts: dict[str, Fact] = {"strategy": self.label, "seed": self.seed, "batch": self.batch}
        facts |= {} if self.rounds is None else {"rounds": self.rounds}
        self.track.began(facts | {"pool": self.size})

    def _report(self, number: int, labels: int, picks: Selection | None) -> None:
        self._begin()
        metrics, self.metrics = self.metrics, {}
        if number == len(self.history):
            self.history.append((labels + self._n_outside, metrics))
        if self.track is None or number <= self._last_tracked:
            return
        self._last_tracked = number
        last = number == self.rounds or self.stopped is not None
        done = Round(self.label, self.seed, number, labels, metrics, last=last)
        if picks is not None and len(picks):
            done = replace(done, seconds=picks.timings, picks=picks.indices, scores=picks.scores)
        self.track.round(done)

    def tell(self, rows: Any, labels: Any = None, *, by: str = "") -> None:
        """Take a person's answers, in any order and in part.

        A row's label is what most people say of it; see `disputed`. A person who answers again changes
        the answer, and None is the answer of somebody who cannot tell; NaN is refused. Rows that were
        not asked for may be answered too. Without labels the oracle is asked for the rows, as `ask`
        does with its picks: so a run with an oracle is told its earlier picks.

        Args:
            rows: ids, or rows where the run has no ids.
            labels: a label for each: numbers or names of classes.
            by: the person.
        """
        if labels is None:
            if self.oracle is None or isinstance(rows, Mapping) or is_frame(rows):
                nobody = ", and the run has no oracle" if self.oracle is None else ""
                raise InputError(
                    f"without labels, run.tell asks the run's oracle for a list of rows; got a "
                    f"{type(rows).__name__}{nobody}. {_HOW_TO_TELL}"
                )
            self._take(self.known.rows_of(rows) if self.known.ids else rows, self.batch)
            return
        places = self.known.rows_of(rows)
        self.known.tell(places, plain_labels(labels, len(places)), by)
        log.info("%d answers%s, %d wait", len(places), f" by {by}" if by else "", len(self.waiting))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was asked and answered to a file, from which `askance.resume` goes on.

        The file is JSON. Neither the pool nor a model is in it.
        """
        ids, known = self.known.ids, self.known
        answered = np.setdiff1d(known.asked, known.waiting)
        state = {
            "strategy": None if self._is_default else rule_record(self.strategy),
            "label": self._label_given,
            "batch": self.batch,
            "rounds": self.rounds,
            "seed": self.seed,
            "pool": described(self.pool),
            "ids": None if ids is None else described(list(map(str, ids))),
            "labeled": None if self._outside is None else described(self._outside),
            "classes": self.classes,
            "exclude": known.closed.tolist(),
            "picks": [rows.tolist() for rows in self.picks],
            "asked": known.asked.tolist(),
            "by_oracle": [part.tolist() for part in known.by_oracle],
            "settled": answered.tolist(),
            "people": self.people.rows(),
            "spent": self.spent,
            "stopped": self.stopped,
            "history": self.history,
            "metrics": self.metrics,
        }
        write_run(state, path)

    def _take(self, picks: Any, batch: int) -> None:
        """Ask for these rows and go on to the next round."""
        if self.finished:
            why = f"all {self.rounds} rounds have been asked"
            raise InputError(f"the run was stopped: {self.stopped}" if self.stopped else why)
        rows = self._checked(picks, batch)
        self._request(rows)
        self.picks.append(rows)

    def _checked(self, rows: Any, batch: int) -> NDArray[np.int64]:
        """Rows of a batch, once they are seen to be one that may be asked for."""
        picks = checked_batch(rows, batch, self.size)
        self.known.check(picks)
        return picks

    def _request(self, rows: NDArray[np.int64]) -> None:
        """Ask for these rows: an oracle answers now, people later."""
        if self.oracle is None:
            self.known.ask(rows)
            return
        answers = self.oracle.answer(rows)
        self.known.answer(rows, answers)
        self.spent += answers.cost

    def _check_room(self, start: int) -> None:
        """Raise where the pool has fewer rows than the run is to ask for."""
        wanted = start + (0 if self.rounds is None else self.batch * self.rounds)
        free = self.known.free
        if wanted <= free:
            return
        left = f"the pool has {self.size}" + (f", {free} of them free" if free < self.size else "")
        rounds = "" if self.rounds is None else f"{self.rounds} rounds of {self.batch} after "
        raise InputError(
            f"{rounds}a start of {start} ask for {wanted} points, {left}; use fewer rounds or a "
            f"smaller batch"
        )

    @property
    def _n_outside(self) -> int:
        return 0 if self._outside is None else len(self._outside[1])

    def __repr__(self) -> str:
        return (
            f"Run({self.label}: round {self.round}, {self._n_outside + len(self.rows)} labels, "
            f"{len(self.waiting)} waiting)"
        )

    def _repr_html_(self) -> str:
        return html_curve(repr(self), self.history)


def not_asked(run: Run) -> AskanceError:
    """That a round was passed over."""
    return AskanceError(
        f"round {run.round} of {run.label} (seed {run.seed}) was trained but not asked: call "
        f"run.ask(model) before the next round"
    )


def check_whole_pool(run: Run, embedding: Embedding) -> None:
    """Raise unless the embedding is of all that the run can look at."""
    if len(embedding) != run.size:
        raise InputError(f"the pool has {run.size} points, its Embedding {len(embedding)}")
    if run.has_items_outside:
        raise InputError(
            "the labelled items that are not in the pool are not in its Embedding either: ask with the "
            "model itself"
        )


def _size_of(pool: Any) -> int:
    """How many rows a pool has, once it is seen to be indexed by rows."""
    table = is_table(pool)
    size = row_count(pool) if table else sources.size(pool)
    if size is None or (not table and sources.take(pool, np.empty(0, np.int64)) is None):
        raise InputError(
            f"a loop's pool must have a length and be indexed by rows: an array, a frame, a list, a "
            f"mapping of arrays, a Dataset or a DataLoader of one in its own order; got a "
            f"{type(pool).__name__}"
        )
    return size
