"""What is asked of a pool, and everything that the answer depends on."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any

from askance.embedding import Embedding
from askance.errors import InputError
from askance.gradients.last_layer import LossName
from askance.pools.cache import EmbedRows
from askance.pools.labeled import LabeledItems
from askance.pools.reader import Reader, ShardJob, embedded_parts
from askance.pools.resume import listing
from askance.pools.scan import ScoreRows
from askance.pools.source import Parts, Source, rows_in
from askance.seeding import Draws
from askance.selection.constraints import Constraints
from askance.selection.excluded import Excluded
from askance.strategies import GradNorm, Pointwise, Strategy, TwoStage


@dataclass(frozen=True, eq=False)
class PoolQuery:
    """What is asked of a pool.

    Args:
        rule: what picks.
        n: how many rows.
        reader: the pool.
        excluded: what is not to be picked.
        draws: the randomness.
        shortlist: let a batch rule pick from this many rows, the best by a pointwise rule.
        cache_limit: the most bytes a cache of the whole pool may take.
        constraints: limits on the picks.
    """

    rule: Strategy
    n: int
    reader: Reader
    excluded: Excluded
    draws: Draws
    shortlist: int | None
    cache_limit: int
    constraints: Constraints | None = None

    def __post_init__(self) -> None:
        if self.constraints is not None:
            self.constraints.check_rule(self.rule)
        if self.shortlist is not None and self.shortlist < self.n:
            raise InputError(
                f"a shortlist must hold at least the n = {self.n} picks, got {self.shortlist}"
            )
        if self.shortlist is not None and isinstance(self.rule, Pointwise):
            raise InputError(f"{self.rule.name} scores every row by itself and needs no shortlist")
        if self._own is not None:
            scorer, kept = self._own
            if self.shortlist is not None:
                raise InputError(
                    f"{self.rule.name} picks from a shortlist of its own, the {kept} best rows by "
                    f"{scorer.name}: leave `shortlist` out, or change the rule's own options"
                )
            if kept < self.n:
                raise InputError(
                    f"{self.rule.name} must look at the n = {self.n} picks and more, it looks at "
                    f"{kept} rows: what its `shortlisted` gives is too small"
                )
        embedded_parts(self.rule)  # refuses rules that need the model itself
        if self.streamed is None and rows_in(self.reader.source.shards) is None:
            raise InputError(
                f"{self._whole} looks at the whole pool, and how long this one is only reading "
                f"tells; give a shortlist for it to pick from"
            )

    @property
    def _whole(self) -> str:
        """Who looks at the whole pool."""
        return "max_similarity" if isinstance(self.rule, Pointwise) else self.rule.name

    @property
    def _own(self) -> tuple[Pointwise, int] | None:
        """The shortlist of a two-stage rule: by what rule, and how many rows."""
        return self.rule.shortlisted(self.n) if isinstance(self.rule, TwoStage) else None

    @property
    def streamed(self) -> Pointwise | None:
        """The pointwise rule that each row is scored by: the rule itself, or what makes a shortlist.

        None where the rule looks at the whole pool, or the limits do: which rows are left once those
        before them are alike, no shorter list can say.
        """
        similar = self.constraints is not None and self.constraints.max_similarity is not None
        if isinstance(self.rule, Pointwise):
            return None if similar else self.rule
        if self._own is not None:
            # Under limits such a rule looks further than its shortlist.
            return self._own[0] if self.constraints is None else None
        if self.shortlist is None:
            return None
        bias: bool = getattr(self.rule, "bias", True)
        loss: LossName = getattr(self.rule, "loss", "cross-entropy")
        return GradNorm(bias=bias, loss=loss)

    @property
    def kept(self) -> int:
        """How many of the best rows by that rule are kept."""
        return (self.shortlist or self.n) if self._own is None else self._own[1]

    def known_of(self, labeled: Reader | None) -> LabeledItems | None:
        """The labelled items, by what is read of a row of the pool; None where there are none."""
        if labeled is None:
            return None
        parts: Parts = embedded_parts(self.rule) | self._limiting
        if self.streamed is not None:
            parts |= embedded_parts(self.streamed)
        if self.reader.model is not None and parts:
            parts = frozenset({"inputs"})
        return LabeledItems(labeled.source, self.reader.source, parts, self.excluded)

    def scoring(self, reference: Any, labeled: Embedding | None, hash_ids: bool) -> ShardJob[Any]:
        """The job that gives the best rows of each shard."""
        assert self.streamed is not None
        parts = embedded_parts(self.streamed) | embedded_parts(self.rule) | self._limiting
        times = 1 if self.constraints is None else -(-self.kept // self.n)
        kept = self.kept if self.constraints is None else self.n
        sampled = self.rule.sampled if isinstance(self.rule, TwoStage) else 0
        work = ScoreRows(
            self.streamed, kept, reference, self.draws, self.excluded, labeled,
            self.constraints, times, sampled,
        )  # fmt: skip
        return ShardJob(self.reader, parts, work, hash_ids)

    def embedding(self, labeled: Embedding | None, hash_ids: bool) -> ShardJob[Any]:
        """The job that embeds each shard: what the rule looks at, and logits to explain the picks."""
        there: Parts = self.reader.source.holds
        there |= {"logits"} if self.reader.model else frozenset()
        parts: Parts = embedded_parts(self.rule) | (there & {"logits"}) | self._limiting
        work = EmbedRows(self.rule, self.excluded, labeled, self.constraints)
        return ShardJob(self.reader, parts, work, hash_ids)

    @property
    def _limiting(self) -> Parts:
        """What the limits look at of a row."""
        needs = frozenset() if self.constraints is None else self.constraints.needs
        parts: Parts = frozenset({"logits", "features"})
        return frozenset(part for part in parts if part in needs)

    def described(self, labeled: Source | None, *, hashed: bool) -> dict[str, Any]:
        """Everything the answer depends on, for the file of what is done."""
        reader = self.reader
        ids = "\n".join(sorted(self.excluded.ids)).encode()
        return {
            "strategy": repr(self.rule),
            "n": self.n,
            "seed": [self.draws.seed, self.draws.round],
            "kept": [None if self.streamed is None else repr(self.streamed), self.kept],
            "model": None if reader.model is None else reader.model.digest(),
            "head": reader.head,
            "device": reader.device,
            "batch size": reader.batch_size,
            "on error": reader.on_error,
            "excluded": blake2b(ids, digest_size=16).hexdigest(),
            "constraints": None if self.constraints is None else self.constraints.digest(),
            "identifiers compared": hashed,
            "reading": _how_read(reader.source),
            "pool": listing(reader.source),
            "labelled set": None if labeled is None else listing(labeled),
            "labelled reading": None if labeled is None else _how_read(labeled),
        }

    def shortlist_in_words(self) -> str:
        """What a batch rule picks from, where that is not the whole pool."""
        assert self.streamed is not None
        best = f"the {self.kept:,} best rows by {self.streamed.name}"
        if self._own is not None:
            sampled = self.rule.sampled if isinstance(self.rule, TwoStage) else 0
            sample = f" and a sample of {sampled:,}" if sampled else ""
            return f"from {best}{sample}, which are all the rule looks at"
        return f"from a shortlist, {best}"


def _how_read(source: Source) -> dict[str, Any]:
    """How a source reads its rows."""
    record: Any = source
    names = [field.name for field in fields(record)] if is_dataclass(record) else []
    values = {name: getattr(source, name) for name in names if name != "shards"}
    options = {
        name: _how_read(value) if isinstance(value, Source) else _in_words(value)
        for name, value in values.items()
        if name != "dataset"  # of which nothing is known but its class
    }
    return {"kind": type(source).__qualname__, **options}


def _in_words(value: Any) -> str:
    if callable(value) and not is_dataclass(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value)
