"""Algorithm 1: label a first batch, then train, ask and label in every round.

It is written for a list of runs in lockstep. A *run* is one rule with one seed. A loop around your own
training is one run:

    for run in askance.loop(pool, oracle, strategy="powergrad", batch=20, rounds=10):
        model = train(*run.labeled)
        run.ask(model)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askance import strategies
from askance._checks import check_whole
from askance.embedding import Embedding, sources
from askance.embedding.rows import is_table, row_count, rows_at
from askance.errors import AskanceError, InputError
from askance.oracles import Answers, Oracle
from askance.seeding import Draws
from askance.selection import Selection, select, select_many
from askance.selection.default import default_for
from askance.selection.excluded import Excluded
from askance.selection.probabilities import GivesProbabilities
from askance.stopping.check import StoppingCheck
from askance.stopping.rules import Checkpoint, StopFunction, StoppingRule
from askance.strategies import Strategy
from askance.strategies.base import Need, check_one_model
from askance.tracking import Fact, Round, Tracker


class Run:
    """One rule with one seed: the rows it has asked for, and their labels.

    The first batch depends on the seed and on `first` alone, so that all rules of a seed start alike.

    Args:
        pool: X, or anything with a length that can be indexed by rows. A frame, a sparse matrix or a
            list of texts is for a model with `predict_proba`.
        oracle: who answers.
        strategy: a rule's name, or an instance with its options. When None, the default of
            `askance.select`, which the first model that `ask` is given decides.
        batch: b, points to start with and to ask for in a round.
        rounds: T, how many times it may ask.
        seed: random seed.
        first: the first batch: "random"; a rule that looks at features alone, such as "maxherding", for
            which every row of the pool is a vector of features; or the rows themselves.
        exclude: rows that are never asked for, as in `askance.select`: indices, or a mask of the pool.
        label: what to call the run; the rule's name when None.
        track: is told about every round, see `askance.tracking`.
        stop: a rule of `askance.stopping` that ends the run early, or a function of its checkpoints.
        held_out: (X, y) that is never asked about, for rules that look at accuracy.
    """

    def __init__(
        self,
        pool: Any,
        oracle: Oracle,
        strategy: str | Strategy | None = None,
        *,
        batch: int,
        rounds: int,
        seed: int = 0,
        first: str | Strategy | NDArray[np.int64] = "random",
        exclude: Any = None,
        label: str | None = None,
        track: Tracker | None = None,
        stop: StoppingRule | StopFunction | None = None,
        held_out: tuple[Any, Any] | None = None,
    ) -> None:
        table = is_table(pool)  # which no module takes, but a model with predict_proba does
        size = row_count(pool) if table else sources.size(pool)
        if size is None or (not table and sources.take(pool, np.empty(0, np.int64)) is None):
            raise InputError(
                f"a loop's pool must have a length and be indexed by rows: an array, a mapping of "
                f"arrays, a Dataset or a DataLoader of one in its own order; got a "
                f"{type(pool).__name__}"
            )
        if not callable(getattr(oracle, "answer", None)):
            raise InputError(
                f"an oracle must have a method answer(rows), got a {type(oracle).__name__}; of known "
                f"labels make one with askance.oracles.Truth(y)"
            )
        for name, value, least in (("batch", batch, 1), ("rounds", rounds, 0)):
            check_whole(name, value, least)
        closed = Excluded.of(exclude)
        if closed.ids:
            raise InputError("a loop's pool has no identifiers; exclude rows by index or by mask")
        closed.check_room(0, size)
        free = size - len(closed.positions)
        if batch * (rounds + 1) > free:
            left = f"the pool has {size}" + (f", {free} of them free" if free < size else "")
            raise InputError(
                f"{rounds} rounds of {batch} after a start of {batch} ask for "
                f"{batch * (rounds + 1)} points, {left}; use fewer rounds or a smaller batch"
            )
        self.pool, self.oracle, self.size = pool, oracle, size
        self._is_default = strategy is None
        if strategy is None:  # until there is a model: of a network, or of what takes tables
            given: tuple[Need, ...] = ("logits",) if table else ("logits", "features")
            strategy = strategies.default({*given, "labeled"}).name
        self.strategy = strategies.of(strategy)
        check_one_model(self.strategy)
        self._label_given = label
        self.label = self.strategy.name if label is None else label
        self.batch, self.rounds, self.seed = batch, rounds, seed
        self.picks: list[NDArray[np.int64]] = []  # of each round so far
        self.spent = 0.0
        self.asked: NDArray[np.int64] = np.empty(0, np.int64)
        self._closed = closed.positions
        self._is_asked = np.zeros(size, dtype=bool)  # whether a row is in `asked`
        self._is_closed = np.zeros(size, dtype=bool)
        self._is_closed[self._closed] = True
        self.rows: NDArray[np.int64] = np.empty(0, np.int64)
        self.labels: Tensor = torch.empty(0, dtype=torch.int64)
        self.track = track
        self.metrics: dict[str, float] = {}  # of this round's model
        self._last_tracked = -1  # the last round the tracker was told about
        self.stopped: str | None = None  # why the stopping rule ended the run
        self._check: StoppingCheck | None = None
        if stop is not None:
            self._check = StoppingCheck(stop, pool, size, held_out, seed)
        elif held_out is not None:
            raise InputError("held_out is for a stopping rule: give stop= too, or leave it out")
        self._has_begun = False
        self._label(self._checked(first_batch(pool, size, batch, first, seed, self._closed), batch))
        if not self._is_default:
            self._begin()

    @property
    def labeled(self) -> tuple[Any, Tensor]:
        """(X, y) of what has been answered so far, in the order of answers."""
        take = rows_at if is_table(self.pool) else sources.take
        return take(self.pool, self.rows), self.labels

    @property
    def excluded(self) -> NDArray[np.int64]:
        """The rows that may not be picked: asked for already, or never to be."""
        return np.concatenate([self._closed, self.asked])

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
        return self.round == self.rounds or self.stopped is not None

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """What the stopping rule knows of each model so far; empty without a rule."""
        return [] if self._check is None else list(self._check.history)

    def ask(
        self, model: nn.Module | GivesProbabilities | Embedding | None, **options: Any
    ) -> Selection | None:
        """Pick the next batch with this model and have it labelled; None after the last round.

        The model's `Embedding` of the whole pool may be given instead. Options go to `askance.select`:
        `head`, `batch_size`, `device`, limits on the batch (`groups`, `at_most`, `budget`, …). Under
        limits a round may have fewer picks than the batch.
        """
        number, labels = self.round, len(self.rows)
        self._settle(model)
        picks: Selection | None = None
        if self._check is not None and not self.finished:
            accuracy = self.metrics.get("accuracy")
            self.stopped = self._check.reason(model, labels, accuracy, options)
        if isinstance(model, Embedding) and not options:
            picks = ask_together([self], [model])[0]
        elif not self.finished:
            pool, labeled = self.pool, None
            if isinstance(model, Embedding):
                _check_whole_pool(self, model)
                pool, labeled, model = model, (model[self.rows], self.labels), None
            elif "labeled" in self.strategy.uses:
                labeled = self.labeled
            picks = select(
                model,
                labeled,
                pool,
                self.batch,
                strategy=self.strategy,
                seed=self.draws,
                exclude=self.excluded,
                **options,
            )
            self._tell(picks.indices, len(picks))
        self._report(number, labels, picks)
        return picks

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
        self.track.began(facts | {"rounds": self.rounds, "pool": self.size})

    def _report(self, number: int, labels: int, picks: Selection | None) -> None:
        self._begin()
        metrics, self.metrics = self.metrics, {}
        if self.track is None or number <= self._last_tracked:
            return
        self._last_tracked = number
        last = number == self.rounds or self.stopped is not None
        done = Round(self.label, self.seed, number, labels, metrics, last=last)
        if picks is not None:
            done = replace(done, seconds=picks.timings, picks=picks.indices, scores=picks.scores)
        self.track.round(done)

    def tell(self, picks: NDArray[np.int64]) -> None:
        """Have these rows labelled and go on to the next round, as `ask` does with its picks.

        To resume a run, pass its earlier picks to this method again.
        """
        self._tell(picks, self.batch)

    def _tell(self, picks: NDArray[np.int64], batch: int) -> None:
        if self.finished:
            why = f"all {self.rounds} rounds have been asked"
            raise InputError(f"the run was stopped: {self.stopped}" if self.stopped else why)
        picks = self._checked(picks, batch)
        self._label(picks)
        self.picks.append(picks)

    def _checked(self, rows: Any, batch: int) -> NDArray[np.int64]:
        """Rows of a batch, once they are seen to be one that may be asked for."""
        picks = _checked_batch(rows, batch, self.size)
        for marked, problem in (
            (self._is_asked, "have been asked for before"),
            (self._is_closed, "are excluded"),
        ):
            wrong = np.sort(picks[marked[picks]])
            if len(wrong):
                raise InputError(f"rows {wrong.tolist()} {problem}")
        return picks

    def _label(self, rows: NDArray[np.int64]) -> None:
        """Ask the oracle for these rows and keep its answers."""
        answers: Answers = self.oracle.answer(rows)
        # The common case first: a run that is resumed asks for all its rounds again.
        valid = np.array_equal(answers.rows, rows) or (
            len(np.unique(answers.rows)) == len(answers.rows) and np.isin(answers.rows, rows).all()
        )
        if not valid:
            raise InputError("an oracle must answer rows it was asked for, each once")
        labels = sources.as_labels(answers.labels, len(answers.rows))
        self.asked = np.concatenate([self.asked, rows])
        self._is_asked[rows] = True
        self.rows = np.concatenate([self.rows, answers.rows])
        self.labels = torch.cat([self.labels, labels])
        self.spent += answers.cost


def first_batch(
    pool: Any,
    size: int,
    batch: int,
    first: str | Strategy | NDArray[np.int64],
    seed: int,
    exclude: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The rows that a run begins with; see `Run`. `exclude` are rows that it may not begin with."""
    if not isinstance(first, (str, Strategy)):
        return _checked_batch(first, batch, size)
    if first == "random":
        free = np.arange(size) if exclude is None else np.delete(np.arange(size), exclude)
        start = Draws(seed).generator("start").choice(free, batch, replace=False)
        return start.astype(np.int64)
    rule = strategies.of(first)
    if not rule.needs <= {"features"}:
        raise InputError(
            f"before there is a model and a label, {rule.name} has not what it needs "
            f"({', '.join(sorted(rule.needs))}); begin with 'random' or 'maxherding', or give the rows "
            f"of the first batch"
        )
    rows: Any = pool.features if isinstance(pool, Embedding) else pool
    if not sources.is_array(rows) or rows.ndim < 2:
        raise InputError(
            f"{rule.name} takes each row of the pool as a vector of features, and a "
            f"{type(pool).__name__} has no such rows; give the rows of the first batch, e.g. "
            f"first=askance.select(encoder, None, pool, {batch}).indices"
        )
    features = rows.reshape(len(rows), -1)
    picks = select(None, None, features, batch, strategy=rule, seed=Draws(seed), exclude=exclude)
    return picks.indices


