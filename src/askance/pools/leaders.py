"""The n best rows of a shard, and of several shards: exact, and in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding
from askance.picking.topk import top_k
from askance.pools.ids import Hashes, Ids
from askance.seeding import Positions


@dataclass(frozen=True)
class Skipped:
    """Rows that were left out because they could not be read.

    Args:
        what: the shard, or the row of it, and what was wrong.
        rows: how many rows; None where a shard's rows could not even be counted.
        shard: whether it is a whole shard.
    """

    what: str
    rows: int | None
    shard: bool


@dataclass(frozen=True, eq=False)
class Leaders:
    """The best rows of some part of a pool, best first, and what came of reading that part.

    Args:
        scores: float64, falling; ties by position.
        positions: int64, global.
        ids: the rows' identifiers.
        logits: (k, C) of those rows, where the rule looked at them; they explain the picks.
        features: (k, D), likewise.
        rows: how many rows were read.
        excluded: how many of them were not to be picked.
        skipped: what could not be read.
        hashes: 64 bits of every row's identifier, in order, where they are to be compared.
    """

    scores: NDArray[np.float64]
    positions: NDArray[np.int64]
    ids: tuple[str, ...]
    logits: Tensor | None = None
    features: Tensor | None = None
    rows: int = 0
    excluded: int = 0
    skipped: tuple[Skipped, ...] = ()
    hashes: Hashes | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def at(self, rows: NDArray[np.int64]) -> Leaders:
        """Some of them, in that order."""
        index = torch.from_numpy(rows)
        return replace(
            self,
            scores=self.scores[rows],
            positions=self.positions[rows],
            ids=tuple(self.ids[row] for row in rows),
            logits=None if self.logits is None else self.logits[index],
            features=None if self.features is None else self.features[index],
        )

    @property
    def block(self) -> Embedding:
        """The rows as a rule sees them."""
        return Embedding(self.logits, self.features, self.positions)


def nobody(skipped: tuple[Skipped, ...] = ()) -> Leaders:
    """No rows at all."""
    return Leaders(np.empty(0), np.empty(0, dtype=np.int64), (), skipped=skipped)


def merge(parts: Iterable[Leaders], n: int) -> Leaders:
    """The n best of several parts; the same whatever their order. Hashes are not kept."""
    given = list(parts)
    full = [part for part in given if len(part)]
    both = Leaders(
        scores=np.concatenate([np.empty(0), *(part.scores for part in full)]),
        positions=np.concatenate([np.empty(0, dtype=np.int64), *(part.positions for part in full)]),
        ids=tuple(name for part in full for name in part.ids),
        logits=_joined([part.logits for part in full]),
        features=_joined([part.features for part in full]),
        rows=sum(part.rows for part in given),
        excluded=sum(part.excluded for part in given),
        skipped=tuple(
            sorted({skip for part in given for skip in part.skipped}, key=lambda s: s.what)
        ),
    )
    return both.at(np.lexsort((both.positions, -both.scores))[:n])


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    held = [part for part in parts if part is not None]
    return torch.cat(held) if held and len(held) == len(parts) else None


@dataclass(eq=False)
class Front:
    """The n best rows of one shard so far; a block's other rows are not so much as copied.

    Rows above the bar, the n-th best score when it was last looked at, are put aside and thinned out
    only when more than n of them wait.
    """

    n: int
    parts: list[Leaders] = field(default_factory=list)
    waiting: int = 0
    bar: float | None = None

    def push(
        self, block: Embedding, scores_B: Tensor, ids: Ids, free: NDArray[np.int64] | None
    ) -> None:
        """Offer a block's rows, or those of `free` alone, in the order of the shard."""
        index = None if free is None else torch.from_numpy(free).to(scores_B.device)
        scores_F = scores_B if index is None else scores_B[index]
        if self.bar is None:
            chosen = top_k(scores_F, self.n)
        else:
            # Equal scores go to the lower position, which was there before.
            above = (scores_F > self.bar).nonzero().flatten()
            chosen = above[top_k(scores_F[above], self.n)] if len(above) > self.n else above
        if not len(chosen):
            return
        rows_K = chosen if index is None else index[chosen]
        rows = rows_K.cpu().numpy()
        new = Leaders(
            scores=scores_B[rows_K].double().cpu().numpy(),
            positions=_at(block.positions, rows),
            ids=tuple(ids.take(rows)),
            logits=None if block.logits is None else block.logits[rows_K].cpu(),
            features=None if block.features is None else block.features[rows_K].cpu(),
        )
        self.parts.append(new)
        self.waiting += len(new)
        if self.waiting > self.n or (self.bar is None and self.waiting == self.n):
            self.best()

    def best(self) -> Leaders:
        """The n best of what was offered, best first."""
        self.parts = [merge(self.parts, self.n)]
        self.waiting = 0
        if len(self.parts[0]) == self.n:
            self.bar = float(self.parts[0].scores[-1])
        return self.parts[0]


def _at(positions: Positions, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(positions, range):
        return positions.start + rows
    return positions[rows]
