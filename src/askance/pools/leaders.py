"""The n best rows of a shard, and of several shards: exact, and in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Block
from askance.picking.topk import top_k
from askance.pools.ids import Hashes, Ids


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
    def block(self) -> Block:
        """The rows as a rule sees them."""
        return Block(self.positions, self.logits, self.features)


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
    """The n best rows of one shard so far; a block's other rows are not so much as copied."""

    n: int
    best: Leaders = field(default_factory=nobody)

    def push(
        self, block: Block, scores_B: Tensor, ids: Ids, free: NDArray[np.int64] | None
    ) -> None:
        """Offer a block's rows, or those of `free` alone, in the order of the shard."""
        scores_F = scores_B if free is None else scores_B[torch.from_numpy(free)]
        if len(self.best) == self.n:
            # Equal scores go to the lower position, which was there before.
            above = (scores_F > float(self.best.scores[-1])).nonzero().flatten()
            chosen = above[top_k(scores_F[above], self.n)]
        else:
            chosen = top_k(scores_F, self.n)
        if not len(chosen):
            return
        rows = chosen.cpu().numpy()
        rows = rows if free is None else free[rows]
        index = torch.from_numpy(rows).to(scores_B.device)
        new = Leaders(
            scores=scores_B[index].double().cpu().numpy(),
            positions=np.asarray(block.positions, dtype=np.int64)[rows]
            if not isinstance(block.positions, range)
            else block.positions.start + rows,
            ids=tuple(ids.take(rows)),
            logits=None if block.logits is None else block.logits[index].cpu(),
            features=None if block.features is None else block.features[index].cpu(),
        )
        self.best = merge([self.best, new], self.n)
