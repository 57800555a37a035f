"""Several runs in step: rounds of all of them, and their questions asked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from askance.embedding import Embedding
from askance.loop.run import Run, check_whole_pool, not_asked
from askance.selection import Selection, select_many
from askance.strategies import Strategy


def lockstep(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Rounds 0 to T of all runs together; every round yields the runs that are at it.

    The caller trains a network for each of them and calls its `ask`. A resumed run joins at the round
    it had reached.
    """
    for number in range(max((run.rounds or 0 for run in runs), default=-1) + 1):
        at_round = [run for run in runs if run.round == number]
        if not at_round:
            continue
        yield at_round
        for run in at_round:
            if run.round == number and not run.finished:
                raise not_asked(run)


def ask_together(runs: Sequence[Run], embeddings: Sequence[Embedding]) -> list[Selection]:
    """`Run.ask` of several runs, each with its model's embedding of the whole pool.

    Runs of one rule are asked together, which is faster on a GPU.
    """
    for run, embedding in zip(runs, embeddings, strict=True):
        check_whole_pool(run, embedding)
        run._settle(embedding)
    asked = [Selection.nothing(run.strategy) for run in runs]
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