def _checked_batch(rows: Any, batch: int, size: int) -> NDArray[np.int64]:
    """Rows of a batch, once they are seen to be one."""
    picks = np.asarray(rows, dtype=np.int64)
    if picks.shape != (batch,) or len(np.unique(picks)) != batch:
        raise InputError(f"a round asks for {batch} different rows, got {picks.tolist()}")
    if int(picks.min()) < 0 or int(picks.max()) >= size:
        raise InputError(f"rows must be between 0 and {size - 1}, got {picks.tolist()}")
    return picks


def lockstep(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Rounds 0 to T of all runs together; every round yields the runs that are at it.

    The caller trains a network for each of them and calls its `ask`. A resumed run joins at the round
    it had reached.
    """
    for number in range(max((run.rounds for run in runs), default=-1) + 1):
        at_round = [run for run in runs if run.round == number]
        if not at_round:
            continue
        yield at_round
        for run in at_round:
            if run.round == number and not run.finished:
                raise AskanceError(
                    f"round {number} of {run.label} (seed {run.seed}) was trained but not "
                    f"asked: call run.ask(model) before the next round"
                )


def _check_whole_pool(run: Run, embedding: Embedding) -> None:
    if len(embedding) != run.size:
        raise InputError(f"the pool has {run.size} points, its Embedding {len(embedding)}")


def ask_together(runs: Sequence[Run], embeddings: Sequence[Embedding]) -> list[Selection | None]:
    """`Run.ask` of several runs, each with its model's embedding of the whole pool.

    Runs of one rule are asked together, which is faster on a GPU.
    """
    for run, embedding in zip(runs, embeddings, strict=True):
        _check_whole_pool(run, embedding)
        run._settle(embedding)
    asked: list[Selection | None] = [None] * len(runs)
    groups: dict[tuple[Strategy, int], list[int]] = {}
    for place, run in enumerate(runs):
        if not run.finished:
            groups.setdefault((run.strategy, run.batch), []).append(place)
    for (strategy, batch), places in groups.items():
        group = [(runs[place], embeddings[place]) for place in places]
        selections = select_many(
            [(embedding[run.rows], run.labels) for run, embedding in group],
            [embedding for _, embedding in group],
            batch,
            strategy=strategy,
            seeds=[run.draws for run, _ in group],
            exclude=[run.excluded for run, _ in group],
        )
        for place, picks in zip(places, selections, strict=True):
            runs[place].tell(picks.indices)
            asked[place] = picks
    return asked


def loop(
    pool: Any,
    oracle: Oracle,
    *,
    strategy: str | Strategy | None = None,
    batch: int,
    rounds: int,
    seed: int = 0,
    first: str | Strategy | NDArray[np.int64] = "random",
    exclude: Any = None,
    track: Tracker | None = None,
    stop: StoppingRule | StopFunction | None = None,
    held_out: tuple[Any, Any] | None = None,
) -> Iterator[Run]:
    """One run, round after round, with your own training in the body of the loop.

    Args:
        pool: X, or anything with a length that can be indexed by rows. A frame, a sparse matrix or a
            list of texts is for a model with `predict_proba`.
        oracle: who answers, e.g. `askance.oracles.Truth(y)`.
        strategy: a rule's name, or an instance with its options. When None, the default of
            `askance.select`, which the first model that `run.ask` is given decides.
        batch: points to start with and to ask for in a round.
        rounds: how many times to ask; the body runs once more than that.
        seed: random seed.
        first: the first batch: "random"; a rule that looks at features alone, such as "maxherding", for
            which every row of the pool is a vector of features; or the rows themselves.
        exclude: rows that are never asked for, as in `askance.select`: indices, or a mask of the pool.
        track: is told about every round and what `run.log` was given, see `askance.tracking`.
        stop: a rule of `askance.stopping` that ends the loop before `rounds`, or a function of its
            checkpoints. `run.stopped` says why.
        held_out: (X, y) that is never asked about, for rules that look at accuracy.

    Example:
        >>> import askance, torch
        >>> X = torch.randn(200, 5)
        >>> oracle = askance.oracles.Truth((X[:, 0] > 0).long())
        >>> for run in askance.loop(X, oracle, strategy="badge", batch=10, rounds=2):
        ...     model = torch.nn.Linear(5, 2)  # train it on run.labeled
        ...     _ = run.ask(model)
        ...     print(run.round, len(run.rows))
        1 20
        2 30
        2 30
    """
    run = Run(
        pool,
        oracle,
        strategy,
        batch=batch,
        rounds=rounds,
        seed=seed,
        first=first,
        exclude=exclude,
        track=track,
        stop=stop,
        held_out=held_out,
    )
    for _ in lockstep([run]):
        yield run
    run.finish()
