"""`askance.loop`: a run begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askance.loop.first import First
from askance.loop.run import Run
from askance.oracles import Oracle
from askance.stopping.rules import StopFunction, StoppingRule
from askance.strategies import Strategy
from askance.tracking import Tracker


def loop(
    pool: Any,
    oracle: Oracle | None = None,
    *,
    strategy: str | Strategy | None = None,
    batch: int,
    rounds: int | None = None,
    seed: int = 0,
    labeled: Any = None,
    start: int | None = None,
    first: First = "random",
    exclude: Any = None,
    ids: Any = None,
    classes: Sequence[str] | None = None,
    track: Tracker | None = None,
    stop: StoppingRule | StopFunction | None = None,
    held_out: tuple[Any, Any] | None = None,
) -> Run:
    """One run, round after round, with your own training in the body of the loop.

    Args:
        pool: X, or anything with a length that can be indexed by rows: arrays, frames, datasets, lists
            of texts or images.
        oracle: who answers, e.g. `askance.oracles.Truth(y)`. None where people do: ask them about
            `run.waiting`, and pass their answers to `run.tell`.
        strategy: a rule's name, or an instance with its options. When None, the default of
            `askance.select`, which the first model that `run.ask` is given decides.
        batch: points to ask for in a round.
        rounds: how many times to ask; the body runs once more than that. Until the pool is used up when
            None.
        seed: random seed.
        labeled: labels that exist: (X, y) or a frame of items that are not in the pool, or a mapping
            from rows of the pool (or their ids) to labels.
        start: how many points to start with; `batch`, or none where there are labels, when None.
        first: the first batch: "random"; a rule that looks at features alone, such as "maxherding", for
            which every row of the pool is a vector of features; or the rows themselves, any number.
            With `start=0` the first `run.ask` picks it.
        exclude: rows that are never asked for, as in `askance.select`: indices, or a mask of the pool.
        ids: an identifier for each row, by which people are asked and answer: a list, an array, an
            index or a series.
        classes: names of all classes, in the order of the model's outputs; labels that are names are
            then kept as numbers.
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
    return Run(
        pool, oracle, strategy,
        batch=batch, rounds=rounds, seed=seed, labeled=labeled, start=start, first=first,
        exclude=exclude, ids=ids, classes=classes, track=track, stop=stop, held_out=held_out,
    )  # fmt: skip
