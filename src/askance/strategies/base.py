"""What a rule is: a frozen dataclass of its options that says what it needs and how it decides.

Three kinds, and everything else (streaming, timing, the contract suite) follows from which it is:

- a *pointwise* rule scores each point from its block and a small reference. It streams.
- a *two-stage* rule looks at a shortlist and a uniform sample alone, which are made as the pool streams
  by, and then picks from the shortlist.
- a *batch* rule needs the whole pool's geometry to choose n points together. Some can also do so where
  the pool is held in parts.

Limits on a batch (a quota of a class, a budget, no two alike: `askance.select`) hold for every rule. A
pointwise rule need not know of them. A batch rule is given an `Eligible`, and must

- pick only rows that are in `eligible.mask` at that moment, the first one included;
- call `eligible.take(row)` right after each pick, which gives the rows that leave with it;
- give n rows, or fewer where `eligible.mask` has none left. A rule that looks at a shortlist alone
  looks further when no row of it is eligible any more (`eligible.fork` is for trying).

Rows that may not be picked are still points of the pool: a rule that covers the pool covers them too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, Evaluation
from askance.errors import InputError
from askance.gradients.last_layer import LOSSES, LossName, check_loss
from askance.picking import Picks
from askance.picking.eligible import Eligible
from askance.picking.shard import ShardPicker
from askance.picking.sharded import Outcome, Shards
from askance.picking.topk import smallest, top_k
from askance.seeding import Draws, Positions

Need = Literal["logits", "features", "labeled", "inputs", "members"]


@dataclass(frozen=True, eq=False)
class Labeled:
    """The labelled set as a rule sees it.

    Args:
        block: its embedding (of `reference_size` points where the rule asks for fewer).
        labels: (L,) classes, or (L, C) zeros and ones.
        count: |D_L|, however many of its points are in the block.
    """

    block: Embedding
    labels: Tensor
    count: int


class Strategy(ABC):
    """A rule that says which points to label next."""

    name: ClassVar[str]
    cost: ClassVar[str] = ""
    """Multiplications in the worst case: N pool points, L labelled, n picks, C classes, D features."""
    because: ClassVar[str] = ""
    """Why it picks an item, for somebody who labels: the end of "picked because …"."""

    @property
    def takes_targets(self) -> bool:
        """Whether labels may be the numbers of a regression, since the rule does not look at them."""
        return False

    @property
    @abstractmethod
    def needs(self) -> frozenset[Need]:
        """What the rule must be given of the pool, and whether it needs the labelled set."""

    @property
    def optional(self) -> frozenset[Need]:
        """What the rule makes use of where it is given, and can do without."""
        return frozenset()

    @property
    def uses(self) -> frozenset[Need]:
        """What the rule is given of what there is: what it needs, and what is optional."""
        return self.needs | self.optional

    @property
    def random(self) -> bool:
        """Whether the rule draws random numbers, so that another seed may pick other points."""
        return False

    @property
    def draws_above(self) -> int:
        """A random rule draws from pools of more rows than this; most rules do from every pool."""
        return 0

    @property
    def multilabel(self) -> bool | None:
        """True for several labels a point, False for one class each, None where it does not matter."""
        return None

    def reference_points(self, count: int, draws: Draws) -> NDArray[np.int64] | None:
        """Which of `count` labelled points the reference is estimated from; None for all."""
        return None

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Any:
        """What the labelled set boils down to for this rule; given to every later call.

        Where it is a gradient `Reference`, picks can be explained against it.
        """
        return None


class Pointwise(Strategy):
    """A rule that scores each point by itself; the n highest scores are picked."""

    @abstractmethod
    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        """(B,) scores, higher is better."""


class Batch(Strategy):
    """A rule that chooses n points together."""

    @abstractmethod
    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        """n rows of the block, best first, each with the rule's own score when it was picked.

        `eligible` says which rows may be picked, pick after pick; all of them when None.
        """

    def pick_many(
        self, pools: Sequence[Embedding], n: int, references: Sequence[Any], draws: Sequence[Draws]
    ) -> list[Picks]:
        """`pick` in several pools of one size. A rule that has a faster way on a GPU takes it here."""
        each = zip(pools, references, draws, strict=True)
        return [self.pick(pool, n, reference, own) for pool, reference, own in each]

    def utilities(
        self, pool: Embedding, picks: NDArray[np.int64], reference: Any
    ) -> NDArray[np.float64]:
        """(n, N): what every row was worth when each of `picks` was picked, NaN where it could not be.

        Only who asks for it pays for it. A rule need not know this; then it refuses.
        """
        raise InputError(f"{self.name} says nothing of the rows it does not pick")


class TwoStage(Batch):
    """A batch rule that looks at a shortlist of the pool and a uniform sample of it, and nothing else.

    A pool that no memory holds is read once, and only those rows are kept.
    """

    @abstractmethod
    def shortlisted(self, n: int) -> tuple[Pointwise, int]:
        """A rule, and how many of its best rows are the shortlist; it is given this one's reference."""

    @property
    def sampled(self) -> int:
        """How many rows of the pool are drawn for a sample; see `sampled_rows`."""
        return 0

    @abstractmethod
    def finish(
        self,
        shortlist: Embedding,
        sample: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        """n rows of the shortlist, best first, each with its score; both parts in order of position.

        `eligible` is about the rows of the shortlist; see `pick`.
        """

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        scorer, count = self.shortlisted(n)
        scores_N = scorer.score(pool, reference, draws)
        sample = pool[sampled_rows(pool, self.sampled, draws)]
        free = torch.arange(len(pool), device=scores_N.device)
        if eligible is not None:
            free = free[torch.from_numpy(eligible.mask).to(free.device)]
        while True:
            rows = free[top_k(scores_N[free], count)].sort().values.cpu().numpy()
            among = None if eligible is None else eligible.fork().among(rows)
            picks = self.finish(pool[rows], sample, n, reference, draws, among)
            if len(picks.rows) == n or len(rows) == len(free):
                break
            count *= 2  # the limits rule out too much of the shortlist
        picks = Picks(rows[picks.rows], picks.scores)
        if eligible is not None:
            for row in picks.rows.tolist():
                eligible.take(row)
        return picks


def sample_keys(positions: Positions, draws: Draws) -> NDArray[np.float64]:
    """A number for each row. The rows with the k smallest are a uniform sample of k."""
    return draws.uniform("sample", positions)


def sampled_rows(pool: Embedding, count: int, draws: Draws) -> NDArray[np.int64]:
    """Which rows of the pool are a uniform sample of `count`, ascending; all where there are fewer."""
    if len(pool) <= count:
        return np.arange(len(pool))
    rows, _ = smallest(sample_keys(pool.positions, draws), count)
    return rows


class ShardedBatch(Batch):
    """A batch rule that also picks from a pool whose rows several machines hold between them."""

    @abstractmethod
    def shard(self, part: Embedding, n: int, reference: Any, draws: Draws) -> ShardPicker:
        """A part of the pool, its positions ascending, ready for n rows to be picked from the whole."""

    @abstractmethod
    def pick_from_shards(self, shards: Shards, n: int) -> Outcome:
        """What `pick` picks from the whole pool, in its positions."""


def picks_under_limits(rule: Strategy) -> bool:
    """Whether the rule can be held to limits on a batch; a third party's `pick` may be older."""
    return not isinstance(rule, Batch) or "eligible" in signature(rule.pick).parameters


class NamedLoss(Strategy):
    """A rule with a field `loss`, the name of a loss."""

    loss: LossName
    losses: ClassVar[tuple[str, ...]] = LOSSES

    def __post_init__(self) -> None:
        check_loss(self.loss, losses=self.losses)

    @property
    def multilabel(self) -> bool | None:
        return None if self.loss == "squared" else self.loss == "multilabel"


def logits_of(block: Embedding) -> Tensor:
    """The block's logits, which `select` has made sure of for a rule that needs them."""
    assert block.logits is not None
    return block.logits


def members_of(block: Embedding) -> Tensor:
    """The logits of each member, which `select` has made sure of for a rule that needs a committee."""
    assert block.members is not None
    return block.members


def check_one_model(rule: Strategy) -> None:
    """Refuse a rule that asks a committee, where one model is asked."""
    if "members" in rule.needs:
        raise InputError(
            f"{rule.name} asks several models, and here there is one; call askance.select with "
            f"askance.committee(model), or take another rule, such as 'powermargin'"
        )


def features_of(block: Embedding) -> Tensor:
    """The block's features, which `select` has made sure of for a rule that needs them."""
    assert block.features is not None
    return block.features


def labeled_features(rule: Strategy, labeled: Labeled) -> Tensor:
    """The labelled set's features; refused where it has none."""
    if labeled.block.features is None:
        raise InputError(f"{rule.name} needs features, the labelled Embedding has none")
    return labeled.block.features
