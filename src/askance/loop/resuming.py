"""`resume`: a run goes on from its file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from askance.errors import InputError, StoreError
from askance.loop.answers import PeopleAnswers
from askance.loop.rows import as_list
from askance.loop.run import Run
from askance.loop.saving import described, read_run, rule_of_record
from askance.oracles import Oracle
from askance.stopping.rules import StopFunction, StoppingRule
from askance.tracking import Tracker


def resume(
    path: str | os.PathLike[str],
    pool: Any,
    oracle: Oracle | None = None,
    *,
    labeled: Any = None,
    ids: Any = None,
    track: Tracker | None = None,
    stop: StoppingRule | StopFunction | None = None,
    held_out: tuple[Any, Any] | None = None,
) -> Run:
    """The run that `run.save(path)` wrote, as it was: what it asks next is what it would have asked.

    The pool is not in the file. It is given again, and so are `oracle`, `ids`, `track` and a `labeled`
    of items outside the pool, where the run had them. Where contents can be compared they are; another
    pool is refused. A stopping rule begins anew: it knows no model from before.

    Args:
        path: the file.
        pool: the same pool, in the same order.
        oracle: who answers from now on.
        labeled: the same items outside the pool, (X, y) or a frame.
        ids: the same identifiers.
        track: as of `askance.loop`.
        stop: as of `askance.loop`.
        held_out: as of `askance.loop`.

    Example:
        >>> import askance, tempfile, torch
        >>> X, path = torch.randn(50, 3), tempfile.mktemp()
        >>> run = askance.loop(X, batch=4, strategy="margin")
        >>> run.tell(run.waiting, [0, 1, 0, 1])
        >>> run.save(path)
        >>> again = askance.resume(path, X)
        >>> again.labeled[1].tolist(), again.waiting
        ([0, 1, 0, 1], [])
    """
    state = read_run(path)
    ids = None if ids is None else as_list(ids)
    texts = None if ids is None else list(map(str, ids))  # as the file has them
    for what, given in (("pool", pool), ("ids", texts), ("labeled", labeled)):
        _check_same(path, what, state[what], given)
    rule = state["strategy"]
    run = Run(
        pool,
        oracle,
        None if rule is None else rule_of_record(rule),
        batch=state["batch"],
        rounds=state["rounds"],
        seed=state["seed"],
        labeled=labeled,
        first=(),
        exclude=np.array(state["exclude"], dtype=np.int64),
        ids=ids,
        classes=state["classes"],
        label=state["label"],
        track=track,
        stop=stop,
        held_out=held_out,
        begun=state["history"] != [],
    )
    run.picks = [np.array(rows, dtype=np.int64) for rows in state["picks"]]
    rows, labels = state["by_oracle"]
    run.known.restore(
        np.array(state["asked"], dtype=np.int64),
        (np.array(rows, dtype=np.int64), torch.tensor(labels, dtype=torch.int64)),
        PeopleAnswers.of(state["people"]),
    )
    run.known.settle(np.array(state["settled"], dtype=np.int64))
    run.spent, run.stopped = state["spent"], state["stopped"]
    run.history = [(labels, metrics) for labels, metrics in state["history"]]
    run.metrics = state["metrics"]
    return run


def _check_same(path: str | os.PathLike[str], what: str, saved: Any, given: Any) -> None:
    """Refuse what is not what the run was made with."""
    if saved is None:
        if given is not None and what != "labeled":
            raise InputError(f"{path}: the run had no {what}; leave {what}= out")
        return
    if given is None:
        raise InputError(f"{path}: the run was made with {what}=; give it again")
    now = described(given)
    if now["digest"] is not None and saved["digest"] is not None and now != saved:
        raise StoreError(
            f"{path}: another {what}: the run's had {saved['size']} rows, this one has {now['size']}"
            f"{' of other content or in another order' if now['size'] == saved['size'] else ''}"
        )
    if now["size"] != saved["size"]:
        raise StoreError(
            f"{path}: the run's {what} had {saved['size']} rows, this has {now['size']}"
        )
